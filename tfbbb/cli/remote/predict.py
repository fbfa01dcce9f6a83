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
        int | None, typer.Option(min=1, help="Version; the highest by default.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Label of a version, in place of --version.")
    ] = None,
    num_samples: NumSamples = None,
    seed: Seed = None,
    level: Level = 0.9,
    url: Url = None,
    key: Key = None,
) -> None:
    """Predict the rows of a table with the service.

    The output has the columns of `tfbbb predict`.
    """
    if version is not None and label is not None:
        raise typer.BadParameter(
            "give either --label or --version.", param_hint="--label"
        )
    with service(url, key) as client:
        from tfbbb.cli.answer_table import interval_levels
        from tfbbb.cli.shown_table import output_table
        from tfbbb.data import read_table
        from tfbbb.data.writing import check_writable

        if output is not None:
            check_writable(output)
        remote_model = client.model(model)
        description = remote_model.describe_version(version, label)["description"]
        features = description["features"]
        texts = [f["name"] for f in features if f["kind"] == "categorical"]
        prediction = remote_model.predict(
            read_table(data, text_columns=texts),
            quantiles=[] if description["classes"] else interval_levels(level),
            num_samples=num_samples,
            seed=seed,
            version=version,
            label=label,
        )
        output_table(_build_table(prediction), output)
        typer.echo(f"predicted by version {prediction.version} of {model}", err=True)


def _build_table(prediction: "Prediction") -> "pa.Table":
    from tfbbb.cli.answer_table import classes_table, numbers_table

    answers = vars(prediction)
    if prediction.classes is not None:
        return classes_table(prediction.classes, answers)
    assert prediction.quantiles is not None
    return numbers_table(answers, prediction.quantiles)
