"""`tfbbb remote`: commands that call a running service."""

from tfbbb.cli.application import Application, add_job_command
from tfbbb.cli.remote import datasets, feedback, jobs, models, predict, train, watch
from tfbbb.cli.remote.service import Key, Url

__all__ = ["remote"]

remote = Application(name="remote", no_args_is_help=True)


@remote.callback()
def _options(url: Url = None, key: Key = None) -> None:
    """Train and predict with a running service, named by --url and --key.

    Both options may stand before or after the command.

    Example: tfbbb remote --url http://127.0.0.1:8000 models
    """


add_job_command(remote, train.train)
remote.command("watch")(watch.watch)
remote.command("predict")(predict.predict)
remote.command("feedback")(feedback.feedback)
remote.command("upload")(datasets.upload)
remote.command("datasets")(datasets.datasets)
remote.command("jobs")(jobs.jobs)
remote.command("log")(jobs.log)
remote.command("cancel")(jobs.cancel)
remote.command("retry")(jobs.retry)
remote.command("models")(models.models)
remote.command("label")(models.label)
remote.command("delete")(models.delete)
