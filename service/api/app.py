"""Creates the ASGI application of the service."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from functools import partial

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware

import tfbbb
from service.api import audit, health, metrics, pages, retention
from service.api.datasets import endpoints as datasets
from service.api.datasets.store import DatasetStore
from service.api.feedback import endpoints as feedback
from service.api.http.errors import (
    ANY_ERROR,
    DATABASE_OUTAGES,
    answer_errors_in_one_shape,
    answer_outage,
)
from service.api.http.prefix import Prefix
from service.api.http.requests import Requests
from service.api.jobs import endpoints as jobs
from service.api.keys import endpoints as keys
from service.api.keys.authentication import Authentication
from service.api.keys.keyring import Keyring
from service.api.labels import endpoints as labels
from service.api.labels.repository import LabelRoutes
from service.api.metrics import Registries, disk_metrics, feedback_metrics, job_metrics
from service.api.models import endpoints as models
from service.api.open_inference import endpoints as open_inference
from service.api.predictions import endpoints as predictions
from service.api.preparation import prepare
from service.api.sandbox import Sandbox
from service.api.server import shutdown_event
from service.api.state import ServiceState
from service.predicting.adoption import Ledger
from service.predicting.metrics import loaded_metrics
from service.predicting.models import Models
from service.predicting.refreshes import Refreshes
from service.predicting.registry import ModelRegistry
from service.shared.data_directory import lock_data_directory
from service.shared.database import Database
from service.shared.queue import Queue
from service.shared.settings import Settings
from tfbbb.base.threads import one_blas_thread

# Allocations before a collection, and younger collections before each older one.
_GC_THRESHOLDS = (10_000, 20, 100)
_THREADS = 64
# Answers of so many bytes are compressed for those who ask, as these are not.
_COMPRESSED_BYTES = 2**12
_COMPACT = (
    "application/octet-stream",
    "application/vnd.apache.arrow.stream",
    "application/vnd.apache.parquet",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
)
# What pages of other origins may read of the headers.
_EXPOSED = ("X-Request-Id", "Retry-After", "Model-Version", "Content-Disposition")

_DESCRIPTION = """
Predictions of Bayesian neural networks. The uncertainty is split into the part that
more data would remove (*epistemic*) and the part that remains (*aleatoric*).

Predictions have the paths and bodies of TensorFlow Serving's REST API, or those of the
Open Inference Protocol. The same request always gets the same response.

Jobs train models on uploaded datasets. Every key with the scope `train` sees all jobs
and datasets, and may cancel or delete those of other keys. Times are UTC.
"""


def create_app(
    settings: Settings | None = None, *, refreshes: Refreshes | None = None
) -> FastAPI:
    """Creates an API process of the service, an ASGI application.

    The settings are by default those of the environment. A process without `refreshes`
    has no parent and no others beside it, and prepares the database itself.
    """
    settings = settings or Settings.from_environment()
    registries = Registries()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, object]]:
        # `Requests` logs all requests, without the keys that URLs may have.
        logging.getLogger("uvicorn.access").disabled = True
        # Threads that wait for a lost database must not use up those of others.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS))
        database = Database(settings.effective_database_url)
        is_alone = refreshes is None
        followed = refreshes or Refreshes()
        with (
            shutdown_event() as stopping,
            # Predictions have threads of their own.
            one_blas_thread(),
            lock_data_directory(settings) if is_alone else nullcontext(),
        ):
            if is_alone:
                await asyncio.to_thread(prepare, database, settings)
            state = _create_state(settings, database, registries, followed, stopping)
            state.models.start()
            # One process of a service removes what is not kept any longer.
            removing: asyncio.Task[None] | None = None
            if not followed.number:
                removing = asyncio.create_task(retention.tend(database, settings))
            # If every collection visited what lives until shutdown, 1 MB of JSON would
            # take 0.5 s to parse; a full one of thousands of connections takes 0.1 s.
            gc.freeze()
            gc.set_threshold(*_GC_THRESHOLDS)
            yield {"service": state}
            if removing is not None:
                removing.cancel()
            state.models.close()
        database.close()

    app = FastAPI(
        title="tfbbb",
        version=tfbbb.__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        # `pages` has all three.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
        # Behind a TLS proxy, a redirect would lead to plain HTTP and expose keys.
        redirect_slashes=False,
        # Generated clients would have two classes for one spec.
        separate_input_output_schemas=False,
        responses={"default": ANY_ERROR},
    )
    pages.describe_portably(app)
    # FastAPI would look for the route of an included router twice.
    app.router.routes.extend(predictions.router.routes)
    for router in (
        models.router,
        open_inference.router,
        labels.router,
        feedback.router,
        jobs.router,
        keys.keys,
        keys.session,
        audit.router,
        datasets.router,
        metrics.router,
        health.router,
        pages.router,
    ):
        app.include_router(router)
    app.add_middleware(Authentication)
    if settings.cors_origins:
        # Never with cookies: pages of other origins send a key.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins.split(","),
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["*"],
            expose_headers=_EXPOSED,
        )
    app.add_middleware(
        GZipMiddleware,
        minimum_size=_COMPRESSED_BYTES,
        compresslevel=1,
        exclude_content_types=(*DEFAULT_EXCLUDED_CONTENT_TYPES, *_COMPACT),
    )
    app.add_middleware(Requests, registry=registries.counted)
    app.add_middleware(Prefix, prefix=settings.root_path)
    answer_errors_in_one_shape(app)
    for outage in (*DATABASE_OUTAGES, OSError):
        app.add_exception_handler(outage, answer_outage)
    return app


def _create_state(
    settings: Settings,
    database: Database,
    registries: Registries,
    refreshes: Refreshes,
    stopping: asyncio.Event,
) -> ServiceState:
    queue = Queue(database, settings)
    ledger = Ledger(database, queue.store)
    registry = ModelRegistry(queue.store, ledger, settings.model_memory_bytes)
    models = Models(registry, settings, registries.counted, refreshes)
    registries.observe(partial(loaded_metrics, registry))
    registries.observe(partial(job_metrics, database))
    registries.observe(partial(feedback_metrics, database))
    registries.observe(partial(disk_metrics, settings, queue.store.models, database))
    return ServiceState(
        settings=settings,
        database=database,
        keyring=Keyring(database),
        models=models,
        routes=LabelRoutes(database),
        queue=queue,
        stopping=stopping,
        datasets=DatasetStore(settings, database, queue.store),
        sandbox=Sandbox(),
        metrics=registries,
    )
