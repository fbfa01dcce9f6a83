"""`tfbbb serve`."""

import os
import socket
import tempfile
from contextlib import ExitStack
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
# Each further one costs a microsecond per new connection.
_ACCEPTED_PER_TURN = 32


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port.")] = 8000,
    models: Models = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure",
            envvar="TFBBB_INSECURE",
            help="Accept every request without a key.",
            show_default="no",
        ),
    ] = False,
) -> None:
    """Serve a page, predictions and trainings over HTTP; /docs describes the API.

    The first start on a loopback address prints a URL with an admin key.
    Waits up to a minute for a PostgreSQL server that does not answer yet.
    Environment variables set further options, here with their defaults. The name
    tells the unit: TFBBB_JOB_SECONDS=3600, TFBBB_MAX_BODY_BYTES=67108864.

    \b
    TFBBB_ADMIN_KEY               none      the first admin key, prefix.secret
    TFBBB_START_MODELS            1         0: no process that predicts
    TFBBB_MODEL_PROCESSES         2         processes that predict
    TFBBB_MODEL_MEMORY_BYTES      8 GiB     memory over which one is restarted
    TFBBB_IDLE_SECONDS            600 s     idle time of an old version
    TFBBB_START_DISPATCHER        1         0: no process that runs jobs
    TFBBB_JOB_SLOTS               cores/2   jobs that run at the same time here
    TFBBB_JOB_SLOTS_PER_KEY       no limit  jobs that one key may run at a time
    TFBBB_JOB_MEMORY_BYTES        8 GiB     most resident memory of a job
    TFBBB_JOB_SECONDS             86400 s   longest time of one attempt of a job
    TFBBB_CHECKPOINT_SECONDS      30 s      time between checkpoints of a job
    TFBBB_LEASE_SECONDS           30 s      silence after which a lease expires
    TFBBB_WARM_SECONDS            300 s     time that a trainer waits for a job
    TFBBB_MAX_UPLOAD_BYTES        8 GiB     largest upload
    TFBBB_MAX_DECOMPRESSED_BYTES  64 GiB    most memory of a dataset's values
    TFBBB_MAX_UPLOAD_ROWS         100000000 most rows of a dataset
    TFBBB_MAX_UPLOAD_COLUMNS      4096      most columns of a dataset
    TFBBB_UPLOAD_STALL_SECONDS    30 s      longest time for 64 KiB to arrive
    TFBBB_INSPECTION_SECONDS      900 s     most processor time of an inspection
    TFBBB_INSPECTION_MEMORY_BYTES 2 GiB     most memory of an inspection
    TFBBB_MAX_DATASETS            1000      most datasets of a key (*)
    TFBBB_MAX_DATASET_BYTES       100 GiB   most bytes of a key's datasets (*)
    TFBBB_MAX_QUEUED_JOBS         1000      most queued jobs of a key (*)
    TFBBB_MIN_FREE_BYTES          512 MiB   free disk that uploads must leave
    TFBBB_POLL_SECONDS            1 s       time between checks for new versions
    TFBBB_THREADS                 cores/2   batches computed at the same time
    TFBBB_DEFAULT_NUM_SAMPLES     model's   draws per prediction
    TFBBB_MAX_WORK                10000000  most rows x draws x answers at once
    TFBBB_MAX_WORK_PER_SECOND     no limit  such work of each key per second
    TFBBB_DEADLINE_MS             30000 ms  deadline of predictions that name none
    TFBBB_MAX_QUEUE_SECONDS       2 s       time that a prediction may wait
    TFBBB_MAX_WAITING_REQUESTS    1000      predictions that wait at the same time
    TFBBB_MAX_WAITING_BYTES       256 MiB   bodies of predictions that wait
    TFBBB_HEARTBEAT_SECONDS       2 s       silence after which models restart
    TFBBB_MAX_RECORDED_ROWS       100000    most rows recorded for feedback
    TFBBB_RECORDED_SECONDS        2592000 s longest time that such a row is kept
    TFBBB_MAX_BODY_BYTES          32 MiB    largest body of a `:predict` request
    TFBBB_ACCESS_LOG              text      line per request: text, json or off

    (*) unless the key has a limit of its own

    Example: tfbbb serve --port 9000 --models models
    """  # noqa: D301 - the backspace, not its name, keeps the lines apart
    with errors_in_one_sentence():
        import uvicorn

        from service.api.http.protocol import JsonErrorProtocol
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
        # Open the port before creating the first key: if the port is taken, the key,
        # which is shown only once, would be lost.
        with _open_listener(host, port) as listener:
            key = _first_key(settings, host)
            config = uvicorn.Config(
                create_app(settings),
                http=JsonErrorProtocol,
                access_log=settings.access_log == "text",
                timeout_graceful_shutdown=_SECONDS_TO_FINISH_REQUESTS,
            )
            _print_url(host, listener.getsockname()[1], key, settings.insecure)
            # The event loop accepts one connection per turn and socket: while its turns
            # are long, others would wait for seconds to be accepted.
            with ExitStack() as others:
                more = [
                    others.enter_context(listener.dup())
                    for _ in range(_ACCEPTED_PER_TURN - 1)
                ]
                uvicorn.Server(config).run(sockets=[listener, *more])


def _open_listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise CommandError(
            f"Cannot listen on {host}, port {port}: {error.strerror}."
        ) from None


def _first_key(settings: "Settings", host: str) -> "Credential | None":
    from service.api.keys.credential import CredentialError
    from service.api.keys.first_key import NoKeyError, create_first_key

    try:
        with service_database(settings, starting=True) as database:
            return create_first_key(database, settings, host)
    except (NoKeyError, CredentialError) as error:
        raise CommandError(str(error)) from None


def _print_url(host: str, port: int, key: "Credential | None", insecure: bool) -> None:
    # A browser cannot open the address that stands for all addresses of the machine.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    if insecure:
        typer.echo(f"{url} accepts every request without a key.")
    elif key is None:
        typer.echo(
            f"{url} requires a key; create one with `tfbbb keys create NAME --scope "
            "train`."
        )
    else:
        typer.echo(
            f"This URL contains an admin key, shown only once; open or save it:\n\n"
            f"    {url}?key={key.text}\n"
        )


def _make_directory(models: Path) -> None:
    if models.exists():
        return
    try:
        models.mkdir(parents=True)
    except OSError as error:
        raise CommandError(
            f"Cannot create the models directory {models}: {error.strerror}; name a "
            "writable directory with --models."
        ) from None
    typer.echo(f"created the models directory {models}")


def _check_directory(models: Path) -> None:
    if not models.exists():
        raise CommandError(
            f"There is no directory {models}; create it, or name the models directory "
            "with --models."
        )
    if not models.is_dir():
        raise CommandError(
            f"{models} is a file; name the models directory with --models."
        )


def _check_writable(models: Path) -> None:
    # Otherwise a job would fail only after its training.
    try:
        with tempfile.TemporaryFile(dir=models):
            pass
    except OSError as error:
        raise CommandError(
            f"Jobs cannot write models to {models}: {error.strerror}. Give user "
            f"{os.geteuid()} write permission, or set TFBBB_START_DISPATCHER=0 to "
            "serve predictions without training."
        ) from None
