"""What training tells its user."""

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from tfbbb.data import Schema
    from tfbbb.training import TrainedTable

_LABELS = {
    "rmse": "root mean squared error",
    "mean_absolute_error": "mean absolute error",
    "coverage_90": "coverage of 90 % intervals",
    "accuracy": "accuracy",
    "brier_score": "Brier score",
    "log_likelihood": "log-likelihood per row",
}
_NOTE = (
    "They average over the posterior. nll and val_nll of the progress bar are the\n"
    "negative log-likelihood per row, too, but of single draws of the weights: they\n"
    "vary, and are higher as a rule."
)
_SHARES = ("coverage_90", "accuracy")
_MOST_NAMES = 12
_MOST_USUAL_CATEGORIES = 50


def echo_schema(schema: "Schema") -> None:
    """Prints what is predicted from what."""
    kinds = [column.kind for column in schema.features]
    counts = ", ".join(
        f"{kinds.count(kind)} {word}"
        for kind, word in (("numeric", "of numbers"), ("categorical", "of text"))
        if kind in kinds
    )
    gaps = sum(column.missing for column in schema.features)
    incomplete = f", {gaps} with missing values" if gaps else ""
    what = f" in {len(schema.classes)} classes" if schema.classes else ""
    columns = "1 column" if len(kinds) == 1 else f"{len(kinds)} columns"
    typer.echo(
        f"{schema.task} of {schema.target.name!r}{what} from {columns} "
        f"({counts}{incomplete})"
    )
    for kind, word in (("numeric", "numbers"), ("categorical", "text")):
        names = [column.name for column in schema.features if column.kind == kind]
        if names:
            typer.echo(f"  {word + ':':<9}{_listed(names)}")


def echo_identifiers(schema: "Schema", num_rows: int) -> None:
    """Warns of text from which nothing can be learned, as each row has its own."""
    for column in schema.features:
        distinct = len(column.categories)
        if distinct > _MOST_USUAL_CATEGORIES and 2 * distinct > num_rows:
            typer.echo(
                f"Warning: column {column.name!r} has {distinct} distinct texts in "
                f"{num_rows} rows and looks like an identifier; --ignore "
                f"{shlex.quote(column.name)} leaves it out.",
                err=True,
            )


def echo_figures(trained: "TrainedTable") -> None:
    """Prints the held-out figures."""
    typer.echo(
        f"{trained.num_training_rows} rows trained, {len(trained.held_out_rows)} held "
        "out:"
    )
    echo_metrics(trained.metrics)


def echo_metrics(metrics: Mapping[str, float]) -> None:
    """Prints figures, one per line; the nll is the log-likelihood once more.

    The progress bar above them has the nll, too, and another: that of one draw of the
    weights per step. In its mean over the draws it is no less than the nll of their
    average (Jensen's inequality), which the figures are of.
    """
    for name, value in metrics.items():
        if name not in _LABELS:
            continue
        figure = f"{100 * value:.1f} %" if name in _SHARES else f"{value:.4g}"
        typer.echo(f"  {_LABELS[name]:<28}{figure:>8}")
    if "log_likelihood" in metrics:
        typer.echo(_NOTE)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
