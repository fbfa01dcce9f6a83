"""`tfbbb predict`."""

from tfbbb.cli.errors import CommandError, errors_in_one_sentence
from tfbbb.cli.prediction_options import (
    Intervals,
    Keep,
    Level,
    LogProb,
    Model,
    NumSamples,
    Output,
    PredictionSets,
    Seed,
    Sheet,
    Table,
    echo_note,
)


def predict(
    model: Model,
    data: Table,
    output: Output = None,
    sheet: Sheet = None,
    keep: Keep = False,
    num_samples: NumSamples = None,
    seed: Seed = None,
    level: Level = 0.9,
    intervals: Intervals = None,
    prediction_sets: PredictionSets = False,
    log_prob: LogProb = False,
) -> None:
    """Predict the rows of a table with an exported model.

    A regression prints the columns mean, standard_deviation, epistemic_variance and
    aleatoric_variance (the two add up to the variance), lower and upper, conformal if
    the model is. A classification prints class, one probability per class, entropy and
    mutual_information in nats. The column familiarity is the percentile of a row among
    rows like the training rows, from 0 to 1. Columns that the model does not read and
    whose texts or whole numbers all differ, such as identifiers, stand before them.
    Ends with the exit code 3 if the model can read no cell of a column.

    Example: tfbbb predict saved_models/houses new.csv --output answer.csv
    """
    with errors_in_one_sentence():
        from tfbbb.cli.model_table import ModelTable, resolve_model
        from tfbbb.cli.prediction_options import interval_levels
        from tfbbb.export.manifest import Manifest
        from tfbbb.tables.table_error import NoRowsError
        from tfbbb.tables.writing import check_writable

        if output is not None:
            check_writable(output)
        path = resolve_model(model)
        task = Manifest.read(path).task
        if prediction_sets and task != "classification":
            raise CommandError(
                "Only classes have prediction sets, and this model predicts numbers, "
                "with intervals from `lower` to `upper`. Leave out `--prediction-sets`."
            )
        if intervals is not None and task == "classification":
            raise CommandError(
                "Only numbers have intervals, and this model predicts classes, with "
                "prediction sets. Leave out `--intervals`."
            )
        try:
            given = ModelTable.read(path, data, sheet)
        except NoRowsError:
            given = ModelTable.without_rows(path, data, sheet)
        targets = given.targets() if log_prob else None

        from tfbbb.cli.imports import load_model
        from tfbbb.cli.kept_columns import with_kept_columns
        from tfbbb.cli.prediction_table import predict_table
        from tfbbb.cli.shown_table import output_table

        loaded, levels = load_model(path), interval_levels(intervals) or {"": level}
        try:
            predictions = predict_table(
                loaded,
                given.inputs,
                given.faults,
                num_samples=num_samples,
                seed=seed,
                level=levels.get("", level),
                intervals=None if "" in levels else levels,
                prediction_sets=prediction_sets,
                targets=targets,
            )
        except ValueError as error:
            # Such as a level that conformal intervals had too few rows for.
            raise CommandError(str(error)) from None

        if not given.table.num_rows:
            names = predictions.column_names
            predictions = predictions.slice(0, 0)
            predictions = predictions.select([x for x in names if x != "warnings"])
        if given.manifest.familiarity is None:
            echo_note(
                "The model carries no reference of its training rows, so there is no "
                "column `familiarity`."
            )
        # There is no such column where there is nothing to say.
        if "warnings" in predictions.column_names:
            warned = sum(map(bool, predictions["warnings"].to_pylist()))
            of = f"{warned} of {predictions.num_rows}"
            echo_note(f"The column `warnings` says what is doubtful about {of} rows.")
        for remark in given.remarks:
            echo_note(remark)
        used = [*given.inputs, given.manifest.target]
        output_table(
            predictions,
            output,
            lambda answers: with_kept_columns(answers, given.table, used, keep=keep),
        )
        # A number that nobody knows is left blank.
        given.end(blank=False)
