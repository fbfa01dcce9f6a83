"""The trials of a search, as text."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from tfbbb.base.row_weights import mean_and_error
from tfbbb.base.texts import shown_decimals

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from tfbbb.training.tuning import TunedTable

_HEAD = ("trial", "log-likelihood", "than the default", "tried")


def describe_trial(trial: "FrozenTrial") -> str:
    """Returns the log-likelihood of a trial with its standard error, or its end."""
    from tfbbb.training.tuning import held_out

    if "error" in trial.user_attrs:
        return str(trial.user_attrs["error"])
    return with_error(*mean_and_error(held_out(trial)))


def echo_trials(trials: Sequence["FrozenTrial"]) -> None:
    """Prints trials, the best first."""
    from tfbbb.training.tuning import held_out

    default = next((trial for trial in trials if "default" in trial.user_attrs), None)
    of_default = () if default is None else held_out(default)
    rows = [_HEAD]
    for trial in sorted(trials, key=_worst_last):
        values, gain = held_out(trial), ""
        if trial is not default and len(values) == len(of_default) > 0:
            gain = with_error(*mean_and_error(values - of_default), signed=True)
        what = "the default" if trial is default else _describe(trial.params)
        rows.append((str(trial.number), describe_trial(trial), gain, what))
    typer.echo("trials, by the log-likelihood of rows left out, in nats per row:")
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=False)]
        typer.echo("  ".join([*cells, row[3]]).rstrip())


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


def _worst_last(trial: "FrozenTrial") -> tuple[float, int]:
    value = trial.value if trial.state.name == "COMPLETE" else None
    return (math.inf if value is None else -value), trial.number


def _describe(params: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in params.items()
    )
