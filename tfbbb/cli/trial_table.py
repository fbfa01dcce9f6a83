"""The trials of a search, as text."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from tfbbb.base.texts import shown_decimals

if TYPE_CHECKING:
    from tfbbb.training.tuning import Trial, TunedTable

_HEAD = ("trial", "log-likelihood", "than the default", "tried")


def describe_trial(trial: "Trial") -> str:
    """Returns the log-likelihood of a trial with its standard error, or its end."""
    if trial.state == "complete":
        return with_error(trial.log_likelihood, trial.standard_error)
    return "stopped early" if trial.state == "stopped" else trial.error or trial.state


def echo_trials(trials: Sequence["Trial"]) -> None:
    """Prints trials, the best first."""
    default = next((trial for trial in trials if trial.number == 0), None)
    rows = [_HEAD]
    for trial in sorted(trials, key=lambda t: (-t.log_likelihood, t.number)):
        gain = ""
        complete = trial.state == "complete" and trial is not default
        if complete and default is not None and default.state == "complete":
            gain = with_error(*trial.gain(default), signed=True)
        what = "the default" if trial.number == 0 else _describe(trial.params)
        rows.append((str(trial.number), describe_trial(trial), gain, what))
    typer.echo("trials, by the log-likelihood of rows left out, in nats per row:")
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=False)]
        typer.echo("  ".join([*cells, row[3]]).rstrip())


def echo_comparison(tuned: "TunedTable") -> None:
    """Prints how the best trial compares with the default, on rows none has seen."""
    default = tuned.trials[0]
    number = len(tuned.test)
    rows = "1 test row, which" if number == 1 else f"{number} test rows, which"
    typer.echo(f"log-likelihood of {rows} no trial has seen, in nats per row:")
    figures = tuned.describe()["test"]
    shown = {
        name: with_error(figures[name], figures[f"{name}_standard_error"])
        for name in ("default", "tuned")
        if figures[name] is not None
    }
    if tuned.best is default:
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
    if error is None or error != error:
        return text
    return f"{text} ± {shown_decimals(error)}"


def _describe(params: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in params.items()
    )
