"""`tfbbb evaluate`."""

import json
from typing import TYPE_CHECKING

import typer

from tfbbb.cli.application import with_options
from tfbbb.cli.notes import echo_next
from tfbbb.cli.options import NumSamples, Seed, model_table
from tfbbb.cli.printing import AsJson

if TYPE_CHECKING:
    from tfbbb.cli.model_table import ModelTable


@with_options(model_table)
def evaluate(
    given: "ModelTable",
    num_samples: NumSamples = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Judge a model by the rows of a table whose target is known.

    Prints the figures of the model beside those of the mean or the commonest class and
    of a linear or logistic model, both fitted to the training rows, and plain sentences
    about them. Rows that trained the model flatter it: use other rows.
    Ends with the exit code 3 if the model can use no cell of a column.

    Example: tfbbb evaluate saved_models/houses sold.csv
    """
    from tfbbb.judging.evaluation.baselines import Baselines
    from tfbbb.tables.column_names import list_names

    given, targets = given.with_targets()
    baselines = Baselines.read(given.path)

    from tfbbb.cli.figures import echo_judgement
    from tfbbb.cli.imports import load_model
    from tfbbb.cli.progress import track_blocks
    from tfbbb.judging.evaluation.evaluate import evaluate as judged

    judgement = judged(
        load_model(given.path),
        given.inputs,
        targets,
        baselines,
        places=given.places,
        num_samples=num_samples,
        seed=seed,
        target_names=given.manifest.target_names,
        track=track_blocks,
    )
    # Before what they explain.
    for kind in ("sentences", "warnings"):
        judgement[kind] = [*given.remarks, *judgement[kind]]
    if as_json:
        typer.echo(json.dumps(judgement, indent=2))
    else:
        rows = "1 row" if len(targets) == 1 else f"{len(targets)} rows"
        typer.echo(f"{list_names(given.manifest.target_names)} of {rows}:")
        echo_judgement(judgement)
        if baselines is None:
            typer.echo(
                "The model has no baselines, which `tfbbb train` stores with a model."
            )
    echo_next(f"tfbbb explain {given.path} {given.data}")
