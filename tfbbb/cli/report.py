"""What training tells its user."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from tfbbb.data import Schema
    from tfbbb.training import TrainedTable

_LABELS = {
    "rmse": "root mean squared error",
    "log_likelihood": "log-likelihood per row",
    "coverage_90": "coverage of 90 % intervals",
    "accuracy": "accuracy",
}
_SHARES = ("coverage_90", "accuracy")


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
    typer.echo(
        f"{schema.task} of {schema.target.name!r}{what} from {len(kinds)} columns "
        f"({counts}{incomplete})"
    )


def echo_figures(trained: "TrainedTable") -> None:
    """Prints the held-out figures."""
    typer.echo(
        f"{len(trained.training_rows)} rows trained, {len(trained.held_out_rows)} held "
        "out:"
    )
    echo_metrics(trained.metrics)


def echo_metrics(metrics: Mapping[str, float]) -> None:
    """Prints figures, one per line."""
    for name, value in metrics.items():
        figure = f"{100 * value:.1f} %" if name in _SHARES else f"{value:.4g}"
        typer.echo(f"  {_LABELS[name]:<28}{figure:>8}")
