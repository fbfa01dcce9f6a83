"""The parts of a spec that name a family, with or without options."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    Self,
    TypeVar,
    Union,
    cast,
)

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema

from tfbbb.base.known_fields import KnownFields
from tfbbb.base.strategy import Registry, options
from tfbbb.base.task import Task
from tfbbb.bayes import kl_schedules as _kl_schedules
from tfbbb.bayes import likelihoods as _likelihoods
from tfbbb.bayes import posteriors as _posteriors
from tfbbb.bayes import priors as _priors
from tfbbb.bayes.families.recalibrations import RECALIBRATIONS, RecalibrationFamily
from tfbbb.bayes.families.support import Support
from tfbbb.bayes.likelihoods.likelihood import given_noise

ColumnName = Annotated[str, Field(min_length=1, max_length=10_000)]
T = TypeVar("T")
Part = TypeVar("Part", bound="FamilyPart[Any]")


@dataclass(frozen=True)
class Option:
    """Marks a field that commands have an option for, by its own or another name."""

    name: str | None = None


class SpecError(ValueError):
    """A spec cannot be trained, or not on this table.

    Args:
        message: One sentence that says what to change.
        field: The path of the field to change, or None.
    """

    def __init__(self, message: str, field: str | None = None):
        super().__init__(message)
        self.field = field


class SpecPart(KnownFields):
    """An immutable part of a spec, without unknown fields or infinite numbers."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class FamilyPart(SpecPart, Generic[T]):
    """A family with its options; its class is None for the name `none`.

    In a spec, the name alone is the family with its default options.
    """

    name: str
    family: ClassVar[Any] = None

    def options(self) -> dict[str, Any]:
        """Returns the arguments of the class with this name."""
        return self.model_dump(exclude={"name"})

    def make(self) -> T:
        """Makes the object of the family with these options."""
        return self.family(**self.options())


class PosteriorPart(FamilyPart[_posteriors.Posterior]):
    """The family q(w) of some weights."""


class PriorPart(FamilyPart[_priors.Prior]):
    """The prior p(w) of some weights."""

    @property
    def bounded(self) -> bool:
        """Whether the density has an upper bound."""
        bounded = self.family.bounded
        # A prior with a matrix is not made here, which would take long.
        return bounded if isinstance(bounded, bool) else self.make().bounded


class KLSchedulePart(FamilyPart[_kl_schedules.KLSchedule]):
    """The schedule of the divergence's weight."""


class RecalibrationPart(FamilyPart[RecalibrationFamily]):
    """The recalibration of a model."""

    def check_task(self, task: Task) -> None:
        """Raises `SpecError` unless the recalibration suits a task."""
        suited = self.family and self.family.task
        if suited not in (None, task):
            raise SpecError(
                f"The recalibration '{self.name}' is for a {suited}, but the task of "
                f"the target is {task}; leave `recalibration` out.",
                "recalibration",
            )


class LikelihoodPart(FamilyPart[_likelihoods.Likelihood]):
    """The likelihood of a model."""

    @property
    def label(self) -> str:
        """The name, with that of the likelihood that it is made of."""
        base = self.options().get("base")
        return self.name if base is None else f"{self.name} {base}"

    @property
    def support(self) -> Support | None:
        """The numbers that a target may be; None for classes."""
        return self.family.support_of(**self.options())

    @model_validator(mode="after")
    def _check_noise(self) -> Self:
        given = given_noise(self)
        if given and getattr(self, "heteroscedastic", False):
            raise ValueError(
                f"the noise is either given (`{given}`) or an output of the "
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


class OneOf(Generic[Part]):
    """Validates a name, or a name with options, as the part of that family.

    `parts` are the pydantic models of the families by name; `none` says what the name
    `none` stands for, if there is such a name.
    """

    def __init__(
        self,
        base: type[Part],
        families: Mapping[str, type],
        descriptions: Mapping[str, str],
        none: str | None = None,
    ):
        self._base = base
        # `KLSchedulePart` names its parts `ConstantSchedule`.
        self._kind = base.__name__.removeprefix("KL").removesuffix("Part")
        self.parts: dict[str, type[Part]] = {
            name: self._part(name, family.__name__, descriptions[name], family)
            for name, family in sorted(families.items())
        }
        if none is not None:
            self.parts["none"] = self._part("none", "No", none, None)

    def _part(
        self, name: str, prefix: str, description: str, family: type | None
    ) -> Any:
        literal: Any = Literal
        fields: dict[str, Any] = options(family) if family else {}
        class_name = prefix if prefix.endswith(self._kind) else f"{prefix}{self._kind}"
        part = cast(
            Any,
            create_model(
                class_name,
                __base__=self._base,
                __doc__=description,
                __module__=__name__,
                **fields,
                name=(literal[name], name),
            ),
        )
        part.family = family
        return part

    def make(self, name: str, **options: Any) -> Part:
        """Creates the part of a family."""
        return self.parts[name](**options)

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        literal: Any = Literal
        names = literal[tuple(sorted(self.parts))]
        # The members are known at run time only, where `|` has no form.
        union: Any = Union[tuple(self.parts.values())]  # noqa: UP007
        part: Any = Annotated[union, Field(discriminator="name")]
        given = BeforeValidator(_from_name, json_schema_input_type=names | part)
        return handler.generate_schema(Annotated[part, given])


def _from_name(given: object) -> object:
    """Returns `{"name": given}` for a name, and anything else as it is."""
    return {"name": given} if isinstance(given, str) else given


def _registered(
    base: type[Part], registry: Registry[Any], none: str | None = None
) -> OneOf[Part]:
    described = registry.descriptions
    classes = {name: registry.classes[name] for name in described}
    return OneOf(base, classes, described, none)


posteriors = _registered(PosteriorPart, _posteriors.registry)
priors = _registered(
    PriorPart, _priors.registry, "None, for the posterior `point`: maximum likelihood."
)
likelihoods = _registered(LikelihoodPart, _likelihoods.registry)
recalibrations = OneOf(
    RecalibrationPart,
    RECALIBRATIONS,
    {name: family.__doc__ or "" for name, family in RECALIBRATIONS.items()},
    "None: the predictions of the network as they are.",
)
kl_schedules = _registered(KLSchedulePart, _kl_schedules.registry)

Posterior = Annotated[PosteriorPart, posteriors]
Prior = Annotated[PriorPart, priors]
Likelihood = Annotated[LikelihoodPart, likelihoods]
Recalibration = Annotated[RecalibrationPart, recalibrations]
KLSchedule = Annotated[KLSchedulePart, kl_schedules]

DEFAULT_LIKELIHOODS: dict[Task, LikelihoodPart] = {
    "regression": likelihoods.make("student_t", heteroscedastic=True),
    "classification": likelihoods.make("categorical"),
}
# Of counts with an exposure, and of times that may be cut off.
COUNTS = likelihoods.make("negative_binomial")
TIMES = likelihoods.make("weibull")
