"""`tfbbb serve`."""

import logging
import multiprocessing
import os
import shlex
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfbbb.base.tensorflow_startup import MissingTensorFlowError, require_tensorflow
from tfbbb.cli.application import Command
from tfbbb.cli.errors import CommandError, errors_in_one_sentence
from tfbbb.cli.service_options import (
    DatabaseUrl,
    DataDir,
    Models,
    service_database,
    service_settings,
)

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue

    from service.shared.settings import Settings


logger = logging.getLogger(__name__)


class ServeCommand(Command):
    """A command whose help lists the settings, from their own declarations."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        with errors_in_one_sentence():
            from service.shared.settings import Settings
        options = {parameter.name for parameter in self.params}
        self.help = (self.help or "").replace("SETTINGS", Settings.table(options))
        super().format_help(ctx, formatter)


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, envvar="TFBBB_PORT", help="Port.")
    ] = 8000,
    models: Models = None,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            envvar="TFBBB_WORKERS",
            help="Processes that answer, each with the models.",
            show_default="cores, at most 4",
        ),
    ] = None,
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
    SETTINGS

    Example: tfbbb serve --port 9000 --models models
    """  # noqa: D301 - the backspace, not its name, keeps the lines apart
    from service.shared.data_directory import (
        DataDirectoryInUseError,
        lock_data_directory,
    )
    from service.shared.logs import configure_logging

    configure_logging("api")
    settings = service_settings(
        models=models,
        data_dir=data_dir,
        database_url=database_url,
        workers=workers,
        insecure=insecure or None,
    )
    if settings.job_slots:
        _check_tensorflow()
    if settings.store is not None:
        if models is not None:
            raise CommandError(
                "The models are either in a directory or in an object store: give "
                f"--models or TFBBB_STORE, not both. Received: --models {models}, "
                f"TFBBB_STORE={settings.store}"
            )
    else:
        if settings.job_slots or models is None:
            _make_directory(settings.models)
        _check_directory(settings.models)
        if settings.job_slots:
            _check_writable(settings.models)
    # Open the port before creating the first key: if the port is taken, the key,
    # which is shown only once, would be lost.
    try:
        with (
            exit_on_sigterm(0),
            lock_data_directory(settings),
            _reserve_port(host, port) as reserved,
        ):
            _run(settings, host, reserved)
    except DataDirectoryInUseError as error:
        raise CommandError(str(error)) from None


def _run(settings: "Settings", host: str, reserved: socket.socket) -> None:
    from service.parent.processes import run

    port = reserved.getsockname()[1]
    _say(_in_a_fork(lambda: _prepare(settings, host, port)))
    run(settings, host, port)


def _in_a_fork(prepare: Callable[[], str]) -> str:
    """Runs a function in a copy of this process, whose memory ends with it.

    What it imports takes twice the memory that this process, which stays, needs.
    """
    fork = multiprocessing.get_context("fork")
    results: SimpleQueue[str | Exception] = fork.SimpleQueue()

    def run() -> None:
        threading.Thread(target=_exit_with_parent, daemon=True).start()
        try:
            results.put(prepare())
        except Exception as error:
            results.put(error)

    child = fork.Process(target=run, daemon=True)
    child.start()
    try:
        child.join()
    finally:
        child.terminate()
    if results.empty():
        raise CommandError("The process that prepares the database was killed.")
    result = results.get()
    if isinstance(result, Exception):
        raise result
    return result


def _exit_with_parent() -> None:
    """Ends this copy of a killed process, whose data directory it keeps locked."""
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _reserve_port(host: str, port: int) -> socket.socket:
    """Binds a port, on which the processes of the API listen; 0 is any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    reserved = socket.socket(family)
    try:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind((host, port))
        # Fails if another service, which would share the port, listens there.
        socket.create_server(reserved.getsockname()[:2], family=family).close()
        return reserved
    except OSError as error:
        reserved.close()
        raise CommandError(
            # Python adds the address, which the sentence names already.
            f"Cannot listen on {host}, port {port}: "
            f"{str(error.strerror).partition(' (while')[0]}."
        ) from None


def _prepare(settings: "Settings", host: str, port: int) -> str:
    """Prepares the database and the directories; returns where the service answers."""
    from service.api.keys.repository import create_first_key
    from service.api.preparation import prepare
    from service.shared.errors import Unauthenticated

    if settings.store is not None:
        _check_store(settings)
    try:
        with service_database(settings, starting=True) as database:
            prepare(database, settings)
            key = create_first_key(database, settings, host)
    except Unauthenticated as error:
        raise CommandError(str(error)) from None
    return _describe_url(host, port, key, settings)


def _database_options(settings: "Settings") -> str:
    """Returns the options with which other commands find the database, no password."""
    from service.shared.database import Database

    options = ""
    if settings.data_dir != type(settings).model_fields["data_dir"].default:
        options += f" --data-dir {shlex.quote(str(settings.data_dir))}"
    if settings.database_url is not None:
        database = Database(settings.database_url)
        name = database.name if database.path is None else settings.database_url
        options += f" --database-url {shlex.quote(name)}"
    return options


def _describe_url(host: str, port: int, key: str | None, settings: "Settings") -> str:
    # A browser cannot open the address that stands for all addresses of the machine.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    root = settings.root_path or ""
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}{root}/"
    if settings.insecure:
        return f"{url} accepts every request without a key."
    if key is None:
        return (
            f"{url} requires a key; create one with `tfbbb keys create NAME --scope "
            f"train{_database_options(settings)}`."
        )
    with_key = f"{url}?key={key}"
    if not _logs_are_json():
        return (
            "This URL contains an admin key, shown only once; open or save it:\n\n"
            f"    {with_key}\n"
        )
    # Others may read logs.
    file = settings.data_dir / "first-key.txt"
    file.touch(mode=0o600)
    file.write_text(f"{with_key}\n")
    return (
        f"{file} contains a URL with an admin key, written only once: open or save it, "
        "then delete the file."
    )


def _logs_are_json() -> bool:
    return os.environ.get("TFBBB_LOG_FORMAT") == "json"


def _say(text: str) -> None:
    """Prints a text; logs it where every line of the output must be JSON."""
    if _logs_are_json():
        logger.info(text)
    else:
        typer.echo(text)


def _check_tensorflow() -> None:
    try:
        require_tensorflow("Training")
    except MissingTensorFlowError as error:
        raise CommandError(
            f"{error} Or set TFBBB_JOB_SLOTS=0 to serve predictions without training."
        ) from None


def _check_store(settings: "Settings") -> None:
    from service.shared.store import StoreError, open_store

    try:
        store = open_store(settings)
        store.check()
        store.models.mkdir(parents=True, exist_ok=True)
    except StoreError as error:
        raise CommandError(
            f"The store {settings.store} cannot be used: {error.strerror}."
        ) from None


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
    _say(f"created the models directory {models}")


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
            f"{os.geteuid()} write permission, or set TFBBB_JOB_SLOTS=0 to serve "
            "predictions without training."
        ) from None


@contextmanager
def exit_on_sigterm(code: int) -> Iterator[None]:
    """Turns SIGTERM into `SystemExit`, so that `finally` blocks run."""

    def exit_process(number: int, frame: object) -> None:
        sys.exit(code)

    previous = signal.signal(signal.SIGTERM, exit_process)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
