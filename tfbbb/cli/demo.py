"""`tfbbb demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.cli.errors import CommandError, errors_in_one_sentence

if TYPE_CHECKING:
    import numpy as np

    from tfbbb.training import TrainedTable

_NAME = "diabetes"
_TARGET = "progression"
_LEVEL = 0.9
_ROWS_SHOWN = 12


def demo(
    output: Annotated[
        Path,
        typer.Option(
            help="Directory for saved_models/diabetes/VERSION and diabetes.png."
        ),
    ] = Path(),
) -> None:
    """Train on a real table, export, serve, and ask the service for predictions.

    The table is the diabetes set of scikit-learn: 442 patients, ten measurements,
    and the progression of the disease one year later.
    """
    with errors_in_one_sentence():
        from tfbbb.cli.imports import import_tensorflow

        output.mkdir(parents=True, exist_ok=True)
        import_tensorflow()
        trained = _train()
        path = trained.export(output / "saved_models" / _NAME)
        typer.echo(f"exported to {path}")

        from tfbbb.cli.running_service import running_service
        from tfbbb.data import samples

        rows = samples.diabetes().take(trained.held_out_rows)
        truth = rows[_TARGET].to_numpy()
        typer.echo("starting the service")
        with running_service(output / "saved_models") as url:
            typer.echo(f"asking {url} for predictions of {len(truth)} held-out rows")
            instances = rows.drop_columns(_TARGET).to_pylist()
            predictions = _ask(url, path.name, instances)
        _show(truth, predictions)
        picture = output / f"{_NAME}.png"
        _draw(truth, predictions, picture)
        typer.echo(f"stopped the service; intervals against truth are in {picture}")


def _train() -> "TrainedTable":
    from rich.console import Console

    from tfbbb.cli.epoch_bar import EpochBar
    from tfbbb.cli.report import echo_figures, echo_schema
    from tfbbb.data import Schema, samples
    from tfbbb.training import train_table
    from tfbbb.training.spec import JobSpec

    table = samples.diabetes()
    echo_schema(Schema.infer(table, _TARGET))
    with EpochBar(Console(stderr=True)) as bar:
        trained = train_table(
            table,
            JobSpec.model_validate(
                {"target": _TARGET, "training": {"validation": {"fraction": 0.2}}}
            ),
            report=lambda at: bar.show(at.epoch, at.epochs, at.figures),
        )
    echo_figures(trained)
    return trained


def _ask(
    url: str, version: str, instances: list[dict[str, float]]
) -> dict[str, "np.ndarray"]:
    import httpx
    import numpy as np

    request = {
        "instances": instances,
        "parameters": {
            "num_samples": 400,
            "seed": 1,
            "quantiles": [0.5 - _LEVEL / 2, 0.5 + _LEVEL / 2],
        },
    }
    place = f"{url}/v1/models/{_NAME}/versions/{version}:predict"
    try:
        response = httpx.post(place, json=request, timeout=60)
    except httpx.TransportError as error:
        raise CommandError(f"The service gave no answer: {error}") from None
    if response.status_code != 200:
        raise CommandError(f"The service answered {response.text}")
    rows = response.json()["predictions"]
    answers = {
        name: np.array([row[name] for row in rows])[:, 0]
        for name in ("mean", "variance", "epistemic", "aleatoric")
    }
    bounds = np.array([row["quantiles"] for row in rows])[:, :, 0]
    return {**answers, "lower": bounds[:, 0], "upper": bounds[:, 1]}


def _show(truth: "np.ndarray", predictions: dict[str, "np.ndarray"]) -> None:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{_ROWS_SHOWN} of the held-out rows, by predicted mean")
    for column in ("truth", "mean", "standard deviation", "epistemic", "aleatoric"):
        table.add_column(column, justify="right")
    table.add_column(f"{100 * _LEVEL:g} % interval", justify="center")
    order = np.argsort(predictions["mean"])
    spread = np.linspace(0, len(order) - 1, _ROWS_SHOWN).round().astype(int)
    for row in order[spread]:
        values = {name: column[row] for name, column in predictions.items()}
        inside = values["lower"] <= truth[row] <= values["upper"]
        table.add_row(
            f"{truth[row]:.0f}",
            f"{values['mean']:.0f}",
            f"{values['variance'] ** 0.5:.0f}",
            f"{100 * values['epistemic'] / values['variance']:.0f} %",
            f"{100 * values['aleatoric'] / values['variance']:.0f} %",
            f"{values['lower']:4.0f} to {values['upper']:4.0f}",
            style=None if inside else "bold",
        )
    Console().print(table)
    inside = (predictions["lower"] <= truth) & (truth <= predictions["upper"])
    typer.echo(f"{inside.sum()} of {len(truth)} true values are in their interval")


def _draw(
    truth: "np.ndarray", predictions: dict[str, "np.ndarray"], path: Path
) -> None:
    from matplotlib.figure import Figure

    from tfbbb.plots import intervals

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = intervals(
        (predictions["mean"], predictions["lower"], predictions["upper"]),
        truth,
        level=_LEVEL,
        label="disease progression after one year",
        axes=figure.subplots(),
    )
    axes.set_title("Diabetes, 10 measurements: predicted and true", loc="left")
    figure.savefig(path, dpi=160)
