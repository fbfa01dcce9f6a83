"""The connection to a Ray cluster."""

import os
import socket
from types import ModuleType

_SECONDS_TO_CONNECT = 5.0


def connect(ray: ModuleType, address: str) -> bool:
    """Connects to a cluster, or starts one of this machine, unless Ray is connected."""
    if ray.is_initialized():
        return False
    refusal = (
        "No Ray cluster answers at this address. Start one with `ray start --head`, or "
        "use ray_address='local' for this machine alone. "
        f"Received: ray_address={address!r}"
    )
    if address not in ("local", "auto"):
        # Ray itself tries for minutes, and may end the process.
        host, _, port = address.removeprefix("ray://").rpartition(":")
        try:
            socket.create_connection((host, int(port)), _SECONDS_TO_CONNECT).close()
        except (OSError, ValueError, OverflowError) as error:
            raise ConnectionError(refusal) from error
    # Ray would report its use to its makers.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options = {"include_dashboard": False} if address == "local" else {}
    try:
        ray.init(address, log_to_driver=False, **options)
    except ConnectionError as error:
        raise ConnectionError(refusal) from error
    return True


def losses(ray: ModuleType) -> tuple[type[Exception], ...]:
    """Returns the errors of a process or machine that died, or whose answer is lost."""
    exceptions = ray.exceptions
    return (
        exceptions.RayActorError,
        exceptions.NodeDiedError,
        exceptions.ObjectLostError,
        exceptions.OutOfMemoryError,
        exceptions.WorkerCrashedError,
    )
