"""What a training found, for people: figures and sentences."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from tfbbb.base.texts import aligned, shown_decimals, shown_number

if TYPE_CHECKING:
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
_HEADINGS = {
    "r_squared": "R²",
    "rmse": "RMSE",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced",
    "log_likelihood": "log-lik.",
    "coverage_90": "in 90 %",
    "auc": "AUC",
    "expected_calibration_error": "ECE",
}
_SHARES = ("coverage_90", "accuracy", "balanced_accuracy", "expected_calibration_error")


def echo_figures(trained: "TrainedTable") -> None:
    """Prints what was chosen, and the figures of rows that did not train.

    The warnings of columns were printed before the training: see `echo_columns`.
    """
    echo_recipe(trained.recipe, said=trained.schema.column_warnings)
    typer.echo(
        f"{trained.num_training_rows} rows trained; figures of "
        f"{trained.recipe['metrics_from']}:"
    )
    echo_metrics(trained.metrics)
    echo_judgement(trained.judgement)
    echo_recalibration(trained.recalibration_choice)


def echo_recipe(recipe: Mapping[str, Any], said: Collection[str] = ()) -> None:
    """Prints what was tried, its remarks, and whether time ran out."""
    # Versions of earlier releases have none.
    for remark in recipe.get("remarks", ()):
        if remark not in said:
            typer.echo(f"Warning: {remark}", err=True)
    if "seconds" in recipe:
        typer.echo(f"training and judgement took {recipe['seconds']:.1f} s")
    _echo_likelihoods(recipe.get("likelihoods", ()))
    if len(recipe["tried"]) < 2:
        return
    several = len({trial["network"] for trial in recipe["tried"]}) > 1
    typer.echo("temperatures tried, by the log-likelihood of rows left out:")
    for trial in recipe["tried"]:
        network = f"  {trial['network']:<24}" if several else ""
        found = trial["log_likelihood"]
        shown = "diverged" if found is None else f"{found:.4g}"
        typer.echo(
            f"  {trial['temperature']:<8g}{shown:>10}{network}"
            f"{'  kept' if trial['kept'] else _describe_error(trial)}".rstrip()
        )


def _describe_error(trial: Mapping[str, Any]) -> str:
    """Returns how much worse than a constant a temperature is, if it is, as text."""
    error = trial.get("relative_error") or 0.0
    if error <= 1.0:
        return ""
    return f"  {shown_number(error, 3)} times the squared error of the mean"


def _echo_likelihoods(tried: Sequence[Mapping[str, Any]]) -> None:
    if tried:
        typer.echo("likelihoods tried, by the log-likelihood of rows left out:")
    for trial in tried:
        # Versions of earlier releases have no outcome.
        outcome = trial.get("outcome") or ""
        shown = {"poor": "  far from the targets", "diverged": "  diverged"}
        kept = "  kept" if trial["kept"] else shown.get(outcome, "")
        typer.echo(f"  {trial['likelihood']:<18}{trial['log_likelihood']:>10.4g}{kept}")


def echo_recalibration(choice: Mapping[str, Any] | None) -> None:
    """Prints the recalibration that was chosen, and why."""
    if choice:
        typer.echo(f"recalibration: {choice['chosen']}. {choice['reason']}")


def echo_metrics(metrics: Mapping[str, float]) -> None:
    """Prints metrics, one per line, except `nll`, the negated log-likelihood."""
    for name, value in metrics.items():
        if name not in _LABELS:
            continue
        figure = f"{100 * value:.1f} %" if name in _SHARES else shown_number(value, 4)
        typer.echo(f"  {_LABELS[name]:<28}{figure:>8}")
    if "log_likelihood" in metrics:
        typer.echo(_NOTE)


def judgement_rows(judgement: Mapping[str, Any]) -> list[list[str]]:
    """Returns the table of a judgement as texts, the headings first."""
    figures = judgement["figures"]
    names = [name for name in _HEADINGS if name in figures["model"]]
    return [
        ["", *(_HEADINGS[name] for name in names)],
        *(
            [which, *(_format(name, values[name]) for name in names)]
            for which, values in figures.items()
        ),
    ]


def echo_judgement(
    judgement: Mapping[str, Any] | None, echo: Callable[[str], object] = typer.echo
) -> None:
    """Prints the figures of a model and of its baselines, and the sentences."""
    if not judgement:
        return
    rows = judgement_rows(judgement)
    for line in aligned(rows, right=range(1, len(rows[0]))):
        echo(f"  {line}")
    for sentence in judgement["sentences"]:
        warned = sentence in judgement["warnings"]
        echo(f"{'Warning: ' if warned else ''}{sentence}")


def _format(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name in _SHARES:
        return f"{100 * value:.1f} %"
    return shown_number(value, 4) if name == "rmse" else shown_decimals(value)
