"""`tfbbb demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from tfbbb.client import Client, Model

_NAME = "diabetes"
_TARGET = "progression"
_LEVEL = 0.9
_NEW = 0.2
_ROWS_SHOWN = 12


def demo(
    output: Annotated[
        Path,
        typer.Option(
            help="Directory for saved_models/diabetes/VERSION and diabetes.png."
        ),
    ] = Path(),
) -> None:
    """Start the service, upload a real table, train on it, and request predictions.

    The table is the diabetes data set of scikit-learn: 442 patients, ten
    measurements, and the progression of the disease one year later. The demo
    uploads four fifths of the patients and predicts the progression of the others.

    Example: tfbbb demo --output /tmp/demo
    """
    from tfbbb.cli.running_service import running_service
    from tfbbb.client import Client

    models = output / "saved_models"
    models.mkdir(parents=True, exist_ok=True)
    known, new = _split_table()
    truth = new[_TARGET].to_numpy()
    typer.echo("starting the service")
    with (
        running_service(models) as service,
        Client(service.url, service.key) as client,
    ):
        model = _train(client, known)
        typer.echo(f"predicting {len(truth)} new rows with {client.url}")
        predictions = _predict(model, new.drop_columns(_TARGET))
    _print(truth, predictions)
    picture = output / f"{_NAME}.png"
    _plot(truth, predictions, picture)
    typer.echo(
        f"stopped the service; {picture} plots the intervals and the true values. "
        "Next: `tfbbb serve` opens a page for your own table."
    )


def _split_table() -> "tuple[pa.Table, pa.Table]":
    from tfbbb.tables import samples, split

    table = samples.diabetes()
    known, new = split(table.num_rows, _NEW, seed=0)
    return table.take(known), table.take(new)


def _train(client: "Client", table: "pa.Table") -> "Model":
    from tfbbb.cli.remote.watch import show_progress

    typer.echo(f"uploading {table.num_rows} rows to {client.url}")
    dataset = client.upload(table, name=_NAME)
    job = client.train(dataset, _TARGET, name=_NAME)
    show_progress(job, details=False)
    lineage = job.model.describe_version(job.version)["lineage"]
    typer.echo(
        f"published {job.name}, version {job.version}, after {job.duration:.0f} s"
    )
    figures = lineage["source"]["judgement"]["figures"]["model"]
    typer.echo(
        f"On rows left out of training it explains {100 * figures['r_squared']:.0f} % "
        f"of the target's variance; {100 * figures['coverage_90']:.0f} % of the "
        "targets are in their 90 % interval."
    )
    return job.model


def _predict(model: "Model", rows: "pa.Table") -> dict[str, "np.ndarray"]:
    answer = model.predict(rows, intervals=[_LEVEL], num_samples=400, seed=1)
    moments = {
        name: getattr(answer, name)[:, 0]
        for name in ("mean", "variance", "epistemic", "aleatoric")
    }
    lower, upper = (bounds[:, 0] for bounds in answer.interval(_LEVEL))
    return {**moments, "lower": lower, "upper": upper}


def _print(truth: "np.ndarray", predictions: dict[str, "np.ndarray"]) -> None:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{_ROWS_SHOWN} of the new rows, by predicted mean")
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
    typer.echo(
        "The standard deviation is how far the truth may be from the mean. With more "
        "patients the epistemic share of its square would shrink, the aleatoric not."
    )
    inside = (predictions["lower"] <= truth) & (truth <= predictions["upper"])
    typer.echo(f"{inside.sum()} of {len(truth)} true values are in their interval")


def _plot(
    truth: "np.ndarray", predictions: dict[str, "np.ndarray"], path: Path
) -> None:
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    order = np.argsort(predictions["mean"])
    rank = np.arange(1, len(order) + 1)
    ends = predictions["lower"][order], predictions["upper"][order]
    axes.vlines(rank, *ends, color="0.8", label=f"{100 * _LEVEL:g} % interval")
    axes.plot(rank, predictions["mean"][order], label="predicted mean")
    axes.plot(rank, truth[order], ".", label="truth")
    axes.set(xlabel="rows, by predicted mean", ylabel="progression after one year")
    axes.legend()
    axes.set_title("Diabetes, 10 measurements: predicted and true", loc="left")
    figure.savefig(path, dpi=160)
