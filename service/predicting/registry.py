"""The models under a directory; follows its changes."""

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from service.predicting.adoption import Ledger
from service.predicting.copies import VersionCopies
from service.predicting.loaded_model import LoadedModel
from service.predicting.version import ServedVersion, fingerprint
from service.shared.errors import Unavailable, UnknownModel
from service.shared.store import Store
from service.shared.versions import MadeLatest, may_be_latest
from tfbbb.base.texts import MOST_VERSIONS, is_model_name
from tfbbb.export.versions import version_number

logger = logging.getLogger(__name__)

# Without a request, until a version that is neither `latest` nor labelled is unloaded.
_IDLE_SECONDS = 600.0


class ModelRegistry:
    """The models under one directory, in TensorFlow Serving's layout.

    Other files than `ROOT/NAME/VERSION/saved_model.pb` are ignored. Names from clients
    are looked up among the names found, and never become paths. `latest` changes only
    after another version has been loaded, so that a new version, even a broken one,
    never interrupts predictions. Versions with labels are loaded too, others on demand.
    """

    def __init__(
        self, store: Store, ledger: Ledger, max_bytes: float = float("inf")
    ) -> None:
        self.root = store.models
        self._max_bytes = max_bytes
        self._ledger = ledger
        self._copies = VersionCopies(store, ledger)
        self._models: Mapping[str, Mapping[int, ServedVersion]] = {}
        self._latest: dict[str, ServedVersion] = {}
        self._made_latest: dict[str, MadeLatest] = {}
        self._kept: set[ServedVersion] = set()
        self._scanning = threading.Lock()
        # Held for each change of `_latest` and `_kept`.
        self._changing = threading.Lock()
        # Whether the directory was read once.
        self.has_refreshed = False
        self._misplaced: set[Path] = set()
        # The directory in which versions were found last, and whether it is gone.
        self._found_in: tuple[int, int] | None = None
        self._is_gone = False

    def refresh(self, stop: threading.Event | None = None) -> None:
        """Scans the directory, loads `latest` of each model, adopts other versions."""
        self._copies.fetch_newest()
        self.scan()
        self._find_made_latest()
        for name in self.names():
            if stop is not None and stop.is_set():
                return
            try:
                self._load_latest(name)
            except (Unavailable, UnknownModel):
                continue  # The states of the versions have the reason.
        self._load_labelled_versions()
        self.has_refreshed = True
        self._unload_idle_versions()
        self._copies.fetch_others(stop)
        for versions in self.catalog().values():
            for version in versions:
                if stop is not None and stop.is_set():
                    return
                with contextlib.suppress(Unavailable):
                    version.adopt()  # If that fails now, the next refresh retries.

    def scan(self) -> None:
        """Adds and drops versions as files change, none if the directory is gone."""
        with self._scanning:
            found: dict[str, dict[int, ServedVersion]] = {}
            directories, place = self._directories(), _identity(self.root)
            self._is_gone = not directories and self._found_in not in (None, place)
            if self._is_gone:
                return
            if directories:
                self._found_in = place
            for name, number, path in directories:
                version = self._models.get(name, {}).get(number)
                try:
                    files = fingerprint(path)
                except FileNotFoundError:
                    continue  # Removed during the scan.
                except OSError:
                    # The disk does not answer now: what was read before stands. A new
                    # version says so in its status, and is read again by the next scan.
                    files = () if version is None else version.fingerprint
                if version is None or version.fingerprint != files:
                    version = ServedVersion(name, number, path, files, self._ledger)
                found.setdefault(name, {})[number] = version
            self._models = found
            self._warn_of_misplaced_models()
            with self._changing:
                for name in self._latest.keys() - found.keys():
                    del self._latest[name]

    def check_ready(self) -> None:
        """Raises `Unavailable` until every model is loaded or known to be broken."""
        if not self.root.is_dir():
            raise Unavailable("There is no models directory.")
        if self._is_gone:
            raise Unavailable(
                "The models directory is another one than before, and empty; versions "
                "that are loaded are still served."
            )
        if not self.has_refreshed:
            raise Unavailable("The models are being loaded.")

    def knows(self, name: str) -> bool:
        """Whether there is a model of this name."""
        return name in self._models

    def names(self) -> list[str]:
        """Returns the names of the models."""
        return sorted(self._models)

    def catalog(self) -> dict[str, list[ServedVersion]]:
        """Returns every model with its versions, newest first."""
        return {
            name: [versions[number] for number in sorted(versions, reverse=True)]
            for name, versions in sorted(self._models.items())
        }

    def versions(self, name: str) -> list[ServedVersion]:
        """Returns all versions of a model, newest first."""
        if name not in self._models:
            self.scan()
        if found := self.catalog().get(name):
            return found
        known = ", ".join(map(repr, self.names())) or "none"
        raise UnknownModel(
            f"There is no model with this name; the models are: {known}. "
            f"Received: {name!r:.100}"
        )

    def version(self, name: str, number: int | None = None) -> ServedVersion:
        """Returns the version with a number, or `latest`."""
        if number is None:
            return self._latest.get(name) or self._load_latest(name)
        if number not in self._models.get(name, {}):
            self._copies.fetch_recorded(name, number)
            self.scan()
        versions = {version.number: version for version in self.versions(name)}
        if number not in versions:
            raise UnknownModel(
                f"The model {name!r} has no such version; its versions are: "
                f"{', '.join(map(str, versions))}. Received: {number}"
            )
        return versions[number]

    def loaded(self, name: str, number: int | None = None) -> ServedVersion | None:
        """Returns a version that is loaded, or None; never waits."""
        known = self._models.get(name, {})
        version = self._latest.get(name) if number is None else known.get(number)
        return version if version is not None and version.is_loaded else None

    def load(self, version: ServedVersion) -> LoadedModel:
        """Returns the model of a version; if it is not loaded, others may make room."""
        is_new = not version.is_loaded
        model = version.load()
        if is_new:
            self._make_room(version)
        return model

    def load_newest(self, name: str) -> None:
        """Scans now, and loads the newest version of a model as `latest`."""
        self._copies.fetch_newest()
        self.scan()
        self._find_made_latest()
        self._load_latest(name)

    def latest(self, name: str) -> ServedVersion | None:
        """Returns the version that predicts by default, or None if none is loaded."""
        return self._latest.get(name)

    def _directories(self) -> list[tuple[str, int, Path]]:
        """Returns name, number and directory of the versions on the disk."""
        try:
            return list(_versions_under(self.root))
        except OSError as error:
            fault = f"The models directory cannot be read: {error.strerror}"
            raise Unavailable(fault) from None

    def _load_labelled_versions(self) -> None:
        """Loads versions with labels; unloads versions without label or `latest`."""
        try:
            labelled = self._ledger.labelled()
        except Unavailable:
            return  # Keeps the loaded versions until the labels are known.
        found = [self._models.get(name, {}).get(number) for name, number in labelled]
        wanted = {version for version in found if version is not None}
        with self._changing:
            needed = wanted.union(self._latest.values())
            before, self._kept = self._kept, needed
        for version in before - needed:
            version.unload()
        for version in wanted:
            if version in before and version.problem is None:
                continue  # If it is not loaded, others were used later.
            with contextlib.suppress(Unavailable):
                self.load(version)  # On failure, its state has the reason.

    def _make_room(self, newest: ServedVersion) -> None:
        """Unloads the versions that were not used for longest, if memory is short."""
        loaded = sorted(
            (x for x in self._loaded_versions() if x is not newest),
            key=lambda version: version.used_at,
        )
        too_many = sum(x.num_bytes for x in loaded) + newest.num_bytes - self._max_bytes
        for version in loaded:
            if too_many <= 0:
                return
            version.unload()
            too_many -= version.num_bytes

    def _unload_idle_versions(self) -> None:
        """Unloads versions that were loaded on demand and are not asked any more."""
        due = time.monotonic() - _IDLE_SECONDS
        # If the directory is gone, they could not be loaded again.
        for version in () if self._is_gone else self._loaded_versions():
            if version.used_at < due and version not in self._kept:
                version.unload()

    def _loaded_versions(self) -> list[ServedVersion]:
        versions = itertools.chain.from_iterable(self.catalog().values())
        return [version for version in versions if version.is_loaded]

    def _warn_of_misplaced_models(self) -> None:
        for path in {*_misplaced_under(self.root)} - self._misplaced:
            logger.warning(
                f"{path} is not served: move the model to {self.root}/NAME/VERSION, "
                "where NAME has at most 128 letters, digits, `_`, `-` and `.`, and "
                "VERSION is a whole number"
            )
            self._misplaced.add(path)

    def _load_latest(self, name: str) -> ServedVersion:
        versions = self.versions(name)
        problems = []
        for version in sorted(versions, key=self._preference, reverse=True):
            if version is self._latest.get(name) and not version.is_broken:
                return version  # It may have been unloaded, to be loaded on demand.
            try:
                self.load(version)
            except Unavailable as error:
                problems.append(version.explanation or error)
                continue
            return self._set_latest(name, version)
        with self._changing:
            self._latest.pop(name, None)
        raise Unavailable(
            f"No version of the model {name!r} can be served; the newest is "
            f"{versions[0].number}: {problems[0]}"
        )

    def _find_made_latest(self) -> None:
        with contextlib.suppress(Unavailable):
            self._made_latest = self._ledger.made_latest()

    def _preference(self, version: ServedVersion) -> tuple[bool, int]:
        """Returns a key that is greater for the version that rather is `latest`."""
        number, made = version.number, self._made_latest.get(version.name)
        return may_be_latest(number, version.becomes_latest, made), number

    def _set_latest(self, name: str, version: ServedVersion) -> ServedVersion:
        with self._changing:
            previous = self._latest.get(name)
            if previous is version:
                return version
            if previous is not None:
                there = self._models.get(name, {}).get(previous.number) is previous
                better = self._preference(previous) > self._preference(version)
                if there and better:
                    return previous  # Another thread has loaded a newer version.
                # A label may need it; the next refresh finds out.
                self._kept.add(previous)
            self._latest[name] = version
            return version


def _identity(directory: Path) -> tuple[int, int] | None:
    """Returns what tells a directory from others at its path; None without one."""
    try:
        stat = directory.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _versions_under(root: Path) -> Iterator[tuple[str, int, Path]]:
    for graph in root.glob("*/*/saved_model.pb"):
        version, model = graph.parent, graph.parent.parent
        number = version_number(version)
        if is_model_name(model.name) and number is not None and number <= MOST_VERSIONS:
            yield model.name, number, version


def _misplaced_under(root: Path) -> Iterator[Path]:
    """Yields SavedModels that are not at NAME/VERSION, or have an invalid name."""
    above = [*root.glob("saved_model.pb"), *root.glob("*/saved_model.pb")]
    models = [graph.parent.parent for graph in root.glob("*/*/saved_model.pb")]
    misnamed = [model for model in models if not is_model_name(model.name)]
    for path in (*(graph.parent for graph in above), *misnamed):
        if not path.name.startswith("."):
            yield path
