"""One version of a model, on disk and in memory."""

import logging
import math
import threading
import time
from enum import StrEnum
from pathlib import Path

from service.predicting.adoption import Ledger
from service.predicting.loaded_model import LoadedModel
from service.predicting.pace import Pace
from service.shared.errors import Unavailable
from tfbbb.base.types import JsonObject
from tfbbb.export.manifest import Manifest
from tfbbb.judging.verdict import verdict

logger = logging.getLogger(__name__)

# One load at a time: loads share the cores.
_loading = threading.Lock()

# The pause after a fault that may pass; each further one doubles it.
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0

Fingerprint = tuple[tuple[str, int, int, int], ...]


class VersionState(StrEnum):
    """The states of TensorFlow Serving: `START` is loaded by need, `END` is broken."""

    START = "START"
    LOADING = "LOADING"
    AVAILABLE = "AVAILABLE"
    END = "END"


class ServedVersion:
    """One version of a model: a SavedModel on disk, and in memory once loaded.

    A version whose files are not those that were exported is broken until they change.
    After a fault that may pass, such as too few descriptors, it is tried again.
    """

    def __init__(
        self,
        name: str,
        number: int,
        path: Path,
        fingerprint: Fingerprint,
        ledger: Ledger,
    ) -> None:
        self.name, self.number, self.path = name, number, path
        self.fingerprint = fingerprint
        self.state = VersionState.START
        self.problem: Exception | None = None
        self.manifest: Manifest | None = None
        self.used_at = 0.0
        self._model: LoadedModel | None = None
        self._paces: dict[tuple[str, ...], Pace] = {}
        self._ledger = ledger
        self._in_ledger = False
        self._pause, self._retry_at = _FIRST_PAUSE, 0.0
        try:
            self.manifest = Manifest.read(path)
        except Exception as error:
            self._note(error)

    @property
    def is_loaded(self) -> bool:
        """Whether `load` returns at once."""
        return self._model is not None

    @property
    def is_broken(self) -> bool:
        """Whether the version cannot be served until its files change."""
        return self.state is VersionState.END

    @property
    def explanation(self) -> str:
        """Why it cannot be served, and when it is tried again; empty if it can."""
        problem = self.problem
        if problem is None:
            return ""
        reason = str(problem) or type(problem).__name__
        if self.is_broken:
            return reason
        seconds = math.ceil(max(0.0, self._retry_at - time.monotonic()))
        return f"{reason}; it is tried again in {seconds} s"

    @property
    def verdict(self) -> str | None:
        """The judgement in a few words, if the version was judged bad."""
        lineage = (self.manifest and self.manifest.lineage) or {}
        return verdict(lineage.get("judgement"))

    @property
    def becomes_latest(self) -> bool:
        """Whether the version may be `latest` beside others."""
        return self.manifest is None or self.manifest.becomes_latest

    @property
    def num_bytes(self) -> int:
        """The bytes of the files, about those of the memory that a loaded one takes."""
        return sum(size for _, _, size, _ in self.fingerprint)

    def pace(self, kind: tuple[str, ...]) -> Pace:
        """Returns how long predictions of a kind take, by what they are asked."""
        if (pace := self._paces.get(kind)) is None:
            measured = self._paces.get((), Pace())
            pace = Pace(len(kind) * measured.fixed, measured.per_work)
            self._paces[kind] = pace
        return pace

    def load(self) -> LoadedModel:
        """Returns the model; the first call loads and checks it."""
        self.used_at = time.monotonic()
        if (model := self._model) is not None:
            return model
        with _loading:
            if self._model is None and self._may_try:
                self._load()
            if self._model is None:
                raise Unavailable(
                    f"Version {self.number} of the model {self.name!r} cannot be "
                    f"served: {self.explanation}"
                )
            return self._model

    def unload(self) -> None:
        """Frees the memory; running requests keep their model."""
        with _loading:
            if self._model is not None:
                self._model.unload()
                self._model = None
                self.state = VersionState.START

    def adopt(self) -> None:
        """Records the version in the ledger, if its files are complete."""
        if self._in_ledger or not self._may_try:
            return
        problem: Exception | None = None
        try:
            self.manifest = self.manifest or Manifest.read(self.path)
            self.manifest.verify(self.path)
            self._record()
        except Unavailable:
            raise
        except Exception as error:
            problem = error
        with _loading:
            # Another thread may have loaded the version meanwhile.
            if self._model is None:
                self._note(problem)

    def signatures(self) -> JsonObject:
        """Returns the `SignatureDef` of each signature."""
        self.load()
        from tfbbb.export.reader import read_signatures

        return read_signatures(self.path)

    def _load(self) -> None:
        self.state = VersionState.LOADING
        try:
            model = LoadedModel(self.path)
            self._record()
            self._paces = {(): model.run(Pace.measure)}
        except Unavailable as error:
            # The next refresh tries again; until then the status has the reason.
            self.problem, self.state = error, VersionState.START
            raise
        except Exception as error:
            self._note(error)
        else:
            self._note(None)
            self.manifest = model.manifest
            self._model = model
            self.state = VersionState.AVAILABLE
            what = f"version {self.number} of the model {self.name!r}"
            engine = model.manifest.engine
            logger.info("loaded %s, which is computed by %s", what, engine)

    def _record(self) -> None:
        if not self._in_ledger:
            self._ledger.record(self.name, self.number, self.path)
            self._in_ledger = True

    @property
    def _may_try(self) -> bool:
        """Whether the version is not broken, and no pause after a fault is left."""
        return not self.is_broken and time.monotonic() >= self._retry_at

    def _note(self, problem: Exception | None) -> None:
        """Notes the outcome of a try: a fault, or None if there was none."""
        self.problem = problem
        if problem is None:
            self._pause, self._retry_at = _FIRST_PAUSE, 0.0
            return
        if _is_passing(problem):
            self.state = VersionState.START
            self._retry_at = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        else:
            self.state = VersionState.END
        what = f"version {self.number} of the model {self.name!r}"
        logger.warning("%s cannot be served: %s", what, self.explanation)


def fingerprint(directory: Path) -> Fingerprint:
    """Returns a fingerprint that changes when a file under the directory does."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    stats = ((str(path), path.stat()) for path in files)
    return tuple((path, x.st_ino, x.st_size, x.st_mtime_ns) for path, x in stats)


def _is_passing(error: BaseException) -> bool:
    """Whether a later try may succeed with the same files, which could not be read."""
    cause: BaseException | None = error
    while cause is not None:
        is_of_tensorflow = type(cause).__module__.startswith("tensorflow")
        if is_of_tensorflow or isinstance(cause, OSError | MemoryError):
            return True
        if isinstance(cause, RuntimeError) and "can't start new thread" in str(cause):
            return True
        cause = cause.__cause__
    return False
