"""The command line `tfbbb`.

Each command imports its libraries only when it runs, so that `--help` answers fast.
"""

from typing import Annotated

import typer

from tfbbb.cli import (
    demo,
    evaluate,
    explain,
    inspect,
    maintenance,
    predict,
    sample,
    serve,
    train,
    tune,
    worker,
)
from tfbbb.cli.application import Application, add_job_command
from tfbbb.cli.keys import keys
from tfbbb.cli.remote import remote
from tfbbb.version import __version__, commit

__all__ = ["app"]

app = Application(
    name="tfbbb",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tfbbb {__version__} (commit {commit()})")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Bayesian neural networks for tables: train, predict, serve.

    Example: tfbbb train houses.csv --target price --output saved_models/houses

    `tfbbb --install-completion` completes commands and options in your shell.
    """


app.command("sample")(sample.sample)
add_job_command(app, train.train)
add_job_command(app, tune.tune, without={"max_seconds", "start_from"})
add_job_command(app, inspect.inspect)
app.command("predict")(predict.predict)
app.command("evaluate")(evaluate.evaluate)
app.command("explain")(explain.explain)
app.command("serve", cls=serve.ServeCommand)(serve.serve)
app.command("worker")(worker.worker)
app.add_typer(keys)
app.command("backup")(maintenance.backup)
app.command("prune")(maintenance.prune)
app.add_typer(remote)
app.command("demo")(demo.demo)
