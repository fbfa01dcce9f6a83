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

    Other settings are environment variables TFBBB_...
    """
    with errors_in_one_sentence():
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import uvicorn

        from service.app import create_app
        from service.settings import Settings, SettingsError

        environment = dict(os.environ)
        if models is not None:
            if models.exists() and not models.is_dir():
                raise CommandError(f"{models} is a file, not a directory of models.")
            environment["TFBBB_MODELS"] = str(models)
        try:
            settings = Settings.from_environment(environment)
        except SettingsError as error:
            raise CommandError(str(error)) from None
        uvicorn.run(create_app(settings), host=host, port=port)
