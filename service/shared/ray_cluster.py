"""Checks at the start whether jobs can run on a Ray cluster; does not import Ray."""

import importlib.metadata
import ipaddress
import os
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from service.shared.database import Database
from service.shared.settings import Settings

_SECONDS_TO_ANSWER = 10.0


class RayClusterError(Exception):
    """Jobs cannot run on the cluster; the message says why."""


def check_cluster(settings: Settings) -> str | None:
    """Checks the settings, and whether the cluster answers."""
    address = settings.ray_address
    if address is None:
        raise RayClusterError(
            "The launcher `ray` needs the address of the cluster's Jobs API: "
            "--ray-address http://HOST:8265."
        )
    try:
        here = importlib.metadata.version("ray")
    except importlib.metadata.PackageNotFoundError:
        raise RayClusterError(
            "The launcher `ray` needs the package `ray`: pip install 'tfbbb[ray]'."
        ) from None
    database = Database(settings.effective_database_url)
    if database.is_sqlite and not _is_this_machine(address):
        raise RayClusterError(
            "Trainers on other machines cannot share a SQLite database; name a "
            f"PostgreSQL database with --database-url. Received: {database.name}"
        )
    there = _version(address)
    if there.split(".")[0] != here.split(".")[0]:
        raise RayClusterError(
            f"The cluster at {address} runs Ray {there}, which the client {here} does "
            f"not support: install ray=={there} here, or Ray {here} there."
        )
    if there != here:
        return (
            f"The cluster at {address} runs Ray {there}, and this machine has Ray "
            f"{here}: install the same version if jobs cannot be submitted."
        )
    return None


def authorization() -> dict[str, str]:
    """Returns the header with Ray's token; none where this machine has no token.

    As Ray reads it: RAY_AUTH_TOKEN, the file RAY_AUTH_TOKEN_PATH, `~/.ray/auth_token`.
    Ray's own client sends it only if RAY_AUTH_MODE is set too.
    """
    if os.environ.get("RAY_AUTH_MODE", "token").lower() == "disabled":
        return {}
    token = os.environ.get("RAY_AUTH_TOKEN", "").strip()
    named = os.environ.get("RAY_AUTH_TOKEN_PATH")
    file = Path(named) if named else Path("~/.ray/auth_token").expanduser()
    if not token:
        try:
            token = file.read_text().strip()
        except OSError as error:
            if named:
                raise RayClusterError(
                    f"Ray's token cannot be read: RAY_AUTH_TOKEN_PATH={named}: "
                    f"{error.strerror}"
                ) from None
    return {"Authorization": f"Bearer {token}"} if token else {}


def describe_refusal(status: int) -> str:
    """Describes an answer with status 401 (no token) or 403 (a wrong one)."""
    what = "needs a token" if status == 401 else "refuses the token of this machine"
    return (
        f"The Ray cluster {what}: `ray get-auth-token` prints it on the head; set "
        "RAY_AUTH_TOKEN to it, or RAY_AUTH_TOKEN_PATH to a file that has it"
    )


def _version(address: str) -> str:
    try:
        response = httpx.get(
            f"{address}/api/version",
            headers=authorization(),
            timeout=_SECONDS_TO_ANSWER,
        )
        if response.status_code in (401, 403):
            refusal = describe_refusal(response.status_code)
            raise RayClusterError(f"{address}: {refusal}.")
        response.raise_for_status()
        return str(response.json()["ray_version"])
    except httpx.HTTPStatusError as error:
        reason = f"it answered with status {error.response.status_code}"
    except httpx.HTTPError as error:
        reason = str(error) or type(error).__name__
    except (ValueError, KeyError, TypeError):
        reason = "what answers there is not the Jobs API"
    raise RayClusterError(
        f"No Ray cluster answers at {address}: {reason}. Start one with `ray start "
        "--head`, or name the address of its dashboard with --ray-address."
    )


def _is_this_machine(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
