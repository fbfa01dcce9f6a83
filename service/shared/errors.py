"""The errors that clients may get, in whichever process they arise."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar


class ServiceError(Exception):
    """An answer with an error status; its docstring describes it to clients.

    Subclasses register by name, so that one process can send any of them to another.
    """

    status: ClassVar[int]
    headers: Mapping[str, str] = MappingProxyType({})
    _by_name: ClassVar[dict[str, type["ServiceError"]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._by_name[cls.__name__] = cls

    def to_message(self) -> dict[str, str]:
        """The error as JSON, for another process."""
        return {"error": type(self).__name__, "message": str(self)}

    @classmethod
    def from_message(cls, message: Mapping[str, str]) -> "ServiceError | None":
        """The error that `to_message` wrote; None if it is of an unknown class."""
        kind = cls._by_name.get(message["error"])
        return None if kind is None else kind(message["message"])


class InvalidRequest(ServiceError):
    """The request is malformed or does not fit the model; the message says where.

    Values so large that the model has no finite answer for them do not fit it.
    """

    status = 400


class Unauthenticated(ServiceError):
    """The request has no valid API key; the message says why."""

    status = 401


class Forbidden(ServiceError):
    """The key does not allow this; the message says which scope does."""

    status = 403


class QuotaExceeded(Forbidden):
    """The key has reached its limit of datasets, or of bytes in them."""


class UnknownModel(ServiceError):
    """There is no such model, or no such version of it."""

    status = 404


class UnknownDataset(ServiceError):
    """There is no such dataset, or it was deleted."""

    status = 404


class UnknownKey(ServiceError):
    """There is no such key."""

    status = 404


class UnknownJob(ServiceError):
    """There is no such job, or it was deleted."""

    status = 404


class JobStateConflict(ServiceError):
    """The job's state does not allow this; the message says which state it is in."""

    status = 409


class IdempotencyKeyReused(ServiceError):
    """The `Idempotency-Key` was sent before, with another body."""

    status = 409


class LastAdminKey(ServiceError):
    """This is the last key that can make keys; it can't be revoked."""

    status = 409


class UploadTimeout(ServiceError):
    """The upload came too slowly, or not at all."""

    status = 408


class DatasetInUse(ServiceError):
    """An unfinished job needs the dataset; the message names the job."""

    status = 409


class UnknownLabel(ServiceError):
    """There is no such model, or no such label or version of it."""

    status = 404


class LabelRefused(ServiceError):
    """The label can't move there; the message says why, with the gate's figures."""

    status = 409


class VersionInUse(ServiceError):
    """The version can't be deleted; the message names what needs it."""

    status = 409


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
    """The file is no table, or is over a limit; the message says where and why."""

    status = 422


class Unavailable(ServiceError):
    """The model can't be loaded, or the service is not ready; the message says why."""

    status = 503


class InsufficientStorage(ServiceError):
    """The disk is full, or nearly so."""

    status = 507
