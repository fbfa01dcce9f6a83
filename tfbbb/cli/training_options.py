"""Options shared by the commands that train, beside those of `JobSpec`."""

from pathlib import Path
from typing import Annotated

import typer

Output = Annotated[
    Path,
    typer.Option(
        help="Directory of the model, e.g. saved_models/NAME; the command writes the "
        "next version under it."
    ),
]
Target = Annotated[str, typer.Option(help="Column to predict.")]
Ignore = Annotated[
    list[str] | None,
    typer.Option(help="Column to leave out; may be repeated.", metavar="COLUMN"),
]
Spec = Annotated[
    Path | None,
    typer.Option(
        help="JSON file of further fields of POST /v1/jobs, such as `model` and "
        "`training`; the other options override it."
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="The short form of --effort quick.")
]
