"""What a training or a search found, for people: figures, trials and sentences."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from tfbbb.base.row_weights import mean_and_error
from tfbbb.base.texts import aligned, shown_decimals, shown_number

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from tfbbb.training import TrainedTable
    from tfbbb.training.tuning import TunedTable

_HEADINGS = {
    "r_squared": "R²",
    "rmse": "RMSE",
    "accuracy": "accuracy",
    "concordance": "concordance",
    "integrated_brier_score": "IBS",
    "balanced_accuracy": "balanced",
    "log_likelihood": "log-lik.",
    "coverage_90": "in 90 %",
    "auc": "AUC",
    "expected_calibration_error": "ECE",
}
_SHARES = (
    *("coverage_90", "accuracy", "balanced_accuracy", "expected_calibration_error"),
)


def echo_figures(trained: "TrainedTable") -> None:
    """Prints what was chosen, and the figures of rows that did not train."""
    echo_recipe(trained.recipe, said=trained.schema.column_warnings)
    typer.echo(
        f"{trained.num_training_rows} rows trained; figures of "
        f"{trained.recipe['metrics_from']}:"
    )
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
    typer.echo(
        "temperatures tried, by the log-likelihood per row of the members on rows "
        "that they left out:"
    )
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
        typer.echo(
            "likelihoods tried with neighbours in place of a network, by the gain of "
            "log-likelihood per row over the first:"
        )
    for trial in tried:
        # Versions of earlier releases have no outcome.
        outcome = trial.get("outcome") or ""
        shown = {"poor": "  far from the targets", "diverged": "  diverged"}
        kept = "  kept" if trial["kept"] else shown.get(outcome, "")
        typer.echo(f"  {trial['likelihood']:<18}{trial['gain']:>+10.3f}{kept}")


def echo_recalibration(choice: Mapping[str, Any] | None) -> None:
    """Prints the recalibration that was chosen, and why."""
    if choice:
        typer.echo(f"recalibration: {choice['chosen']}. {choice['reason']}")


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
    if judgement.get("targets"):
        echo("all targets together, with errors in units of the spread of each:")
    rows = judgement_rows(judgement)
    for line in aligned(rows, right=range(1, len(rows[0]))):
        echo(f"  {line}")
    for sentence in judgement["sentences"]:
        warned = sentence in judgement["warnings"]
        echo(f"{'Warning: ' if warned else ''}{sentence}")
    for of_target in judgement.get("targets", ()):
        echo(f"{of_target['name']!r} alone:")
        echo_judgement(of_target, echo)


def _format(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name in _SHARES:
        return f"{100 * value:.1f} %"
    return shown_number(value, 4) if name == "rmse" else shown_decimals(value)


def describe_trial(trial: "FrozenTrial") -> str:
    """Returns a line that has the fields of a trial, after its figure or its error."""
    from tfbbb.training.tuning import held_out

    tried = _describe(trial.params) or "the default"
    if "error" in trial.user_attrs:
        return f"{trial.user_attrs['error']}  {tried}"
    return f"{with_error(*mean_and_error(held_out(trial)))}  {tried}"


def echo_comparison(tuned: "TunedTable") -> None:
    """Prints how the best trial compares with the default, on rows none has seen."""
    number = len(tuned.test)
    rows = "1 test row, which" if number == 1 else f"{number} test rows, which"
    typer.echo(f"log-likelihood of {rows} no trial has seen, in nats per row:")
    figures = tuned.describe()["test"]
    shown = {
        name: with_error(figures[name], figures[f"{name}_standard_error"])
        for name in ("default", "tuned")
        if figures[name] is not None
    }
    if tuned.best is tuned.default:
        typer.echo(f"  {'default, the best trial':<28}{shown['tuned']}")
        return
    typer.echo(f"  {'default':<28}{shown.get('default', 'diverged')}")
    typer.echo(f"  {f'trial {tuned.best.number}':<28}{shown['tuned']}")
    if figures["gain"] is not None:
        gain = with_error(figures["gain"], figures["gain_standard_error"], signed=True)
        typer.echo(f"  {'difference':<28}{gain}")


def with_error(mean: float, error: float | None, *, signed: bool = False) -> str:
    """Returns `mean ± standard error`, without the error if it is not known."""
    text = f"{'+' if signed and mean >= 0.0 else ''}{shown_decimals(mean)}"
    if error is None or not math.isfinite(error):
        return text
    return f"{text} ± {shown_decimals(error)}"


def _describe(params: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in params.items()
    )
