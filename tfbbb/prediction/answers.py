"""The answers about the predictive distributions of some rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tfbbb.types import Tensor

Summary = dict[str, Any]
# Takes levels [Q] and returns the answered quantiles of all rows, [rows, Q, ..., k].
Quantiles = Callable[[np.ndarray], Any]


@dataclass(frozen=True)
class Answers:
    """The answers about one output of a network, by a live or an exported model.

    Attributes:
        functions: For the name of each question, a function of the outputs
            [rows, S, ..., P] and the question's arguments.
        task: `"regression"` or `"classification"`.
        ordered: Whether targets have a distribution function and quantiles.
        discrete: Whether targets are integers.
        noise_size: Number of standard normals that a sample takes.
        check_targets: Returns targets, of one row each, in the shape that the functions
            take; raises ValueError for values that cannot be targets.
        classes: Names of the classes; None without classes or names.
        summary: Changes the summary of the mixture into the answered one, by the
            answered quantiles; None if nothing changes.
        reach: Returns how far the intervals of levels [...] reach from the mean, in
            standard deviations, [..., k]: infinity for a level without a finite
            interval. None if intervals lie between two quantiles.
    """

    functions: Mapping[str, Callable[..., Any]]
    task: Literal["regression", "classification"]
    ordered: bool
    discrete: bool
    noise_size: int
    check_targets: Callable[[Any], np.ndarray]
    classes: Sequence[str] | None = None
    summary: Callable[[Summary, Quantiles], Summary] | None = None
    reach: Callable[[Any], Any] | None = None

    @property
    def central_intervals(self) -> bool:
        """Whether intervals lie between two quantiles."""
        return self.reach is None

    def ask(self, question: str, outputs: Tensor, *arguments: Any) -> Any:
        """Returns the answer to the question of this name.

        Raises:
            ValueError: For a question that a file of an older version cannot answer.
        """
        if question not in self.functions:
            raise ValueError(
                "This file was written by an older tfbbb, which did not know the "
                "question; export the model again. "
                f"Received: question={question!r}, known are {sorted(self.functions)}"
            )
        return self.functions[question](outputs, *arguments)
