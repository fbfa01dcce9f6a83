"""The normal posteriors, whose entropies have closed forms."""

from tfbbb.base.types import Tensor
from tfbbb.bayes import posteriors
from tfbbb.bayes.posteriors import NormalPosterior
from tfbbb.bayes.variational_weight import VariationalWeight

NORMAL_POSTERIORS: tuple[type, ...] = (
    *(
        family
        for family in (type(posteriors.get(name)) for name in posteriors.names())
        if issubclass(family, NormalPosterior)
    ),
    posteriors.JointNormal,
)


def entropy_of(weight: VariationalWeight) -> Tensor:
    """Returns E[-log q(w)] in nats, [members]."""
    return weight.posterior.entropy(weight.parameters, weight.shape)
