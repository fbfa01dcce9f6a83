import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.responses import RedirectResponse

import tfbbb
from service.errors import answer_errors_in_one_shape
from service.health import endpoints as health
from service.models import endpoints as models
from service.models.registry import Registry
from service.predictions import endpoints as predictions
from service.settings import Settings
from service.state import ServiceState

_DESCRIPTION = """
Predictions of Bayesian neural networks, with their uncertainty split into what more
data would remove (*epistemic*) and what it would not (*aleatoric*).

The paths and bodies are those of TensorFlow Serving's REST API; a request may add
`parameters`, and an answer says how many draws are behind it. The same request gets
the same answer.
"""


def create_app(settings: Settings | None = None) -> FastAPI:
    """Makes the service, an ASGI application.

    Args:
        settings: Read from the environment by default.

    Example:

    `uvicorn --factory service.app:create_app`
    """
    settings = settings or Settings.from_environment()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, ServiceState]]:
        registry = Registry(settings.models)
        stop = threading.Event()
        # In a thread of its own, so that the service answers, if only that it is
        # not ready, while TensorFlow is imported.
        watcher = threading.Thread(
            target=registry.watch,
            args=(stop, settings.poll_seconds),
            name="registry",
            daemon=True,
        )
        watcher.start()
        with ThreadPoolExecutor(settings.threads, "prediction") as workers:
            yield {"service": ServiceState(settings, registry, workers)}
        stop.set()
        await asyncio.to_thread(watcher.join)

    app = FastAPI(
        title="tfbbb",
        version=tfbbb.__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
    )
    app.include_router(predictions.router)
    app.include_router(models.router)
    app.include_router(health.router)
    app.add_api_route("/", lambda: RedirectResponse("docs"), include_in_schema=False)
    answer_errors_in_one_shape(app)
    return app
