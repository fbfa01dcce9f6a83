"""The command line `tfbbb`.

Each command imports what it computes with only when it runs, so that help is quick.
"""

import typer

from tfbbb.cli import demo, predict, serve, train

__all__ = ["app", "main"]

app = typer.Typer(
    name="tfbbb",
    help="Bayesian neural networks for tables: train, predict, serve.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("train")(train.train)
app.command("predict")(predict.predict)
app.command("serve")(serve.serve)
app.command("demo")(demo.demo)


def main() -> None:
    """Runs the command line; the entry point of the `tfbbb` script."""
    app()
