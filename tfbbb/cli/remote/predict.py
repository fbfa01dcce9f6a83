"""`tfbbb remote predict`."""

from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.cli.prediction_options import (
    Intervals,
    Keep,
    Level,
    LogProb,
    NumSamples,
    Output,
    PredictionSets,
    Seed,
    Sheet,
    Table,
    echo_note,
)
from tfbbb.cli.remote.service import Key, ModelName, Url, service

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tfbbb.client import Prediction


def predict(
    model: ModelName,
    data: Table,
    output: Output = None,
    sheet: Sheet = None,
    keep: Keep = False,
    version: Annotated[
        int | None, typer.Option(min=1, help="Version; the highest by default.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Label of a version, in place of --version.")
    ] = None,
    routing_key: Annotated[
        str | None,
        typer.Option(
            help="Where a label has a canary: requests with the same key, such as the "
            "id of a customer, are answered by the same version."
        ),
    ] = None,
    num_samples: NumSamples = None,
    seed: Seed = None,
    level: Level = 0.9,
    intervals: Intervals = None,
    prediction_sets: PredictionSets = False,
    log_prob: LogProb = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Predict the rows of a table with the service.

    The output has the columns of `tfbbb predict`.

    Example: tfbbb remote predict houses new.csv --output answer.csv
    """
    if version is not None and label is not None:
        raise typer.BadParameter(
            "give either --label or --version.", param_hint="--label"
        )
    with service(url, key) as client:
        from tfbbb.cli.kept_columns import with_kept_columns
        from tfbbb.cli.prediction_options import interval_levels
        from tfbbb.cli.shown_table import output_table
        from tfbbb.cli.table_targets import (
            empty_log_prob,
            fill_targets,
            read_labels_or_numbers,
        )
        from tfbbb.data import read_table
        from tfbbb.data.notations import notation_from_dict
        from tfbbb.data.writing import check_writable

        if output is not None:
            check_writable(output)
        remote_model = client.model(model)
        description = remote_model.describe_version(version, label)["description"]
        features = description["features"]
        texts = [
            feature["name"]
            for feature in features
            if feature["kind"] == "categorical" or feature.get("notation")
        ]
        # Services of earlier releases do not tell it.
        notation = notation_from_dict(description.get("target_notation"))
        if notation is not None:
            texts.append(description["target"])
        table = read_table(data, text_columns=texts, sheet=sheet, notify=echo_note)
        targets = missing = None
        if log_prob:
            target = description["target"]
            filled, missing = fill_targets(table, target, notation)
            targets = read_labels_or_numbers(
                filled, target, description["classes"], notation
            )
        levels = interval_levels(intervals) or {"": level}
        blocks = remote_model.predict_blocks(
            table,
            intervals=[] if description["classes"] else list(levels.values()),
            prediction_sets=[level] if prediction_sets else [],
            targets=targets,
            num_samples=num_samples,
            seed=seed,
            version=version,
            label=label,
            routing_key=routing_key,
        )
        used = [*(feature["name"] for feature in features), description["target"]]
        version, predictions = _collect(blocks, table.num_rows, list(levels))
        if missing is not None:
            predictions = empty_log_prob(predictions, missing)
        output_table(
            predictions,
            output,
            lambda answers: with_kept_columns(answers, table, used, keep=keep),
        )
        typer.echo(f"predicted by version {version} of {model}", err=True)


def _collect(
    blocks: "Iterator[Prediction]", num_rows: int, levels: list[str]
) -> "tuple[int, pa.Table]":
    """Returns the version that predicts and its predictions, with a progress bar."""
    import pyarrow as pa
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TimeRemainingColumn,
    )

    from tfbbb.cli.answer_table import with_warnings

    console = Console(stderr=True)
    columns = ("rows", BarColumn(24), MofNCompleteColumn(), TimeRemainingColumn())
    tables, warnings, version = [], [], 0
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=num_rows)
        for prediction in blocks:
            version = prediction.version
            tables.append(_build_table(prediction, levels))
            warnings += prediction.warnings or [[] for _ in range(len(prediction))]
            progress.advance(task, len(prediction))
    return version, with_warnings(pa.concat_tables(tables), warnings)


def _build_table(prediction: "Prediction", levels: list[str]) -> "pa.Table":
    import numpy as np

    from tfbbb.cli.answer_table import classes_table, numbers_table

    answers = vars(prediction)
    if prediction.classes is not None:
        sets = prediction.prediction_sets
        return classes_table(
            prediction.classes,
            answers,
            None if sets is None else [(row or [[]])[0] for row in sets],
            prediction.log_prob,
        )
    assert prediction.lower is not None
    assert prediction.upper is not None
    ends = np.stack([prediction.lower, prediction.upper], axis=1)
    bounds = {name: ends[:, :, place] for place, name in enumerate(levels)}
    return numbers_table(answers, bounds, prediction.log_prob)
