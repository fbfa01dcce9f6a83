"""`tfbbb predict`."""

from tfbbb.cli.application import with_options
from tfbbb.cli.errors import CommandError
from tfbbb.cli.notes import echo_next, echo_note
from tfbbb.cli.options import Asked, Model, Table


@with_options(Asked)
def predict(asked: Asked, model: Model, data: Table) -> None:
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
    from tfbbb.cli.model_table import end_if_useless, resolve_model
    from tfbbb.export.manifest import Manifest
    from tfbbb.tables.column_names import check_columns_exist
    from tfbbb.tables.scan import TableScan, notify_of_reading
    from tfbbb.tables.table_error import NoRowsError
    from tfbbb.tables.writing import check_writable

    if asked.output is not None:
        check_writable(asked.output)
    path = resolve_model(model)
    manifest = Manifest.read(path)
    levels = asked.levels(manifest)
    scan = TableScan(data, sheet=asked.sheet)
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

    ask = ModelAnswers(load_model(path), levels, asked)
    predicted = with_progress(scan, ask)
    if not has_rows:
        empty = pa.table({name: pa.nulls(0) for name in scan.header()})
        features = [feature.name for feature in manifest.features]
        check_columns_exist(empty, features, role="feature")
        predicted = iter([(empty, ask.without_rows())])
    if manifest.familiarity is None:
        echo_note(
            "The model carries no reference of its training rows, so there is no "
            "column `familiarity`."
        )
    try:
        used = columns_used(manifest)
        warned, num_rows = write_predictions(predicted, asked, used, ask.targets)
    except ValueError as error:
        # Such as a level that conformal intervals had too few rows for.
        raise CommandError(str(error)) from None
    # There is no such column where there is nothing to say.
    if warned:
        of = f"{warned} of {num_rows}"
        echo_note(f"The column `warnings` says what is doubtful about {of} rows.")
    for remark in ask.faults.describe():
        echo_note(remark)
    echo_next(f"tfbbb evaluate {model} TABLE, once the targets are known")
    # A number that nobody knows is left blank.
    end_if_useless(ask.faults, blank=False)
