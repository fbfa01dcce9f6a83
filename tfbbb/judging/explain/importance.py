"""How much worse a model predicts without each column."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tfbbb.judging.evaluation.predicted_rows import PredictedRows
from tfbbb.judging.explain.rows import Rows, predicted, sampled
from tfbbb.judging.types import Inputs, Model


@dataclass(frozen=True)
class Importance:
    """How much worse rows are predicted after the values of a column are shuffled.

    Attributes:
        name: Name of the column.
        nats: The log-likelihood that is lost, in nats per row.
        nats_standard_error: Its standard error.
        error: The rise of the root mean squared error, in units of the target; for
            classes the share of rows that become wrong, and for times that may be cut
            off the rise of the integrated Brier score.
        error_standard_error: Its standard error.
        mean_change: By what the predicted means change, or the probabilities of the
            classes, as a root mean square.
        width_change: By what the predicted standard deviations change, or the entropies
            of classes in nats, as a root mean square: whether the column makes answers
            more or less sure.
    """

    name: str
    nats: float
    nats_standard_error: float
    error: float
    error_standard_error: float
    mean_change: float
    width_change: float


def permutation_importance(
    model: Model,
    inputs: Inputs,
    targets: np.ndarray,
    *,
    names: Sequence[str] | None = None,
    repeats: int = 3,
    max_rows: int = 1000,
    num_samples: int | None = None,
    seed: int = 0,
    track: Callable[[Sequence[str]], Iterable[str]] = iter,
) -> list[Importance]:
    """Measures the permutation importance of each column (Breiman 2001).

    The values of one column are shuffled among the rows, which keeps their distribution
    and breaks their relation to everything else. The loss of log-likelihood is

        mean_i [log p(y_i | x_i) - log p(y_i | x_i with a shuffled column)].

    Standard errors are those of the paired differences of rows, and count that each
    row also lends its value to another. Columns that stand in for one another share
    their importance: each alone may seem unimportant. `track` iterates over the names
    of the columns that are measured. The most important one comes first.
    """
    generator = np.random.default_rng(seed)
    rows = Rows.read(inputs, names)
    places = sampled(len(rows), max_rows, generator)
    rows, targets = rows.take(places), np.asarray(targets)[places]

    def score(rows: Rows) -> tuple[PredictedRows, np.ndarray]:
        # No interval is needed, and its search for quantiles takes time.
        prediction = predicted(model, rows, num_samples, seed)
        of_classes = hasattr(prediction, "probabilities")
        width = prediction.entropy if of_classes else prediction.stddev
        scored = PredictedRows.score(prediction, targets, np.zeros(targets.shape))
        return scored, np.asarray(width, np.float64)

    before, width = score(rows)
    errors = before.errors(targets)
    found = []
    for name in track(list(rows.columns)):
        orders = [generator.permutation(len(rows)) for _ in range(repeats)]
        after, widths = zip(
            *(
                score(rows.with_column(name, rows.columns[name][order]))
                for order in orders
            ),
            strict=True,
        )
        nats = np.stack([before.log_prob - shuffled.log_prob for shuffled in after])
        rise, parts = _rise(
            errors,
            np.stack([shuffled.errors(targets) for shuffled in after]),
            before.of_classes or before.scores is not None,
        )
        found.append(
            Importance(
                name,
                float(nats.mean()),
                _standard_error(nats, orders),
                rise,
                _standard_error(parts, orders),
                _root_mean_square([each.mean - before.mean for each in after]),
                _root_mean_square([each - width for each in widths]),
            )
        )
    return sorted(found, key=lambda importance: -importance.nats)


def _root_mean_square(differences: Sequence[np.ndarray]) -> float:
    return float(np.sqrt(np.mean(np.square(np.asarray(differences, np.float64)))))


def _rise(
    before: np.ndarray, after: np.ndarray, of_classes: bool
) -> tuple[float, np.ndarray]:
    """Returns by what an error rises, and the part of each row in that."""
    if of_classes:
        return float(np.mean(after - before)), after - before
    tiny = np.finfo(np.float64).tiny
    roots = [float(np.sqrt(errors.mean())) for errors in (before, after)]
    # A square root of a mean m varies as the mean of `x_i / (2 sqrt(m))`.
    own, shuffled = (
        errors / max(2.0 * root, tiny)
        for errors, root in zip((before, after), roots, strict=True)
    )
    return roots[1] - roots[0], shuffled - own


def _standard_error(parts: np.ndarray, orders: Sequence[np.ndarray]) -> float:
    """Returns the standard error of the mean of the parts of the rows.

    A row takes part as itself, and with its value in another row. The mean is a
    U-statistic (Hoeffding 1948): the influences of both parts of a row add up.
    """
    influences = parts.mean(axis=0)
    if len(influences) < 2:
        return 0.0
    given = np.zeros_like(influences)
    for part, order in zip(parts, orders, strict=True):
        given[order] += part / len(parts)
    both = influences + given
    return float(both.std(ddof=1) / np.sqrt(len(both)))
