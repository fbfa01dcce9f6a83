"""Messages of training: the schema, warnings and the held-out metrics."""

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from tfbbb.cli.judgement_table import echo_judgement

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
    "These metrics average over the posterior. The nll and val_nll of the progress\n"
    "bar are negative log-likelihoods per row of single draws of the weights: they\n"
    "vary, and are usually higher."
)
_SHARES = ("coverage_90", "accuracy")
_MAX_NAMES_SHOWN = 12
# A column with more categories may be an identifier.
_MAX_USUAL_CATEGORIES = 50


def echo_schema(schema: "Schema") -> None:
    """Prints the task, the target and the features."""
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
            typer.echo(f"  {word + ':':<9}{_join_names(names)}")


def echo_identifiers(schema: "Schema", num_rows: int) -> None:
    """Warns of text columns that identify rows: training learns nothing from them."""
    for column in schema.features:
        distinct = len(column.categories)
        if distinct > _MAX_USUAL_CATEGORIES and 2 * distinct > num_rows:
            typer.echo(
                f"Warning: column {column.name!r} has {distinct} distinct texts in "
                f"{num_rows} rows and looks like an identifier; --ignore "
                f"{shlex.quote(column.name)} leaves it out.",
                err=True,
            )


def echo_figures(trained: "TrainedTable") -> None:
    """Prints what was chosen, and the figures of rows that did not train."""
    echo_recipe(trained.recipe)
    typer.echo(
        f"{trained.num_training_rows} rows trained; figures of "
        f"{trained.recipe['metrics_from']}:"
    )
    echo_metrics(trained.metrics)
    echo_judgement(trained.judgement)
    echo_recalibration(trained.recalibration_choice)


def echo_recipe(recipe: Mapping[str, Any]) -> None:
    """Prints what was tried, and whether time ran out."""
    if recipe["out_of_time"]:
        typer.echo(f"training stopped by max_seconds after {recipe['steps']} steps")
    if len(recipe["tried"]) < 2:
        return
    several = len({trial["network"] for trial in recipe["tried"]}) > 1
    typer.echo("temperatures tried, by the log-likelihood of rows left out:")
    for trial in recipe["tried"]:
        network = f"  {trial['network']:<24}" if several else ""
        typer.echo(
            f"  {trial['temperature']:<8g}{trial['log_likelihood']:>10.4g}{network}"
            f"{'  kept' if trial['kept'] else ''}".rstrip()
        )


def echo_recalibration(choice: Mapping[str, Any] | None) -> None:
    """Prints the recalibration that was chosen, and why."""
    if choice:
        typer.echo(f"recalibration: {choice['chosen']}. {choice['reason']}")


def echo_metrics(metrics: Mapping[str, float]) -> None:
    """Prints metrics, one per line, except `nll`, the negated log-likelihood.

    The progress bar shows an nll as well, of one draw of the weights per step. The mean
    over the draws of that nll is at least the nll of the averaged predictive density
    (Jensen's inequality), which the metrics report. A note below the metrics says so.
    """
    for name, value in metrics.items():
        if name not in _LABELS:
            continue
        figure = f"{100 * value:.1f} %" if name in _SHARES else f"{value:.4g}"
        typer.echo(f"  {_LABELS[name]:<28}{figure:>8}")
    if "log_likelihood" in metrics:
        typer.echo(_NOTE)


def _join_names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MAX_NAMES_SHOWN])
    more = len(names) - _MAX_NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
