"""`tfbbb serve`."""

import os
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfbbb.cli.errors import CommandError, errors_in_one_sentence
from tfbbb.cli.service_options import (
    DatabaseUrl,
    DataDir,
    Models,
    service_database,
    service_settings,
)

if TYPE_CHECKING:
    from service.api.keys.credential import Credential
    from service.shared.settings import Settings

_SECONDS_TO_FINISH_REQUESTS = 30


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port.")] = 8000,
    models: Models = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure", envvar="TFBBB_INSECURE", help="Let everybody do everything."
        ),
    ] = False,
) -> None:
    """Serve predictions and train models over HTTP; /docs describes the API.

    At the first start on this machine alone, prints a URL with an admin key.
    Waits a minute for a PostgreSQL that does not answer yet.
    Settings are environment variables, too:

    \b
    TFBBB_MODELS                  models, NAME/VERSION/saved_model.pb
    TFBBB_DATA_DIR                datasets, jobs and the SQLite database
    TFBBB_DATABASE_URL            postgresql://..., or sqlite:///PATH
    TFBBB_ADMIN_KEY               the first admin key, prefix.secret
    TFBBB_INSECURE                whether requests need no key: anyone may do all
    TFBBB_START_MODELS            whether to start the process that predicts
    TFBBB_START_DISPATCHER        whether to start the process that runs jobs
    TFBBB_JOB_SLOTS               jobs that run at the same time on this machine
    TFBBB_JOB_SLOTS_PER_KEY       jobs that one key may run at a time
    TFBBB_JOB_MEMORY_BYTES        resident memory at which a job is ended
    TFBBB_JOB_SECONDS             time after which an attempt of a job is ended
    TFBBB_CHECKPOINT_SECONDS      time between checkpoints of a job
    TFBBB_LEASE_SECONDS           silence after which a job is taken for dead
    TFBBB_WARM_SECONDS            time that a trainer waits for its next job
    TFBBB_MAX_UPLOAD_BYTES        largest upload
    TFBBB_MAX_DECOMPRESSED_BYTES  most bytes of a dataset's values in memory
    TFBBB_MAX_UPLOAD_ROWS         most rows of a dataset
    TFBBB_MAX_UPLOAD_COLUMNS      most columns of a dataset
    TFBBB_UPLOAD_STALL_SECONDS    time in which 64 KiB of an upload must come
    TFBBB_INSPECTION_SECONDS      processor time that reading a table may take
    TFBBB_INSPECTION_MEMORY_BYTES address space that it may take
    TFBBB_MAX_DATASETS            most datasets of a key without its own limit
    TFBBB_MAX_DATASET_BYTES       most bytes in them
    TFBBB_MAX_QUEUED_JOBS         most queued jobs of a key without its own limit
    TFBBB_MIN_FREE_BYTES          free disk below which nothing is taken in
    TFBBB_POLL_SECONDS            time between looks for new versions
    TFBBB_THREADS                 requests that are computed at the same time
    TFBBB_DEFAULT_NUM_SAMPLES     draws behind an answer; the model's by default
    TFBBB_MAX_ROWS_TIMES_SAMPLES  most rows x draws of one request
    TFBBB_MAX_BODY_BYTES          largest body of a `:predict` request
    """  # noqa: D301 - the backspace, not its name, keeps the lines apart
    with errors_in_one_sentence():
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import uvicorn

        from service.api.http.unreadable import OneShapeProtocol
        from service.app import create_app

        settings = service_settings(
            models=models,
            data_dir=data_dir,
            database_url=database_url,
            insecure=insecure or None,
        )
        if settings.start_dispatcher or models is None:
            _make_directory(settings.models)
        _check_directory(settings.models)
        if settings.start_dispatcher:
            _check_writable(settings.models)
        # Listens before a key is made: that is shown but once.
        with _listening(host, port) as listener:
            key = _first_key(settings, host)
            config = uvicorn.Config(
                create_app(settings),
                http=OneShapeProtocol,
                timeout_graceful_shutdown=_SECONDS_TO_FINISH_REQUESTS,
            )
            _say_how_to_ask(host, listener.getsockname()[1], key, settings.insecure)
            uvicorn.Server(config).run(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise CommandError(
            f"Can't listen on {host}, port {port}: {error.strerror}."
        ) from None


def _first_key(settings: "Settings", host: str) -> "Credential | None":
    from service.api.keys.credential import CredentialError
    from service.api.keys.first_key import NoKeyError, first_key

    try:
        with service_database(settings, starting=True) as database:
            return first_key(database, settings, host)
    except (NoKeyError, CredentialError) as error:
        raise CommandError(str(error)) from None


def _say_how_to_ask(
    host: str, port: int, key: "Credential | None", insecure: bool
) -> None:
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    if insecure:
        typer.echo(f"{url} asks for no key: whoever reaches it may do everything.")
    elif key is None:
        typer.echo(
            f"{url} asks for a key; `tfbbb keys create NAME --scope train` makes one."
        )
    else:
        typer.echo(
            f"This URL holds an admin key, shown this once; open or keep it:\n\n"
            f"    {url}?key={key.text}\n"
        )


def _make_directory(models: Path) -> None:
    if models.exists():
        return
    try:
        models.mkdir(parents=True)
    except OSError as error:
        raise CommandError(
            f"The directory of models {models} can't be made: {error.strerror}; say "
            "with --models where models can be written."
        ) from None
    typer.echo(f"made {models} for the models")


def _check_directory(models: Path) -> None:
    if not models.exists():
        raise CommandError(
            f"There is no directory {models}; make it, or say with --models where the "
            "models are."
        )
    if not models.is_dir():
        raise CommandError(f"{models} is a file, not a directory of models.")


def _check_writable(models: Path) -> None:
    # A job would learn it only when its model is trained.
    try:
        with tempfile.TemporaryFile(dir=models):
            pass
    except OSError as error:
        raise CommandError(
            f"Jobs can't write models to {models}: {error.strerror}. Let user "
            f"{os.geteuid()} write there, or set TFBBB_START_DISPATCHER=0 to predict "
            "alone."
        ) from None
