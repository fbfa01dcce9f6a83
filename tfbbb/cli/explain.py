"""`tfbbb explain`."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfbbb.base.texts import shown_number
from tfbbb.base.types import Config
from tfbbb.cli.application import with_options
from tfbbb.cli.notes import echo_next
from tfbbb.cli.options import NumSamples, Seed, model_table
from tfbbb.cli.printing import AsJson, print_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tfbbb.cli.model_table import ModelTable
    from tfbbb.judging.explain import Effect, Explanation
    from tfbbb.judging.types import Model as AnyModel

# Rows of each table, so that all fit on a screen.
_MOST_SHOWN = 6


@with_options(model_table)
def explain(
    given: "ModelTable",
    rows: Annotated[
        int, typer.Option(min=1, help="The most rows to explain, drawn at random.")
    ] = 2000,
    num_samples: NumSamples = None,
    seed: Seed = 0,
    as_json: AsJson = False,
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
    from tfbbb.judging.evaluation.baselines import one_by_one

    targets = None
    if given.has_targets():
        given, targets = given.with_targets()

    from tfbbb.cli.imports import load_model
    from tfbbb.judging.explain.rows import of_targets

    loaded, found = load_model(given.path), []
    number = max(1, len(given.manifest.target_names))
    for place, alone in enumerate(of_targets(loaded, number)):
        explained = explain_rows(
            given,
            alone,
            None if targets is None else one_by_one(targets, number)[place],
            place,
            max_rows=rows,
            num_samples=num_samples,
            seed=seed or 0,
        )
        found.append(explained)
    if as_json:
        each = [explained.to_dict() for explained in found]
        explanation: Config = each[0] if number == 1 else {"targets": each}
        explanation |= {"warnings": given.remarks}
        typer.echo(json.dumps(explanation, indent=2))
    else:
        for remark in given.remarks:
            typer.echo(f"Warning: {remark}")
        for explained in found:
            if number > 1:
                typer.echo(f"{explained.target!r}:")
            _echo(explained, given.table.num_rows, given.manifest.censored)
    echo_next(f"tfbbb predict {given.path} TABLE")


def explain_rows(
    given: "ModelTable",
    model: "AnyModel",
    targets: "np.ndarray | None",
    place: int = 0,
    **options: Any,
) -> "Explanation":
    """Explains one target in the rows of a table, with the names of the manifest."""
    from tfbbb.cli.progress import track_names
    from tfbbb.judging.explain.explanation import explain as explained
    from tfbbb.tables.notations.words import spellings

    names = given.manifest.target_names
    found = explained(
        model,
        given.inputs,
        targets,
        classes=given.manifest.classes or (),
        target=names[place] if names else "",
        places=given.places,
        track=track_names,
        **options,
    )
    notations = {each.name: each.column.notation for each in given.manifest.features}
    texts = spellings(given.table, notations)
    effects = [each.spelled(texts.get(each.name, {})) for each in found.effects]
    return replace(found, effects=effects)


def _echo(found: "Explanation", num_rows: int, censored: bool) -> None:
    if len(found.rows) < num_rows:
        typer.echo(f"{len(found.rows)} of {num_rows} rows, drawn at random")
    if found.importance is None:
        typer.echo("The table has no targets, so no importance can be measured.")
    else:
        error = "Brier score added" if censored else "RMSE added"
        error = "accuracy lost" if found.classes else error
        typer.echo("importance:")
        print_rows(
            ["column", "nats lost per row", error, "moves the answer", "its width"],
            [
                [
                    column.name,
                    f"{column.nats:.3g} ± {column.nats_standard_error:.2g}",
                    f"{shown_number(column.error, 3)} ± "
                    f"{shown_number(column.error_standard_error, 2)}",
                    shown_number(column.mean_change, 3),
                    shown_number(column.width_change, 3),
                ]
                for column in found.importance[:_MOST_SHOWN]
            ],
        )
    what = "probability" if found.classes else "mean prediction"
    typer.echo("effects:")
    print_rows(
        ["column", f"least {what}", f"greatest {what}"],
        [
            [effect.name, *_ends(effect, found.classes)]
            for effect in found.effects[:_MOST_SHOWN]
        ],
    )
    share = 100 * float(found.split.epistemic_share.mean())
    typer.echo(
        f"More data would remove {share:.0f} % of the {found.split.measure} of a row, "
        "on average: its epistemic part."
    )
    by = "variance" if found.split.measure == "variance" else "mutual information"
    typer.echo(f"rows least like training, by {found.unusual_by}:")
    print_rows(
        ["row", "familiarity", f"epistemic {by}", "of the median", "unlike training"],
        [
            [
                unusual.row + 1,
                None
                if unusual.familiarity is None
                else shown_number(unusual.familiarity, 2),
                shown_number(unusual.epistemic, 3),
                f"{shown_number(unusual.ratio, 2)} ×",
                " ".join(unusual.unlike),
            ]
            for unusual in found.unusual[:_MOST_SHOWN]
        ],
    )


def _ends(effect: "Effect", classes: "Sequence[str]") -> list[str]:
    """Describes the least and the greatest mean prediction of a column."""
    means, lower, upper, suffix = effect.mean, effect.lower, effect.upper, ""
    if means.ndim == 2:
        # Of the class that the column changes most; of two the second.
        spread = (means.max(axis=0) - means.min(axis=0)).tolist()
        place = 1 if len(spread) == 2 else spread.index(max(spread))
        means, lower, upper = (x[:, place] for x in (means, lower, upper))
        suffix = f" of {classes[place]}" if classes else ""
    return [
        f"{shown_number(means[at], 4)}{suffix} ({shown_number(lower[at], 4)} to "
        f"{shown_number(upper[at], 4)}) at {effect.show(effect.values[at])}"
        for at in (int(means.argmin()), int(means.argmax()))
    ]
