"""`tfbbb explain`."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfbbb.base.texts import shown_number
from tfbbb.cli.errors import CommandError, errors_in_one_sentence
from tfbbb.cli.options import Model, NumSamples, Seed, Sheet, Table

if TYPE_CHECKING:
    import numpy as np
    from rich.table import Table as RichTable

    from tfbbb.cli.model_table import ModelTable
    from tfbbb.export import ExportedModel
    from tfbbb.judging.evaluation.baselines import Baselines
    from tfbbb.judging.explain import Explanation
    from tfbbb.judging.explain.unusual_rows import UnusualRow

_MOST_COLUMNS_SHOWN = 20


def explain(
    model: Model,
    data: Table,
    sheet: Sheet = None,
    rows: Annotated[
        int, typer.Option(min=1, help="The most rows to explain, drawn at random.")
    ] = 2000,
    num_samples: NumSamples = None,
    seed: Seed = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the whole explanation as JSON.")
    ] = False,
) -> None:
    """Explain what a model has learned, by its predictions of a table.

    Prints what each column is worth, if the table has the target: the log-likelihood
    that is lost, and the error that is added, when the values of the column are
    shuffled; the effect of each column, as the mean prediction at its values with a 90
    % epistemic band; how much of the uncertainty more data would remove; and the rows
    that are least like the training rows. Ends with the exit code 3 if the model can
    use no cell of a column.

    Example: tfbbb explain saved_models/houses sold.csv
    """
    with errors_in_one_sentence():
        from tfbbb.cli.model_table import ModelTable
        from tfbbb.judging.evaluation.baselines import Baselines

        given = ModelTable.read(model, data, sheet)
        targets = None
        if given.has_targets():
            given, targets = given.with_targets()

        from tfbbb.cli.imports import load_model

        try:
            found = explain_rows(
                given,
                load_model(given.path),
                targets,
                Baselines.read(given.path),
                max_rows=rows,
                num_samples=num_samples,
                seed=seed or 0,
            )
        except ValueError as error:
            raise CommandError(str(error)) from None
        found = found.in_table(given.places)
        if as_json:
            explanation = {**found.to_dict(), "warnings": given.remarks}
            typer.echo(json.dumps(explanation, indent=2))
        else:
            for remark in given.remarks:
                typer.echo(f"Warning: {remark}")
            _echo(found, given.table.num_rows)
        given.end()


def explain_rows(
    given: "ModelTable",
    model: "ExportedModel",
    targets: "np.ndarray | None",
    baselines: "Baselines | None",
    **options: Any,
) -> "Explanation":
    """Explains the rows of a table with the names that the model's manifest has."""
    from tfbbb.cli.progress import track_names
    from tfbbb.judging.explain.explanation import explain as explained
    from tfbbb.tables.notations.words import spellings

    found = explained(
        model,
        given.inputs,
        targets,
        None if baselines is None else baselines.encoding,
        classes=given.manifest.classes or (),
        target=given.manifest.target or "",
        track=track_names,
        **options,
    )
    notations = {each.name: each.column.notation for each in given.manifest.features}
    texts = spellings(given.table, notations)
    effects = [each.spelled(texts.get(each.name, {})) for each in found.effects]
    return replace(found, effects=effects)


def _echo(found: "Explanation", num_rows: int) -> None:
    from rich.console import Console

    console = Console(markup=False, highlight=False, soft_wrap=True)
    if len(found.rows) < num_rows:
        console.print(f"{len(found.rows)} of {num_rows} rows, drawn at random")
    if found.importance is None:
        typer.echo("The table has no targets, so no importance can be measured.")
    else:
        console.print(importance_table(found))
    console.print(effects_table(found))
    share = 100 * float(found.split.epistemic_share.mean())
    typer.echo(
        f"More data would remove {share:.0f} % of the {found.split.measure} of a row, "
        "on average: its epistemic part."
    )
    if outside := describe_outside(found):
        typer.echo(outside)
    console.print(unusual_table(found))


def importance_table(found: "Explanation") -> "RichTable":
    """Returns the importance of the columns as a table of Rich."""
    from rich.table import Table as RichTable

    error = "accuracy lost" if found.classes else "RMSE added"
    table = RichTable("column", "nats lost per row", error, title="importance")
    for column in (found.importance or [])[:_MOST_COLUMNS_SHOWN]:
        table.add_row(
            column.name,
            f"{column.nats:.3g} ± {column.nats_standard_error:.2g}",
            f"{shown_number(column.error, 3)} ± "
            f"{shown_number(column.error_standard_error, 2)}",
        )
    return table


def effects_table(found: "Explanation") -> "RichTable":
    """Returns the least and the greatest mean prediction of each column."""
    from rich.table import Table as RichTable

    what = "probability" if found.classes else "mean prediction"
    table = RichTable("column", f"least {what}", f"greatest {what}", title="effects")
    for effect in found.effects:
        means, suffix, place = effect.mean, "", None
        if effect.mean.ndim == 2:
            # Of the class that the column changes most; of two the second.
            spread = (effect.mean.max(axis=0) - effect.mean.min(axis=0)).tolist()
            place = 1 if len(spread) == 2 else spread.index(max(spread))
            means = effect.mean[:, place]
            suffix = f" of {found.classes[place]}" if found.classes else ""
        cells = []
        for at in (int(means.argmin()), int(means.argmax())):
            band = (effect.lower[at], effect.upper[at])
            lower, upper = band if place is None else (side[place] for side in band)
            shown = effect.show(effect.values[at])
            cells.append(
                f"{shown_number(means[at], 4)}{suffix} "
                f"({shown_number(lower, 4)} to {shown_number(upper, 4)}) at {shown}"
            )
        table.add_row(effect.name, *cells)
    return table


def unusual_table(found: "Explanation") -> "RichTable":
    """Returns the rows that are least like training as a table of Rich."""
    from rich.table import Table as RichTable

    by = "variance" if found.split.measure == "variance" else "mutual information"
    table = RichTable(
        "row",
        "familiarity",
        f"epistemic {by}",
        "of the median",
        "farthest column",
        title=f"rows least like training, by {found.unusual_by}",
    )
    for unusual in found.unusual:
        familiarity = unusual.familiarity
        table.add_row(
            str(unusual.row + 1),
            "" if familiarity is None else shown_number(familiarity, 2),
            shown_number(unusual.epistemic, 3),
            f"{shown_number(unusual.ratio, 2)} ×",
            describe_unusual(unusual),
        )
    return table


def describe_outside(found: "Explanation") -> str:
    """Returns which columns have values outside what training has seen, if any."""
    if not found.outside:
        return ""
    items = sorted(found.outside.items(), key=lambda item: -item[1])
    named = ", ".join(
        f"{name!r} ({number} {'row' if number == 1 else 'rows'})"
        for name, number in items[:_MOST_COLUMNS_SHOWN]
    )
    more = len(items) - _MOST_COLUMNS_SHOWN
    others = f" and {more} more columns" if more > 0 else ""
    return f"Values outside what training has seen: {named}{others}."


def describe_unusual(unusual: "UnusualRow") -> str:
    """Returns what is unusual about a row, or else its most unusual value."""
    if unusual.unlike:
        return " ".join(unusual.unlike)
    if not unusual.column:
        return ""
    value = unusual.value
    text = "missing" if value is None else f"{value!r}"
    if isinstance(value, float):
        text = shown_number(value, 5)
    said = f"{unusual.column}: {text}"
    if unusual.distance is not None:
        said += f", {unusual.distance:.2g} standard deviations from the mean"
    return f"{said}; {unusual.remark}" if unusual.remark else said
