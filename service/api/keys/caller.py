"""The caller of a request, and the scopes that endpoints require."""

from dataclasses import dataclass
from typing import Annotated, Self, cast

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer, SecurityScopes

from service.api.keys.credential import Scope
from service.shared.database.tables import Key
from service.shared.errors import Forbidden

# Documents in OpenAPI how to send a key; the middleware checks the key.
_BEARER = HTTPBearer(
    auto_error=False, scheme_name="key", description="An API key, `prefix.secret`."
)


@dataclass(frozen=True)
class Caller:
    """The caller of a request, with all scopes that its key has and implies.

    `key_id` is None if the service runs without keys, `expires_at` (seconds since 1970)
    if neither the key nor the session of the browser ends.
    """

    key_id: str | None
    name: str
    scopes: frozenset[Scope]
    expires_at: float | None = None

    @classmethod
    def from_key(cls, key: Key, expires_at: float | None) -> Self:
        """Creates the owner of a key."""
        scopes = frozenset[Scope]().union(*(Scope(one).implied for one in key.scopes))
        return cls(key.id, key.name, scopes, expires_at)

    def require(self, scope: Scope) -> None:
        """Raises `Forbidden` unless the caller has `scope`."""
        if scope not in self.scopes:
            held = ", ".join(sorted(self.scopes)) or "none"
            raise Forbidden(
                f"This needs a key with the scope {scope}; ask the operator of the "
                f"service for one. Received: the key {self.name!r:.100}, with {held}"
            )


# The caller of a service that runs without keys.
ANYONE = Caller(None, "anyone", Scope.ADMIN.implied)


async def _allowed(
    request: Request, needed: SecurityScopes, _: Annotated[object, Depends(_BEARER)]
) -> Caller:
    """Returns the caller that the middleware identified, if it has the scopes.

    FastAPI calls this after it has parsed the body; `ScopedRoute` checks them before.
    """
    caller = cast(Caller, request.state.caller)
    for scope in needed.scopes:
        caller.require(Scope(scope))
    return caller


may_read_metrics = Security(_allowed, scopes=[Scope.METRICS])
may_predict = Security(_allowed, scopes=[Scope.PREDICT])
may_administer = Security(_allowed, scopes=[Scope.ADMIN])
Training = Annotated[Caller, Security(_allowed, scopes=[Scope.TRAIN])]
