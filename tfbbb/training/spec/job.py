"""The spec of a job: the target, the features, the network and the training."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from tfbbb.base.task import Task
from tfbbb.base.texts import MODEL_NAME
from tfbbb.bayes.families.arguments import Integer
from tfbbb.tables.column_names import describe_missing_columns, named_targets
from tfbbb.tables.override import Override, OverrideError
from tfbbb.training.spec.families import (
    ColumnName,
    Option,
    Recalibration,
    SpecError,
    SpecPart,
    recalibrations,
)
from tfbbb.training.spec.model import ModelSpec
from tfbbb.training.spec.training import TrainingSpec

MAX_FEATURES = 100_000
MAX_TARGETS = 50
Names = Annotated[
    tuple[ColumnName, ...], Field(max_length=MAX_FEATURES, fail_fast=True)
]


_MOST_CHARACTERS = 10_000
_COUNTS = "'poisson' or 'negative_binomial'"
_TIMES = "'log_normal' or 'weibull'"


def _check_overrides(given: object) -> dict[str, str]:
    """Checks what columns are, by name, and stops at the first of many faults."""
    if not isinstance(given, Mapping) or len(given) > MAX_FEATURES:
        raise ValueError(
            f"Must map names of at most {MAX_FEATURES} columns to what they are"
        )
    for name, kind in given.items():
        for text in (name, kind):
            if not isinstance(text, str) or not 1 <= len(text) <= _MOST_CHARACTERS:
                raise ValueError(
                    "Must map names of columns to texts of 1 to "
                    f"{_MOST_CHARACTERS} characters"
                )
        try:
            Override.parse(kind)
        except OverrideError as error:
            raise ValueError(f"Column {name[:100]!r}: {error}") from None
    return dict(given)


def _check_targets(given: object) -> str | tuple[str, ...]:
    """Checks the name of a target, or the names of several."""
    names: list[Any] = [*given] if isinstance(given, list | tuple) else [given]
    are_names = (isinstance(x, str) and 1 <= len(x) <= _MOST_CHARACTERS for x in names)
    if not 1 <= len(names) <= MAX_TARGETS or not all(are_names):
        raise ValueError(
            f"Must be the name of a column, of 1 to {_MOST_CHARACTERS} characters, or "
            f"a list of at most {MAX_TARGETS} names"
        )
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise ValueError(f"Names the column {name!r} {count} times")
    found: str | tuple[str, ...] = names[0] if len(names) == 1 else tuple(names)
    return found


class Version(SpecPart):
    """A version of a model of this service."""

    model: Annotated[
        str,
        Field(
            pattern=f"^{MODEL_NAME}$",
            description="Name of the model.",
            examples=["concrete"],
        ),
    ]
    version: Annotated[Integer, Field(ge=1, le=2**31 - 1, examples=[1])]


class JobSpec(SpecPart):
    """What to train: a target or several, and any non-default options.

    Example:

    >>> spec = JobSpec.model_validate(
    ...     {"target": "strength", "model": {"posterior": "low_rank_normal"}}
    ... )
    >>> spec.model.posterior.rank, spec.training.effort
    (2, 'default')
    """

    target: Annotated[
        str | Annotated[tuple[str, ...], Field(fail_fast=True)],
        BeforeValidator(_check_targets),
        Field(
            description="The column to predict, or a list of columns of numbers to "
            "predict together, as one distribution.",
            examples=["strength"],
        ),
    ]
    features: Annotated[
        Names | None,
        Field(
            min_length=1,
            description="The columns to predict from; by default all others.",
            examples=[["cement", "water", "age"]],
        ),
    ] = None
    exposure: Annotated[
        ColumnName | None,
        Field(
            description="The column that a count is counted per: person-days, "
            "kilometres, insured years. Twice the exposure is exactly twice the "
            "predicted count, and rows to predict need it.",
            examples=["person_days"],
        ),
        Option(),
    ] = None
    event: Annotated[
        ColumnName | None,
        Field(
            description="Of times that may be cut off, the column that says whether "
            "the event happened then: 1, true or yes, and 0, false or no where the row "
            "was still running. Rows to predict do not need it.",
            examples=["relapsed"],
        ),
        Option(),
    ] = None
    task: Annotated[
        Task | None,
        Field(
            description="By default a classification if the target is text, boolean, "
            "or all 0 and 1."
        ),
        Option(),
    ] = None
    columns: Annotated[
        Mapping[str, str],
        PlainValidator(_check_overrides),
        WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
        Field(
            description="What columns are, by name, in place of what their cells "
            "suggest: `number`, `boolean`, `date`, `duration`, `ordered`, `text`, "
            "`hashed` or `ignore`, with options after a colon.",
            examples=[{"price": "number:currency", "size": "ordered:S,M,L"}],
        ),
        Option("column"),
    ] = {}
    model: ModelSpec = ModelSpec()
    training: TrainingSpec = TrainingSpec()
    recalibration: Annotated[
        Recalibration,
        Field(
            description="The calibration of the predictions on held-out rows: a name, "
            "or a name with options.",
            examples=["none", {"name": "auto", "by": "region"}],
        ),
    ] = recalibrations.make("auto")
    publish: Annotated[
        Literal["if_not_worse", "always", "never"],
        Field(
            description="When the new version becomes `latest`, which predicts by "
            "default: `if_not_worse` unless its model learned nothing of use, is "
            "wrong in sum or clearly worse than the version that is `latest`, "
            "`always` in any case, `never` before somebody says so."
        ),
    ] = "if_not_worse"
    start_from: Annotated[
        Version | None,
        Field(
            description="The parent version, whose posterior becomes the prior: the "
            "table needs only new rows. Features, scaling, categories and network are "
            "those of the parent version. Its learned noise, a point estimate, is only "
            "the initial value."
        ),
        Option(),
    ] = None

    def publishes(self, is_fit: bool) -> bool:
        """Returns whether a version that `is_fit` becomes `latest`."""
        return {"always": True, "never": False}.get(self.publish, is_fit)

    @model_validator(mode="after")
    def _check_roles(self) -> Self:
        features = self.features or ()
        name, count = Counter(features).most_common(1)[0] if features else ("", 0)
        if count > 1:
            raise ValueError(f"`features` names the column {name!r} {count} times")
        for target in self.targets:
            if target in features:
                raise ValueError(f"the target {target!r} cannot be a feature as well")
        if self.exposure is not None and self.event is not None:
            raise ValueError(
                "an exposure is one of counts and an event one of times: name one only"
            )
        for what, beside in (("exposure", self.exposure), ("event", self.event)):
            if beside is not None and len(self.targets) > 1:
                raise ValueError(f"several targets have no {what}: train one by one")
            if beside is not None and beside in (*self.targets, *features):
                role = "target" if beside in self.targets else "feature"
                raise ValueError(f"the {what} {beside!r} cannot be the {role} as well")
        held_out = self.training.validation.column
        if held_out is not None and held_out in (*self.targets, *features):
            raise ValueError(
                f"the validation column {held_out!r} cannot be the target or a "
                "feature as well"
            )
        decided_by = self.training.validation.decided_by
        if decided_by in self.targets:
            raise ValueError(
                f"the target {decided_by!r} cannot decide which rows are held out"
            )
        by = self.recalibrated_by
        if by is not None and by not in (features or {by} - self.not_features):
            raise ValueError(
                "the groups of a recalibration must be told apart by a feature; "
                f"{by!r} is not one"
            )
        return self

    @model_validator(mode="after")
    def _check_overruled(self) -> Self:
        for target in self.targets:
            if self.columns.get(target, "").startswith("ignore"):
                raise ValueError(f"the target {target!r} cannot be ignored")
        for name in self.features or ():
            if self.columns.get(name, "").startswith("ignore"):
                raise ValueError(f"the feature {name!r} cannot be ignored as well")
        return self

    @model_validator(mode="after")
    def _check_task(self) -> Self:
        likelihood, task = self.model.likelihood, self.task
        for is_given, what, names, takes in (
            (self.exposure, "an exposure is one of counts", _COUNTS, "takes_exposure"),
            (self.event, "an event is one of times", _TIMES, "takes_event"),
        ):
            suits = likelihood is None or getattr(likelihood.family, takes)
            if is_given is not None and (task == "classification" or not suits):
                received = f"the likelihood '{likelihood.name}'" if likelihood else task
                raise ValueError(
                    f"{what}, whose likelihood is {names}; received {received}"
                )
        if likelihood and task and likelihood.family.task != task:
            raise ValueError(
                f"the likelihood '{likelihood.name}' is for a "
                f"{likelihood.family.task}; received the task '{task}'"
            )
        if len(self.targets) > 1 and self.asked_task == "classification":
            raise ValueError(
                "several targets are predicted together only if they are numbers; "
                "train a model for each target of classes"
            )
        return self

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the targets."""
        return (self.target,) if isinstance(self.target, str) else self.target

    @property
    def asked_task(self) -> Task | None:
        """The task that the spec says or implies; None if the target tells it."""
        likelihood = self.model.likelihood
        if self.exposure is not None or self.event is not None:
            return "regression"
        if self.task or likelihood:
            return self.task or (likelihood.family.task if likelihood else None)
        return "regression" if len(self.targets) > 1 else None

    @property
    def not_features(self) -> frozenset[str]:
        """The columns that are features only if `features` names them."""
        validation = self.training.validation
        others = (validation.column or validation.group, self.exposure, self.event)
        return frozenset({*self.targets, *filter(None, others)})

    @property
    def recalibrated_by(self) -> str | None:
        """The feature whose values tell the groups of the recalibration apart."""
        return getattr(self.recalibration, "by", None)

    def check_columns(self, columns: Sequence[Mapping[str, Any]]) -> None:
        """Raises `SpecError` unless the columns of a table fit the spec.

        Each has a `name` and a `type` ("number", "text", "boolean" or another), and if
        known `distinct`, `min` and `max` of numbers, the `most_common` texts, and the
        `kind` for which training takes them.
        """
        by_name = {column["name"]: column for column in columns}
        validation, by = self.training.validation, self.recalibrated_by
        named: list[tuple[str, str, Iterable[str | None]]] = [
            ("target", "target", self.targets),
            ("exposure", "exposure", [self.exposure]),
            ("event", "event", [self.event]),
            ("recalibration.by", "group", [by]),
            ("training.validation.column", "validation", [validation.column]),
            ("training.validation.time", "time", [validation.time]),
            ("training.validation.group", "group", [validation.group]),
            ("columns", "overruled", self.columns),
            ("features", "feature", self.features or ()),
        ]
        for field, role, names in named:
            asked = [name for name in names if name is not None]
            if missing := describe_missing_columns(asked, list(by_name), role=role):
                raise SpecError(missing, field)
        if self.features is None and not by_name.keys() - self.not_features:
            raise SpecError(
                f"The table has no column other than {named_targets(self.targets)}.",
                "features",
            )
        task = self.asked_task
        for role in ("exposure", "event"):
            if (beside := getattr(self, role)) is not None:
                _check_role(by_name[beside], role)
        for name in self.targets:
            if name not in self.columns:
                _check_target(by_name[name], task)
                task = task or _task_of(by_name[name])
        if task is not None:
            self.recalibration.check_task(task)


def _check_role(column: Mapping[str, Any], role: str) -> None:
    """Raises `SpecError` for a column whose least or greatest number is impossible."""
    for end in (column.get("min"), column.get("max")):
        if end is not None and (end <= 0 if role == "exposure" else end not in (0, 1)):
            must = "a positive number in every row" if role == "exposure" else "0 or 1"
            raise SpecError(
                f"The {role} {column['name']!r} must be {must}, but has the value "
                f"{end:g}; drop or fill such rows.",
                role,
            )


def _task_of(column: Mapping[str, Any]) -> Task | None:
    """Returns the task of a target; None of text, which may be numbers."""
    if column["type"] == "text":
        return None
    of_two = column.get("distinct") == 2
    if of_two and (column.get("min"), column.get("max")) == (0, 1):
        return "classification"
    return "regression" if column["type"] == "number" else "classification"


# What training takes a column of texts for that may be a target of numbers.
_KINDS_OF_NUMBERS = (None, "number", "duration")


def _check_target(column: Mapping[str, Any], task: Task | None) -> None:
    """Raises `SpecError` for a column that cannot be a target."""
    name, kind, distinct = column["name"], column["type"], column.get("distinct")
    if kind not in ("number", "text", "boolean"):
        raise SpecError(
            f"The target {name!r} holds values of type {kind}, but must hold numbers, "
            "text or booleans.",
            "target",
        )
    if distinct == 0:
        raise SpecError(
            f"The target {name!r} has no values; name another column.", "target"
        )
    if distinct == 1:
        raise SpecError(
            f"The target {name!r} has the same value in every row, so there is nothing "
            "to learn.",
            "target",
        )
    is_text = kind == "text" and column.get("kind") not in _KINDS_OF_NUMBERS
    if task == "regression" and is_text:
        examples = [repr(text) for text, _ in column.get("most_common", ())[:3]]
        raise SpecError(
            f"The target {name!r} has texts such as {', '.join(examples)}, but must "
            "hold numbers; the task 'classification' predicts which text a row has.",
            "target",
        )
