"""The training options of a spec."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tfbbb.bayes.families.arguments import Integer, Number, PositiveNumber
from tfbbb.training.spec.families import ColumnName, KLSchedule, Option, SpecPart

DEFAULT_FRACTION = 0.1
MAX_HELD_OUT = 10_000
Effort = Literal["quick", "default", "best"]


class Validation(SpecPart):
    """The held-out rows, which give the metrics and decide about early stopping."""

    fraction: Annotated[
        Number | None,
        Field(
            gt=0,
            lt=1,
            description=f"Fraction of the rows, drawn at random unless `time` says "
            f"otherwise; by default {DEFAULT_FRACTION:g}, but at most {MAX_HELD_OUT} "
            "rows.",
            examples=[0.2],
        ),
        Option("validation_fraction"),
    ] = None
    column: Annotated[
        ColumnName | None,
        Field(
            description="A column that is true or 1 in the held-out rows; it is not "
            "a feature.",
            examples=["is_test"],
        ),
        Option("validation_column"),
    ] = None
    time: Annotated[
        ColumnName | None,
        Field(
            description="A column of numbers, dates or times. The last rows in its "
            "order give the figures: half of the members leave out the last fifth; "
            "with a `fraction`, and where rows are held out, all members do. Rows of "
            "equal time stay together. It is a feature unless it predicts later rows "
            "worse.",
            examples=["sold_on"],
        ),
        Option("validation_time"),
    ] = None
    group: Annotated[
        ColumnName | None,
        Field(
            description="A column of which all rows with the same value stay together: "
            "no member trains on rows of a group that it is measured on. With a "
            "`fraction`, whole groups are held out. It is a feature only if `features` "
            "names it.",
            examples=["patient"],
        ),
        Option("validation_group"),
    ] = None

    @property
    def decided_by(self) -> str | None:
        """The column that decides which rows stay together or are held out."""
        return self.column or self.time or self.group

    @model_validator(mode="after")
    def _check_exclusive(self) -> Self:
        if self.fraction is not None and self.column is not None:
            raise ValueError("give a `fraction` or a `column`, not both")
        if sum(name is not None for name in (self.column, self.time, self.group)) > 1:
            raise ValueError("give one of `column`, `time` and `group`")
        return self


class EarlyStopping(SpecPart):
    """Ends training when the likelihood of the held-out rows stops growing."""

    patience: Annotated[
        Integer,
        Field(
            ge=1,
            le=10**6,
            description="Epochs to wait for a better epoch, after any warm-up.",
        ),
    ] = 20
    min_delta: Annotated[
        Number,
        Field(ge=0, description="Least improvement that counts, in nats per row."),
    ] = 0.0


class TrainingSpec(SpecPart):
    """The training: by default 1000 or 3500 steps, but at least three epochs."""

    effort: Annotated[
        Effort,
        Field(
            description="How much is trained, where no other field says so: `quick` "
            "trains one network at one temperature for some 40 % of the steps, for a "
            "first model that is somewhat less exact; `best` trains twice as many "
            "members, each on more of the rows, which takes about three times as long."
        ),
        Option(),
    ] = "default"
    epochs: Annotated[
        Integer | None,
        Field(ge=1, le=10**6, description="Passes over the rows.", examples=[40]),
        Option(),
    ] = None
    steps: Annotated[
        Integer | None,
        Field(
            ge=1,
            le=10**9,
            description="Steps of the optimizer, instead of `epochs`; rounded up to "
            "whole passes over the rows.",
            examples=[6000],
        ),
    ] = None
    batch_size: Annotated[
        Integer | None,
        Field(
            ge=1,
            le=10**6,
            description="Rows per step; by default 32 to 256, depending on the rows.",
        ),
        Option(),
    ] = None
    learning_rate: Annotated[
        PositiveNumber | None,
        Field(
            description="Learning rate of the first step, which falls to 0 along a "
            "cosine; by default 0.02, and 0.01 from 5000 rows on.",
            examples=[0.01],
        ),
        Option(),
    ] = None
    validation: Validation = Validation()
    early_stopping: Annotated[
        EarlyStopping | None, Field(description="Early stopping; null to disable it.")
    ] = None
    kl_schedule: Annotated[
        KLSchedule | None,
        Field(
            description="How the weight of the divergence changes: a name, or a name "
            "with options. By default training tries several temperatures and keeps "
            "the one with the greatest likelihood of rows that were left out.",
            examples=["linear_warmup", {"name": "tempered", "temperature": 0.3}],
        ),
    ] = None
    max_seconds: Annotated[
        PositiveNumber | None,
        Field(
            description="Seconds from the start of a training, or from the moment when "
            "a trainer takes a job, to the version, with the time to load TensorFlow; "
            "the model is then that of the last step. One step is taken in any case, "
            "and what follows the steps is estimated from it, so the training may take "
            "somewhat longer. By default no limit.",
            examples=[60],
        ),
        Option(),
    ] = None
    seed: Annotated[
        Integer,
        Field(
            ge=0,
            le=2**31 - 1,
            description="Seed of the split, initial weights, order of rows and noise.",
        ),
        Option(),
    ] = 0

    @model_validator(mode="after")
    def _check_exclusive(self) -> Self:
        if self.epochs is not None and self.steps is not None:
            raise ValueError("give `epochs` or `steps`, not both")
        return self

    @model_validator(mode="after")
    def _check_warmup(self) -> Self:
        if self.epochs is not None:
            self.check_warmup(self.epochs)
        return self

    @property
    def warmup_epochs(self) -> float:
        """Number of epochs before the divergence has its full weight."""
        return self.kl_schedule.make().warmup_epochs if self.kl_schedule else 0.0

    @property
    def temperature(self) -> float:
        """The constant temperature of the posterior; 1 if none is given."""
        return getattr(self.kl_schedule, "temperature", 1.0)

    def check_warmup(self, epochs: int) -> None:
        """Raises ValueError unless an epoch is left after the warm-up.

        Otherwise the posterior would be narrower than that of Bayes' rule.
        """
        if self.warmup_epochs > epochs - 1:
            raise ValueError(
                f"a warm-up of {self.warmup_epochs:g} epochs leaves none of {epochs} "
                "at temperature 1: give `kl_schedule` fewer `epochs`, or train longer"
            )
