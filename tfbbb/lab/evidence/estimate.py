"""An estimate of a log evidence or of a bound of it, and the models that have one."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tfbbb.model.bayesian_model import BayesianModel


@dataclass(frozen=True)
class EvidenceEstimate:
    """An estimate in nats, in the units of the targets.

    Attributes:
        value: The estimate of log p(y), or of a lower bound of it.
        standard_error: Its Monte Carlo standard error.
        diagnostics: Figures of the method by name.
    """

    value: float
    standard_error: float
    diagnostics: Mapping[str, float] = field(default_factory=dict)

    @property
    def bits(self) -> float:
        """The estimate in bits."""
        return self.value / math.log(2.0)


def check_density(model: BayesianModel) -> None:
    """Checks that a model has one posterior, with a density, and no recalibration."""
    if not isinstance(model, BayesianModel):
        raise ValueError(
            "The evidence is that of a `tfbbb.BayesianModel`. "
            f"Received: a model of type {type(model).__name__}"
        )
    if len(model.members) > 1:
        raise ValueError(
            "The evidence is estimated for one posterior: take one member, "
            f"`model.members[0]`. Received: {len(model.members)} members"
        )
    if model.recalibration is not None:
        raise ValueError(
            "The evidence is that of the likelihood before recalibration: set "
            "`model.recalibration = None` first. "
            f"Received: recalibration={model.recalibration!r}"
        )
    for layer in model.variational_layers:
        for weight in layer.variational_weights:
            if not weight.posterior.has_density or weight.prior is None:
                raise ValueError(
                    "Every weight needs a prior, and a posterior with a density, such "
                    "as 'mean_field_normal'; methods of `tfbbb.inference` such as "
                    "Laplace give point estimates one. Received: "
                    f"{layer.name}/{weight.name} with posterior={weight.posterior!r}, "
                    f"prior={weight.prior!r}"
                )
