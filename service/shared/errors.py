"""The errors that clients may get, raised in any process."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from tfbbb.base.texts import snake_case


class ServiceError(Exception):
    """An error response. The docstring of a subclass is its OpenAPI description."""

    status: ClassVar[int]
    # The name of the class, as `unknown_model`.
    code: ClassVar[str]
    headers: Mapping[str, str] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.code = snake_case(cls.__name__)

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class InvalidRequest(ServiceError):
    """The request is malformed or does not fit the model; the message says where.

    This includes values so large that the prediction is not finite.
    """

    status = 400


class Unauthenticated(ServiceError):
    """The request has no valid API key; the message has the reason."""

    status = 401
    headers = MappingProxyType({"WWW-Authenticate": "Bearer"})


class Forbidden(ServiceError):
    """The key does not allow this; the message says which scope does."""

    status = 403


class NotFound(ServiceError):
    """There is no such resource."""

    status = 404


class Conflict(ServiceError):
    """The state of a resource does not allow this."""

    status = 409


class UnknownModel(NotFound):
    """There is no such model or version."""


class UnknownReport(NotFound):
    """The version has no report: an earlier release or no table trained it."""


class UnknownDataset(NotFound):
    """There is no such dataset, or it was deleted."""


class UnknownKey(NotFound):
    """There is no such key."""


class UnknownJob(NotFound):
    """There is no such job, or it was deleted."""


class JobStateConflict(Conflict):
    """The job's state does not allow this; the message says which state it is in."""


class IdempotencyKeyReused(Conflict):
    """The `Idempotency-Key` was sent before, with another body."""


class KeyNameInUse(Conflict):
    """A usable key has this name; the message names the key."""


class LastAdminKey(Conflict):
    """This is the last key that can create keys, so it cannot be revoked."""


class NotAcceptable(ServiceError):
    """The service writes none of the formats that `Accept` lists."""

    status = 406


class UploadTimeout(ServiceError):
    """The upload arrived too slowly, or not at all."""

    status = 408


class DatasetInUse(Conflict):
    """An unfinished job needs the dataset; the message names the job."""


class UnknownLabel(NotFound):
    """There is no such model, label or version."""


class LabelRefused(Conflict):
    """The label cannot move to the version; the message has the reason."""


class VersionInUse(Conflict):
    """The version cannot be deleted; the message names its user."""


class RequestTooLarge(ServiceError):
    """The request is over a limit, which the message names."""

    status = 413


class UnsupportedMediaType(ServiceError):
    """The format of the body is not supported, or is not the one it declares."""

    status = 415


class QueueFull(ServiceError):
    """The queue of this key is full; submit again when some jobs have started."""

    status = 429


class InvalidTable(ServiceError):
    """The file is not a table, exceeds a limit, or does not fit the job."""

    status = 422


class Unavailable(ServiceError):
    """A model cannot be loaded, or the service is not ready; retry later."""

    status = 503


class Overloaded(Unavailable):
    """Too much work is waiting; retry after the seconds of `Retry-After`."""

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.headers = {"Retry-After": str(max(1, math.ceil(retry_after)))}


class DeadlineExceeded(Overloaded):
    """The service cannot answer before the deadline of the request."""


class InsufficientStorage(ServiceError):
    """The disk is full or nearly full."""

    status = 507
