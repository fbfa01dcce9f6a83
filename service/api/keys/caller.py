"""The caller of a request, and the scopes that endpoints require."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Self, cast

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer, SecurityScopes

from service.api.keys.scope import Scope
from service.shared.database.tables import Key
from service.shared.errors import Forbidden
from service.shared.json_types import JsonObject
from service.shared.settings import Settings

# Documents in OpenAPI how to send a key; the middleware checks the key.
_BEARER = HTTPBearer(
    auto_error=False, scheme_name="key", description="An API key, `prefix.secret`."
)

# The limits that the settings give, unless a key has its own.
_LIMITS = ("max_dataset_bytes", "max_queued_jobs")


@dataclass(frozen=True)
class Caller:
    """The caller of a request.

    Args:
        key_id: Id of the key; None if the service runs without keys.
        name: Name of the key.
        scopes: Scopes of the key, including the implied ones.
        max_dataset_bytes: Most bytes in the datasets of the key.
        max_queued_jobs: Most queued jobs of the key.
        expires_at: When the key or the session of the browser ends, in seconds since
            1970; None if neither does.
    """

    key_id: str | None
    name: str
    scopes: frozenset[Scope]
    max_dataset_bytes: int
    max_queued_jobs: int
    expires_at: float | None = None

    @classmethod
    def from_key(cls, key: Key, settings: Settings) -> Self:
        """Creates the owner of a key; settings give the limits that the key lacks."""
        own = {name: getattr(key, name) for name in _LIMITS}
        limits = {name: limit for name, limit in own.items() if limit is not None}
        scopes = _with_implied(key.scopes)
        return cls(
            key.id,
            key.name,
            scopes,
            **(_limits_of(settings) | limits),
            expires_at=key.expires_at,
        )

    @classmethod
    def anyone(cls, settings: Settings) -> Self:
        """Creates the caller of a service that runs without keys."""
        limits = _limits_of(settings)
        return cls(None, "anyone", Scope.ADMIN.implied, **limits)

    def require(self, scope: Scope) -> None:
        """Raises `Forbidden` unless the caller has `scope`."""
        if scope not in self.scopes:
            held = ", ".join(sorted(self.scopes)) or "none"
            raise Forbidden(
                f"This needs a key with the scope {scope}; ask the operator of the "
                f"service for one. Received: the key {self.name!r:.100}, with {held}"
            )


def _limits_of(settings: Settings) -> JsonObject:
    return {name: getattr(settings, name) for name in _LIMITS}


def _with_implied(scopes: Iterable[str]) -> frozenset[Scope]:
    return frozenset().union(*(Scope(scope).implied for scope in scopes))


def get_caller(request: Request) -> Caller:
    """Returns the caller that the middleware identified."""
    return cast(Caller, request.state.caller)


async def _allowed(
    request: Request, needed: SecurityScopes, _: Annotated[object, Depends(_BEARER)]
) -> Caller:
    """Returns the caller; `ScopedRoute` has already checked the scopes.

    FastAPI calls this only after it has parsed the body.
    """
    caller = get_caller(request)
    for scope in needed.scopes:
        caller.require(Scope(scope))
    return caller


may_read_metrics = Security(_allowed, scopes=[Scope.METRICS])
may_predict = Security(_allowed, scopes=[Scope.PREDICT])
may_administer = Security(_allowed, scopes=[Scope.ADMIN])
Training = Annotated[Caller, Security(_allowed, scopes=[Scope.TRAIN])]
