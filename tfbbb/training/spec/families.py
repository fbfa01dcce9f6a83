"""The parts of a spec that name a family, with or without options."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, Union

from pydantic import (
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema

from tfbbb.base.task import Task
from tfbbb.bayes.families.estimators import ESTIMATORS, EstimatorFamily
from tfbbb.bayes.families.kl_schedules import KL_SCHEDULES, KLScheduleFamily
from tfbbb.bayes.families.likelihoods import LIKELIHOODS, LikelihoodFamily
from tfbbb.bayes.families.posteriors import POSTERIORS, PosteriorFamily
from tfbbb.bayes.families.priors import PRIORS, PriorFamily
from tfbbb.bayes.families.recalibrations import RECALIBRATIONS, RecalibrationFamily
from tfbbb.training.spec.part import NamedPart


class PosteriorPart(PosteriorFamily, NamedPart):
    """The family q(w) of some weights."""


class PriorPart(PriorFamily, NamedPart):
    """The prior p(w) of some weights."""


class NoPrior(PriorFamily):
    """None, for the posterior `point`: maximum likelihood."""


class EstimatorPart(EstimatorFamily, NamedPart):
    """The estimator of a layer."""


class KLSchedulePart(KLScheduleFamily, NamedPart):
    """The schedule of the divergence's weight."""


class RecalibrationPart(RecalibrationFamily, NamedPart):
    """The recalibration of a model."""


class NoRecalibration(RecalibrationFamily):
    """None: the predictions of the network as they are."""


class LikelihoodPart(LikelihoodFamily, NamedPart):
    """The likelihood of a model."""

    @model_validator(mode="after")
    def _check_noise(self) -> Self:
        if self.given_noise and getattr(self, "heteroscedastic", False):
            raise ValueError(
                f"the noise is either given (`{self.given_noise}`) or an output of the "
                "network (`heteroscedastic: true`); set only one of the two"
            )
        return self

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        try:
            _ = self.support
        except ValueError:
            options = self.options()
            raise ValueError(
                "`low` must be smaller than `high`, in single precision too: received "
                f"{options['low']!r} and {options['high']!r}"
            ) from None
        return self


class OneOf:
    """Validates a name, or a name with options, as the part of that family.

    Args:
        base: Base class of the parts.
        families: The families by name. The annotations of a family are its options.

    Attributes:
        parts: The pydantic models of the families, by name.
    """

    def __init__(self, base: type[NamedPart], families: Mapping[str, type]):
        literal: Any = Literal
        self.parts: dict[str, Any] = {
            name: create_model(
                family.__name__,
                __base__=(family, base),
                __doc__=family.__doc__,
                __module__=__name__,
                name=(literal[name], name),
            )
            for name, family in families.items()
        }

    def make(self, name: str, **options: Any) -> Any:
        """Creates the part of a family."""
        return self.parts[name](**options)

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        literal: Any = Literal
        names = literal[tuple(sorted(self.parts))]
        # The members are known at run time only, where `|` has no form.
        union: Any = Union[tuple(self.parts.values())]  # noqa: UP007
        part: Any = Annotated[union, Field(discriminator="name")]
        given = BeforeValidator(_from_name, json_schema_input_type=names | part)
        return handler.generate_schema(Annotated[part, given])


def _from_name(given: Any) -> Any:
    """Returns `{"name": given}` for a name, and anything else as it is."""
    return {"name": given} if isinstance(given, str) else given


posteriors = OneOf(PosteriorPart, POSTERIORS)
priors = OneOf(PriorPart, {**PRIORS, "none": NoPrior})
estimators = OneOf(EstimatorPart, ESTIMATORS)
likelihoods = OneOf(LikelihoodPart, LIKELIHOODS)
recalibrations = OneOf(RecalibrationPart, {**RECALIBRATIONS, "none": NoRecalibration})
kl_schedules = OneOf(KLSchedulePart, KL_SCHEDULES)

Posterior = Annotated[PosteriorPart, posteriors]
Prior = Annotated[PriorPart, priors]
Estimator = Annotated[EstimatorPart, estimators]
Likelihood = Annotated[LikelihoodPart, likelihoods]
Recalibration = Annotated[RecalibrationPart, recalibrations]
KLSchedule = Annotated[KLSchedulePart, kl_schedules]

DEFAULT_LIKELIHOODS: dict[Task, LikelihoodPart] = {
    "regression": likelihoods.make("student_t", heteroscedastic=True),
    "classification": likelihoods.make("categorical"),
}
