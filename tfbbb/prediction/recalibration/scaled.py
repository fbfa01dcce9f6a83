"""A recalibration for predictions whose spread needs another factor."""

from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.likelihoods.classification import Classification
from tfbbb.prediction.recalibration.conformal import Conformal
from tfbbb.prediction.recalibration.recalibration import IDENTITY, Recalibration
from tfbbb.prediction.recalibration.temperature import Temperature
from tfbbb.prediction.recalibration.variance_scaling import VarianceScaling


def scaling(
    likelihood: Likelihood,
) -> type[Temperature] | type[VarianceScaling] | None:
    """Returns the kind of recalibration by one factor; None if none suits."""
    if isinstance(likelihood, Classification):
        return Temperature
    return VarianceScaling if likelihood.unbounded else None


def scaled(
    recalibration: Recalibration,
    likelihood: Likelihood,
    factor: float,
    factor_of_intervals: float,
) -> Recalibration:
    """Returns a recalibration whose factor is `factor` times as large."""
    kind = scaling(likelihood)
    if kind is None:
        return recalibration
    if isinstance(recalibration, Conformal):
        density = scaled(recalibration.density, likelihood, factor, factor)
        return recalibration.with_density(density, factor_of_intervals / factor)
    if factor == 1.0:
        return recalibration
    if isinstance(recalibration, VarianceScaling):
        return VarianceScaling([factor * x for x in recalibration.factors])
    if isinstance(recalibration, Temperature):
        return Temperature(factor * recalibration.temperature)
    return kind(factor) if recalibration == IDENTITY else recalibration
