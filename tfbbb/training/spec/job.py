"""A whole job: what to learn from a table, with what network, and how."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from tfbbb.data.task import Task
from tfbbb.families.arguments import Integer
from tfbbb.training.spec.columns import check_columns
from tfbbb.training.spec.model import ModelSpec
from tfbbb.training.spec.part import ColumnName, SpecPart
from tfbbb.training.spec.training import TrainingSpec

MAX_FEATURES = 100_000
Names = Annotated[
    tuple[ColumnName, ...], Field(max_length=MAX_FEATURES, fail_fast=True)
]


class Version(SpecPart):
    """A version of a model that has been trained here."""

    model: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$",
            description="Name of the model.",
            examples=["concrete"],
        ),
    ]
    version: Annotated[Integer, Field(ge=1, le=2**31 - 1, examples=[1])]


class JobSpec(SpecPart):
    """What to train: a target, and whatever is to be other than by default.

    Example:

    >>> spec = JobSpec.model_validate(
    ...     {"target": "strength", "model": {"posterior": "low_rank_normal"}}
    ... )
    >>> spec.model.posterior.rank, spec.training.learning_rate.initial
    (2, 0.01)
    """

    target: Annotated[
        ColumnName, Field(description="The column to predict.", examples=["strength"])
    ]
    features: Annotated[
        Names | None,
        Field(
            min_length=1,
            description="The columns to predict from; by default all others.",
            examples=[["cement", "water", "age"]],
        ),
    ] = None
    task: Annotated[
        Task | None,
        Field(description="By default text and booleans are classified."),
    ] = None
    text_columns: Annotated[
        Names,
        Field(description="Features that are text although mostly numbers."),
    ] = ()
    model: ModelSpec = ModelSpec()
    training: TrainingSpec = TrainingSpec()
    start_from: Annotated[
        Version | None,
        Field(
            description="A version whose posterior is the prior of this one: only "
            "rows that it has not seen are needed. Features, scaling, categories and "
            "network are that version's; what it learned of the noise is only the "
            "start, as that is a point estimate."
        ),
    ] = None

    @model_validator(mode="after")
    def _columns_have_one_role(self) -> Self:
        features = self.features or ()
        name, count = Counter(features).most_common(1)[0] if features else ("", 0)
        if count > 1:
            raise ValueError(f"`features` names the column {name!r} {count} times")
        if self.target in features:
            raise ValueError(f"the target {self.target!r} can't be a feature as well")
        held_out = self.training.validation.column
        if held_out is not None and held_out in (self.target, *features):
            raise ValueError(
                f"the column {held_out!r} says which rows are held out; it can't be "
                "the target or a feature as well"
            )
        return self

    @model_validator(mode="after")
    def _task_is_the_likelihoods(self) -> Self:
        likelihood, task = self.model.likelihood, self.task
        if likelihood is not None and task is not None and likelihood.task != task:
            raise ValueError(
                f"the likelihood '{likelihood.name}' is for a {likelihood.task}: "
                f"received task '{task}'"
            )
        return self

    def check_columns(self, columns: Sequence[Mapping[str, Any]]) -> None:
        """Checks that a table has what the spec asks for.

        Args:
            columns: Of each column of the table its `name` and `type` ("number",
                "text", "boolean", or any other), and where known `missing`, `distinct`
                and, of numbers, `min` and `max`.

        Raises:
            SpecError: It has not; the message is one sentence.
        """
        check_columns(
            columns,
            target=self.target,
            features=self.features,
            text_columns=self.text_columns,
            held_out=self.training.validation.column,
            task=self.task,
            likelihood=self.model.likelihood,
        )
