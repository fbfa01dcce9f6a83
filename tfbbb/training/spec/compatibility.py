"""Which posteriors, priors and estimators go together in a layer.

The layers refuse the same, but only TensorFlow can make them.
"""

from tfbbb.training.spec.part import NamedPart
from tfbbb.training.spec.posteriors import MatrixNormalPosterior
from tfbbb.training.spec.priors import EmpiricalNormalPrior

# Families whose weights are independent and symmetric about their means.
_FACTORISED = frozenset({"matrix_normal", "mean_field_normal", "point"})
# Families of which the density at a draw is known.
_WITH_DENSITY = frozenset(
    {"full_covariance_normal", "low_rank_normal", "matrix_normal", "mean_field_normal"}
)
_ALL = _WITH_DENSITY | {"point", "rank_1"}
SERVED: dict[str, frozenset[str]] = {
    "auto": _ALL,
    "flipout": _FACTORISED,
    "local": _FACTORISED,
    "score_function": _WITH_DENSITY,
    "weight": _ALL,
}
# Families with weights that are points, which climb to the prior's maximum.
_CLIMBING = frozenset({"point", "rank_1"})


def can_serve(estimator: NamedPart, posterior: NamedPart) -> bool:
    """Whether an estimator is right for a layer with this posterior."""
    full = isinstance(posterior, MatrixNormalPosterior) and (
        posterior.covariance == "full"
    )
    of_independent = SERVED[estimator.name] == _FACTORISED
    return posterior.name in SERVED[estimator.name] and not (full and of_independent)


def has_density(posterior: NamedPart) -> bool:
    """Whether the density of a posterior is known, as a prior's must be."""
    return posterior.name in _WITH_DENSITY


def has_optimum(posterior: NamedPart, prior: NamedPart) -> bool:
    """Whether there is a divergence from this prior to train the posterior on."""
    if prior.name == "none":
        return posterior.name == "point"
    return not (posterior.name in _CLIMBING and is_unbounded(prior))


def is_unbounded(prior: NamedPart) -> bool:
    """Whether the density of a prior has no maximum."""
    if isinstance(prior, EmpiricalNormalPrior):
        return prior.hyperprior is None
    return prior.name == "horseshoe"
