"""`tfbbb predict`."""

from tfbbb.cli.errors import CommandError, errors_in_one_sentence
from tfbbb.cli.options import (
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
    Times,
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
    times: Times = None,
    prediction_sets: PredictionSets = False,
    log_prob: LogProb = False,
) -> None:
    """Predict the rows of a table with an exported model.

    A regression prints the columns mean, std, lower_90 and upper_90, conformal if the
    model is, and the variances epistemic and aleatoric, whose sum is the square of std.
    Of several targets, the name of each follows, and joint_lower_90 and joint_upper_90
    are the sides of the box that holds all of them.
    A classification prints class, one probability per class, entropy and
    mutual_information in nats. The column familiarity is the percentile of a row among
    rows like the training rows, from 0 to 1. Columns that the model does not read and
    whose texts or whole numbers all differ, such as identifiers, stand before them.
    Ends with the exit code 3 if the model can read no cell of a column.

    Example: tfbbb predict saved_models/houses new.csv --output answer.csv
    """
    with errors_in_one_sentence():
        from tfbbb.cli.model_table import end_if_useless, resolve_model
        from tfbbb.cli.options import interval_levels, numbers_of
        from tfbbb.export.manifest import Manifest
        from tfbbb.tables.column_names import check_columns_exist
        from tfbbb.tables.scan import TableScan, notify_of_reading
        from tfbbb.tables.table_error import NoRowsError
        from tfbbb.tables.writing import check_writable

        if output is not None:
            check_writable(output)
        path = resolve_model(model)
        manifest = Manifest.read(path)
        task, features = manifest.task, [x.name for x in manifest.features]
        if prediction_sets and task != "classification":
            raise CommandError(
                "Only classes have prediction sets, and this model predicts numbers, "
                "with intervals. Leave out `--prediction-sets`."
            )
        if intervals is not None and task == "classification":
            raise CommandError(
                "Only numbers have intervals, and this model predicts classes, with "
                "prediction sets. Leave out `--intervals`."
            )
        if times is not None and task == "classification":
            raise CommandError(
                "Only numbers are beyond a time, and this model predicts classes. "
                "Leave out `--times`."
            )
        scan = TableScan(data, sheet=sheet)
        try:
            notify_of_reading(scan, echo_note)
            has_rows = True
        except NoRowsError:
            has_rows = False

        import pyarrow as pa

        from tfbbb.cli.imports import load_model
        from tfbbb.cli.model_answers import ModelAnswers
        from tfbbb.cli.predicted_rows import with_progress, write_predictions
        from tfbbb.cli.table_targets import columns_used

        levels: dict[str, list[float]] = {}
        if task == "regression":
            levels["intervals"] = interval_levels(intervals) or [level]
            if times is not None:
                levels["survival"] = numbers_of(times)
            if len(manifest.target_names) > 1:
                levels["joint_intervals"] = levels["intervals"]
        elif prediction_sets:
            levels["prediction_sets"] = [level]
        loaded = load_model(path)
        ask = ModelAnswers(loaded, levels, num_samples, seed, log_prob=log_prob)
        predicted = with_progress(scan, ask)
        if not has_rows:
            empty = pa.table({name: pa.nulls(0) for name in scan.header()})
            check_columns_exist(empty, features, role="feature")
            predicted = iter([(empty, ask.without_rows())])
        if manifest.familiarity is None:
            echo_note(
                "The model carries no reference of its training rows, so there is no "
                "column `familiarity`."
            )
        try:
            used = columns_used(manifest)
            warned, num_rows = write_predictions(
                predicted, output, used, keep=keep, targets=ask.targets
            )
        except ValueError as error:
            # Such as a level that conformal intervals had too few rows for.
            raise CommandError(str(error)) from None
        # There is no such column where there is nothing to say.
        if warned:
            of = f"{warned} of {num_rows}"
            echo_note(f"The column `warnings` says what is doubtful about {of} rows.")
        for remark in ask.faults.describe():
            echo_note(remark)
        # A number that nobody knows is left blank.
        end_if_useless(ask.faults, blank=False)
