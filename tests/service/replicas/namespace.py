"""A network namespace: a machine with a network and a host name of its own."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

# Names of interfaces have 15 characters at most.
_NAME = f"tfbbb{os.getpid()}"
_OUTSIDE, _INSIDE = f"{_NAME}a", f"{_NAME}b"
HERE, FAR = "10.99.77.1", "10.99.77.2"


@dataclass(frozen=True)
class Namespace:
    """A namespace whose address is `FAR`; this machine is `HERE` for it.

    Attributes:
        prefix: The command that runs others in it.
    """

    prefix: tuple[str, ...]

    def drop(self, port: int) -> None:
        """Drops all packets to and from a port of this machine, until `heal`."""
        _run(*self._iptables, "-A", "OUTPUT", "-p", "tcp", "--dport", port, *_DROP)
        _run(*self._iptables, "-A", "INPUT", "-p", "tcp", "--sport", port, *_DROP)

    def heal(self) -> None:
        """Passes all packets again."""
        _run(*self._iptables, "-F")

    @property
    def _iptables(self) -> tuple[str, ...]:
        return ("ip", "netns", "exec", _NAME, "iptables")


_DROP = ("-j", "DROP")


def own_host_name(name: str) -> tuple[str, ...]:
    """The command that runs another one under a host name, as on another machine."""
    return ("unshare", "--uts", "sh", "-c", f'hostname {name}; exec "$@"', "sh")


@contextmanager
def network_namespace() -> Iterator[Namespace]:
    """Makes a namespace until the block ends.

    The test is skipped where this process may not make one.
    """
    if os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("iptables")):
        pytest.skip("network namespaces need root, iproute2 and iptables")
    namespace = Namespace(("ip", "netns", "exec", _NAME, *own_host_name("far")))
    try:
        try:
            _ip(f"netns add {_NAME}")
            _ip(f"link add {_OUTSIDE} type veth peer name {_INSIDE}")
            _ip(f"link set {_INSIDE} netns {_NAME}")
            _ip(f"addr add {HERE}/30 dev {_OUTSIDE}")
            _ip(f"link set {_OUTSIDE} up")
            _ip(f"-n {_NAME} addr add {FAR}/30 dev {_INSIDE}")
            _ip(f"-n {_NAME} link set {_INSIDE} up")
            _ip(f"-n {_NAME} link set lo up")
            namespace.heal()
            _run(*namespace.prefix, "true")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this machine has no network namespaces: {error.stderr}")
        yield namespace
    finally:
        subprocess.run(["ip", "netns", "del", _NAME], check=False, capture_output=True)


def _ip(arguments: str) -> None:
    _run("ip", *arguments.split())


def _run(*command: object) -> None:
    subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
