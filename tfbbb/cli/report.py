"""`tfbbb report`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.base.types import Config
from tfbbb.cli.application import with_options
from tfbbb.cli.errors import CommandError
from tfbbb.cli.notes import echo_next
from tfbbb.cli.options import NumSamples, model_table

if TYPE_CHECKING:
    import numpy as np

    from tfbbb.cli.model_table import ModelTable
    from tfbbb.export import ExportedModel


@with_options(model_table)
def report(
    given: "ModelTable",
    output: Annotated[
        Path | None,
        typer.Option(help="File to write the report to, in place of printing it."),
    ] = None,
    num_samples: NumSamples = None,
) -> None:
    """Print a report about a model as JSON.

    The table has the columns of the training table, with the target: new rows show best
    how good the model is. The report has the figures of the model beside those of
    baselines, calibration, intervals and true values, the importance and the effects of
    the columns, what training tried, and warnings.

    Example: tfbbb report saved_models/houses sold.csv --output houses.json
    """
    if output is not None and not output.absolute().parent.is_dir():
        raise CommandError(f"{output} cannot be written: there is no such directory.")
    given, targets = given.with_targets()

    from tfbbb.cli.imports import load_model

    loaded = load_model(given.path)
    found = _report(given, targets, loaded, given.data.name, num_samples)
    text = json.dumps(found, indent=2, allow_nan=False)
    if output is None:
        typer.echo(text)
    else:
        output.write_text(f"{text}\n", encoding="utf-8")
        typer.echo(f"report written to {output}", err=True)
    echo_next("tfbbb serve, whose page draws the report of a model that it trains")


def _report(
    given: "ModelTable",
    targets: "np.ndarray",
    model: "ExportedModel",
    name: str,
    num_samples: int | None,
) -> Config:
    """Returns the report of a model by a table, in the form of a version's report."""
    # They import the formats of tables, and SciPy.
    import numpy as np

    from tfbbb.cli.explain import explain_rows
    from tfbbb.cli.progress import track_blocks
    from tfbbb.export.manifest import MANIFEST_PATH, REPORT_FILE
    from tfbbb.judging.evaluation.baselines import Baselines, one_by_one
    from tfbbb.judging.evaluation.evaluate import evaluate
    from tfbbb.judging.explain.rows import Rows, of_targets, predicted
    from tfbbb.judging.report import (
        FORMAT,
        by_target,
        calibration,
        explanations,
        held_out,
        rounded,
    )

    manifest = given.manifest
    baselines = Baselines.read(given.path)
    judgement = evaluate(
        model,
        given.inputs,
        targets,
        baselines,
        places=given.places,
        num_samples=num_samples,
        target_names=manifest.target_names,
        track=track_blocks,
    )
    classes = list(manifest.classes or ())
    generator = np.random.default_rng(0)
    parts = []
    columns = one_by_one(targets, len(manifest.target_names))
    for place, alone in enumerate(of_targets(model, len(columns))):
        y = columns[place]
        explained = explain_rows(given, alone, y, place, num_samples=num_samples)
        rows = explained.rows
        inputs = {name: values[rows] for name, values in given.inputs.items()}
        prediction = predicted(alone, Rows.read(inputs), num_samples, None)
        explained = explained.in_table(given.places)
        parts.append(
            {
                "calibration": calibration(prediction, y[rows], generator),
                "held_out": held_out(
                    prediction, y[rows], explained.rows, classes, generator
                ),
                **explanations(
                    explained.split,
                    explained.rows,
                    explained.importance,
                    explained.effects,
                    [feature.name for feature in manifest.features],
                    given.table.num_rows,
                ),
            }
        )
    report: Config = {
        "format": FORMAT,
        "task": manifest.task,
        "classes": classes,
        "metrics_from": f"the table {name}, beside baselines that were fitted to the "
        "training rows",
        "judgement": judgement,
        "remarks": given.remarks,
        **by_target(manifest.target_names, parts),
    }
    stored = (given.path / MANIFEST_PATH).with_name(REPORT_FILE)
    if stored.exists():
        of_training = json.loads(stored.read_bytes())
        report |= {key: of_training[key] for key in ("diagnosis", "tried")}
    found: Config = rounded(report)
    return found
