"""`tfbbb serve`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from tfbbb.cli.errors import CommandError, errors_in_one_sentence


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port.")] = 8000,
    models: Annotated[
        Path | None,
        typer.Option(
            envvar="TFBBB_MODELS",
            help="Directory of models, NAME/VERSION.",
            show_default="saved_models",
        ),
    ] = None,
) -> None:
    """Serve the models under a directory over HTTP; /docs describes the API.

    Other settings are environment variables:

    \b
    TFBBB_POLL_SECONDS            time between looks for new versions
    TFBBB_THREADS                 requests that are computed at the same time
    TFBBB_DEFAULT_NUM_SAMPLES     draws behind an answer, unless asked for others
    TFBBB_MAX_ROWS_TIMES_SAMPLES  most rows x draws of one request
    TFBBB_MAX_BODY_BYTES          largest request body
    """  # noqa: D301 - the backspace, not its name, keeps the lines apart
    with errors_in_one_sentence():
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import uvicorn

        from service.app import create_app
        from service.settings import Settings, SettingsError

        environment = dict(os.environ)
        if models is not None:
            environment["TFBBB_MODELS"] = str(models)
        try:
            settings = Settings.from_environment(environment)
        except SettingsError as error:
            raise CommandError(str(error)) from None
        _check_directory(settings.models)
        uvicorn.run(create_app(settings), host=host, port=port)


def _check_directory(models: Path) -> None:
    if not models.exists():
        raise CommandError(
            f"There is no directory {models}; make it, or say with --models where the "
            "models are."
        )
    if not models.is_dir():
        raise CommandError(f"{models} is a file, not a directory of models.")
