"""Compares a version with the label's version before the label moves."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from tfbbb.base.known_fields import KnownFields

_NOMINAL = 0.9

Bound = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class GateError(Exception):
    """A version does not pass the gate; the message has the metrics of both."""


class Gate(KnownFields):
    """Bounds on how much worse than the label's current version a version may be.

    Both metrics come from the rows that were held out in the training of each version.
    They compare best for versions of one table and one seed, which hold out the same
    rows. With `min_feedback_rows` they are the running figures of feedback.
    """

    model_config = ConfigDict(frozen=True)

    max_nll_increase: Bound | None = Field(
        None,
        description="Largest increase of the negative log-likelihood per row, in nats.",
        examples=[0.05],
    )
    max_coverage_drop: Bound | None = Field(
        None,
        description="Largest increase of the distance between 0.9 and the coverage of "
        "the 90 % intervals.",
        examples=[0.05],
    )
    min_feedback_rows: int | None = Field(
        None,
        ge=1,
        lt=2**31,
        description="Compares the running figures of feedback in place of the held-out "
        "ones, and refuses a version with feedback about fewer rows.",
        examples=[None],
    )

    @model_validator(mode="after")
    def _check_has_bound(self) -> Self:
        if self.max_nll_increase is None and self.max_coverage_drop is None:
            raise ValueError("give `max_nll_increase`, `max_coverage_drop` or both")
        return self

    @property
    def rows(self) -> str:
        """The rows that the metrics are of, for messages."""
        return "held-out" if self.min_feedback_rows is None else "feedback"

    def check(self, current: Mapping[str, float], other: Mapping[str, float]) -> None:
        """Raises `GateError` unless the label may move to another version."""
        refusals = [*self._likelihood(current, other), *self._coverage(current, other)]
        if refusals:
            raise GateError("; ".join(refusals))

    def _likelihood(
        self, current: Mapping[str, float], other: Mapping[str, float]
    ) -> Iterator[str]:
        if self.max_nll_increase is None:
            return
        before, after = self._figures("log_likelihood", current, other)
        if after < before - self.max_nll_increase:
            yield (
                f"its {self.rows} negative log-likelihood is {-after:.6g}, the label's "
                f"version has {-before:.6g}, and the increase may be at most "
                f"{self.max_nll_increase:g}"
            )

    def _coverage(
        self, current: Mapping[str, float], other: Mapping[str, float]
    ) -> Iterator[str]:
        if self.max_coverage_drop is None:
            return
        before, after = self._figures("coverage_90", current, other)
        if abs(after - _NOMINAL) > abs(before - _NOMINAL) + self.max_coverage_drop:
            yield (
                f"its 90 % intervals cover {after:.2%} of the {self.rows} targets, "
                f"those of the label's version {before:.2%}, and the distance from 0.9 "
                f"may increase by at most {self.max_coverage_drop:g}"
            )

    def _figures(
        self, name: str, current: Mapping[str, float], other: Mapping[str, float]
    ) -> tuple[float, float]:
        for whose, figures in (("the label's", current), ("the other", other)):
            if name not in figures:
                raise GateError(
                    f"{whose} version has no {self.rows} `{name}` to compare"
                )
        return current[name], other[name]
