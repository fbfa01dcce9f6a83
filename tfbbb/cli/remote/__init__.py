"""`tfbbb remote`: the service from the command line."""

import typer

from tfbbb.cli.remote import jobs, label, models, predict, train, upload, watch

__all__ = ["remote"]

remote = typer.Typer(
    name="remote",
    no_args_is_help=True,
    help="Train and predict by a running service; --url and --key say which.",
)
remote.command("upload")(upload.upload)
remote.command("train")(train.train)
remote.command("watch")(watch.watch)
remote.command("predict")(predict.predict)
remote.command("models")(models.models)
remote.command("label")(label.label)
remote.command("jobs")(jobs.jobs)
remote.command("cancel")(jobs.cancel)
