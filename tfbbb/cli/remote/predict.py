"""`tfbbb remote predict`."""

from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.cli.prediction_options import Level, NumSamples, Output, Seed, Table
from tfbbb.cli.remote.service import Key, ModelName, Url, service

if TYPE_CHECKING:
    import pyarrow as pa

    from tfbbb.client import Prediction


def predict(
    model: ModelName,
    data: Table,
    output: Output = None,
    version: Annotated[
        int | None, typer.Option(min=1, help="Version; the newest by default.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Label of a version, in the place of --version.")
    ] = None,
    num_samples: NumSamples = None,
    seed: Seed = None,
    level: Level = 0.9,
    url: Url = None,
    key: Key = None,
) -> None:
    """Predict the rows of a table by the service.

    The columns are those of `tfbbb predict`.
    """
    if version is not None and label is not None:
        raise typer.BadParameter("it goes without --version.", param_hint="--label")
    with service(url, key) as client:
        from tfbbb.cli.answer_table import levels_of
        from tfbbb.cli.shown_table import put_out
        from tfbbb.data import read_table
        from tfbbb.data.writing import check_writable

        if output is not None:
            check_writable(output)
        asked = client.model(model)
        described = asked.describe_version(version, label)["description"]
        features = described["features"]
        texts = [f["name"] for f in features if f["kind"] == "categorical"]
        prediction = asked.predict(
            read_table(data, text_columns=texts),
            quantiles=[] if described["classes"] else levels_of(level),
            num_samples=num_samples,
            seed=seed,
            version=version,
            label=label,
        )
        put_out(_table(prediction), output)
        typer.echo(f"by version {prediction.version} of {model}", err=True)


def _table(prediction: "Prediction") -> "pa.Table":
    from tfbbb.cli.answer_table import classes_table, numbers_table

    answers = vars(prediction)
    if prediction.classes is not None:
        return classes_table(prediction.classes, answers)
    assert prediction.quantiles is not None
    return numbers_table(answers, prediction.quantiles)
