"""The admin key that the first start makes."""

import ipaddress

from service.api.keys.credential import Credential
from service.api.keys.repository import add_key, has_admin_key, preset_admin_key
from service.api.keys.scope import Scope
from service.shared.database import Database
from service.shared.settings import Settings


class NoKeyError(Exception):
    """The service has no key, so nobody could use it; the message names the remedy."""


def first_key(database: Database, settings: Settings, host: str) -> Credential | None:
    """Sees to it that somebody can use a service that is about to listen.

    Args:
        database: Where the keys are.
        settings: The operator's choices.
        host: Where it will listen. What this machine alone can reach gets an admin key
            if there is none; anything else is not opened without one.

    Returns:
        The key that was made, if one was.

    Raises:
        NoKeyError: If there is no key to protect a service that others can reach.
        CredentialError: If the key of the environment can't be an admin key.
    """
    if settings.admin_key is not None:
        preset_admin_key(database, settings.admin_key.get_secret_value())
    if settings.insecure or has_admin_key(database):
        return None
    if not is_loopback(host):
        raise NoKeyError(
            f"Whoever reaches {host} could ask the service, and there is no key yet: "
            "set TFBBB_ADMIN_KEY to `prefix.secret`, or make one with `tfbbb keys "
            "create NAME --scope admin`, or let everybody in with --insecure."
        )
    credential = Credential.generate()
    with database.writing() as session:
        add_key(database, session, credential, "first start", [Scope.ADMIN])
    return credential


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # A name that may lead anywhere.
