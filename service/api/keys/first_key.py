"""Creates the admin key at the first start."""

import ipaddress

from service.api.keys.credential import Credential
from service.api.keys.repository import add_key, has_admin_key, preset_admin_key
from service.api.keys.scope import Scope
from service.shared.database import Database
from service.shared.settings import Settings


class NoKeyError(Exception):
    """The service has no key, so nobody could use it; the message has the remedy."""


def create_first_key(
    database: Database, settings: Settings, host: str
) -> Credential | None:
    """Ensures that a service that is about to listen has an admin key."""
    if settings.admin_key is not None:
        preset_admin_key(database, settings.admin_key.get_secret_value())
    if settings.insecure or has_admin_key(database):
        return None
    if not is_loopback(host):
        raise NoKeyError(
            f"Other machines can reach {host}, but the service has no key yet: set "
            "TFBBB_ADMIN_KEY to `prefix.secret`, or create a key with `tfbbb keys "
            "create NAME --scope admin`, or allow everybody with --insecure."
        )
    credential = Credential.generate()
    with database.writing() as session:
        add_key(database, session, credential, "first start", [Scope.ADMIN])
    return credential


def is_loopback(host: str) -> bool:
    """Returns whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # A host name may resolve to any address.
