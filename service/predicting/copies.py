"""This machine's copies of the versions in a store."""

import contextlib
import fcntl
import logging
import threading
import time

from service.predicting.adoption import Ledger
from service.shared.errors import Unavailable
from service.shared.store import Store
from tfbbb.export.manifest import Manifest, ManifestError

logger = logging.getLogger(__name__)

# Time for old versions per refresh, so that new versions need not wait for them.
_SECONDS_FOR_OLD_VERSIONS = 1.0
_LOCK = ".downloading"


class VersionCopies:
    """Downloads the versions of an object store; without an answer, copies stay."""

    def __init__(self, store: Store, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger
        self._fault: str | None = None
        self._removed: set[tuple[str, int]] = set()
        self._suitable: dict[tuple[str, int], bool] = {}

    def fetch_newest(self) -> None:
        """Fetches `latest`, newer and labelled versions; removes deleted ones."""
        try:
            kept, deleted = self._recorded()
            needed = self._ledger.labelled() & kept if kept else set()
        except Unavailable:
            return
        for name, number in sorted(needed):
            self._fetch(name, number)
        with_latest: set[str] = set()
        for name, number in sorted(kept, reverse=True):
            if name not in with_latest:
                self._fetch(name, number)
                if self._becomes_latest(name, number):
                    with_latest.add(name)
        for name, number in deleted - self._removed:
            self._store.remove_copy(name, number)
        self._removed = deleted

    def fetch_others(self, stop: threading.Event | None) -> None:
        """Fetches the other versions, the newest first, for a few seconds."""
        due = time.monotonic() + _SECONDS_FOR_OLD_VERSIONS
        with contextlib.suppress(Unavailable):
            kept, _ = self._recorded()
            for name, number in sorted(kept, key=lambda version: -version[1]):
                if time.monotonic() > due or (stop is not None and stop.is_set()):
                    return
                self._fetch(name, number)

    def fetch_recorded(self, name: str, number: int) -> None:
        """Fetches one version, if it is recorded."""
        with contextlib.suppress(Unavailable):
            if (name, number) in self._recorded()[0]:
                self._fetch(name, number)

    def _recorded(self) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
        """Returns the versions of an object store: the kept, the deleted."""
        return (set(), set()) if self._store.is_directory else self._ledger.versions()

    def _becomes_latest(self, name: str, number: int) -> bool:
        """Returns whether a version may be `latest`; True if it cannot be read."""
        if (name, number) not in self._suitable:
            try:
                manifest = Manifest.read(self._store.models / name / str(number))
            except (ManifestError, OSError):
                return True
            self._suitable[name, number] = manifest.becomes_latest
        return self._suitable[name, number]

    def _fetch(self, name: str, number: int) -> None:
        """Fetches a version that is not here; logs a fault once."""
        try:
            # The API processes of a machine share its copies.
            self._store.models.mkdir(parents=True, exist_ok=True)
            with (self._store.models / _LOCK).open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._store.version(name, number)
        except OSError as error:
            reason = error.strerror or str(error)
            if reason != self._fault:
                what = f"version {number} of the model {name!r}"
                logger.warning("%s cannot be downloaded: %s", what, reason)
            self._fault = reason
        else:
            self._fault = None
