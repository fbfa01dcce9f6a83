"""`tfbbb predict`."""

from pathlib import Path
from typing import Annotated

import typer

from tfbbb.cli.errors import CommandError, errors_in_one_sentence
from tfbbb.cli.prediction_options import (
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


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            help="Exported model, or a directory of versions; the highest version "
            "predicts."
        ),
    ],
    data: Table,
    output: Output = None,
    sheet: Sheet = None,
    num_samples: NumSamples = None,
    seed: Seed = None,
    level: Level = 0.9,
    prediction_sets: PredictionSets = False,
    log_prob: LogProb = False,
) -> None:
    """Predict the rows of a table with an exported model.

    A regression prints the columns mean, standard_deviation, epistemic_variance and
    aleatoric_variance (the two add up to the variance), lower and upper, conformal if
    the model is. A classification prints class, one probability per class, entropy and
    mutual_information in nats.
    """
    with errors_in_one_sentence():
        from tfbbb.cli.table_targets import read_targets
        from tfbbb.data import read_table
        from tfbbb.data.writing import check_writable
        from tfbbb.export.manifest import Manifest

        if output is not None:
            check_writable(output)
        path = _resolve_model(model)
        manifest = Manifest.read(path)
        if prediction_sets and manifest.task != "classification":
            raise CommandError(
                "Only classes have prediction sets, and this model predicts numbers, "
                "with intervals from `lower` to `upper`. Leave out `--prediction-sets`."
            )
        columns = [feature.column for feature in manifest.features]
        texts = manifest.read_as_text
        table = read_table(data, text_columns=texts, sheet=sheet, notify=echo_note)
        inputs = {column.name: column.values(table) for column in columns}
        targets = read_targets(table, manifest) if log_prob else None

        from tfbbb.cli.imports import import_tensorflow

        import_tensorflow()
        from tfbbb.cli.prediction_table import predict_table
        from tfbbb.cli.shown_table import output_table
        from tfbbb.export import load

        try:
            predictions = predict_table(
                load(path),
                inputs,
                num_samples=num_samples,
                seed=seed,
                level=level,
                prediction_sets=prediction_sets,
                targets=targets,
            )
        except ValueError as error:
            # Such as a level that conformal intervals had too few rows for.
            raise CommandError(str(error)) from None
        output_table(predictions, output)


def _resolve_model(path: Path) -> Path:
    """Returns the path if it is a SavedModel, else the highest version under it."""
    from tfbbb.export.versions import newest_version

    if (path / "saved_model.pb").is_file():
        return path
    newest = newest_version(path)
    if newest is None:
        reason = "there is no such directory"
        if path.exists():
            reason = "it holds neither a saved_model.pb nor numbered versions"
        raise CommandError(f"{path} is not a model: {reason}.")
    return newest
