"""The figures of a model beside those of its baselines, for people."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer

from tfbbb.base.texts import shown_decimals, shown_number

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
    judgement: Mapping[str, Any] | None,
    echo: Callable[[str], object] = typer.echo,
) -> None:
    """Prints the figures of a model and of its baselines, and the sentences."""
    if not judgement:
        return
    for line in _aligned(judgement_rows(judgement)):
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


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
