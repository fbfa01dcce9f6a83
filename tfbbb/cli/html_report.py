"""`tfbbb report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfbbb.cli.errors import CommandError, errors_in_one_sentence
from tfbbb.cli.prediction_options import Model, NumSamples, Sheet, Table

if TYPE_CHECKING:
    from tfbbb.cli.model_table import ModelTable


def report(
    model: Model,
    data: Table,
    sheet: Sheet = None,
    output: Annotated[
        Path, typer.Option(help="HTML file to write; it needs no other file.")
    ] = Path("report.html"),
    num_samples: NumSamples = None,
) -> None:
    """Write a report about a model as one HTML file.

    The table has the columns of the training table, with the target: new rows show best
    how good the model is. The report has the columns, what training tried, the figures
    of the model beside those of baselines, calibration, intervals and true values, the
    importance and the effects of the columns, and warnings.

    Example: tfbbb report saved_models/houses sold.csv --output houses.html
    """
    with errors_in_one_sentence():
        from tfbbb.cli.model_table import ModelTable

        _check_output(output)
        given, targets = ModelTable.read(model, data, sheet).with_targets()

        from tfbbb.cli.imports import load_model

        try:
            page = _page(given, targets, load_model(given.path), data.name, num_samples)
        except ValueError as error:
            # Such as a file of an older version, which answers no densities.
            raise CommandError(str(error)) from None
        output.write_text(page, encoding="utf-8")
        typer.echo(f"report written to {output}", err=True)
        given.end()


def _check_output(output: Path) -> None:
    if output.suffix.lower() not in (".html", ".htm"):
        raise CommandError(f"{output} must end in .html.")
    if not output.absolute().parent.is_dir():
        raise CommandError(f"{output} cannot be written: there is no such directory.")


def _page(
    given: "ModelTable", targets: Any, model: Any, name: str, num_samples: int | None
) -> str:
    from tfbbb.cli.explain import explain_rows
    from tfbbb.cli.prediction_table import track_blocks
    from tfbbb.cli.report_page import report_html, report_of_table
    from tfbbb.judging.evaluation.baselines import Baselines
    from tfbbb.judging.evaluation.evaluate import evaluate

    baselines = Baselines.read(given.path)
    judgement = evaluate(
        model,
        given.inputs,
        targets,
        baselines,
        places=given.places,
        num_samples=num_samples,
        track=track_blocks,
    )
    explanation = explain_rows(
        given, model, targets, baselines, num_samples=num_samples
    )
    rows = explanation.rows
    draws = {} if num_samples is None else {"num_samples": num_samples}
    chosen = {name: values[rows] for name, values in given.inputs.items()}
    report = report_of_table(
        given,
        name,
        judgement,
        explanation.in_table(given.places),
        model.predictive(chosen, **draws),
        targets[rows],
        None if baselines is None else baselines.encoding,
    )
    return report_html(report)
