"""Records of measurements in a JSON file that grows while a benchmark runs."""

import fcntl
import hashlib
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import joblib
from device import describe_device
from parallel import call_each
from timing import cores_and_versions, rounded

import tfbbb
from tfbbb.base.tensorflow_startup import import_tensorflow

_LIBRARIES = ("tfbbb", "tensorflow", "keras", "tensorflow-probability", "numpy")
_DIGITS = 6


# Figures, and the device that they were measured on.
_Measured = tuple[dict[str, Any], dict[str, Any]]


class SkippedError(Exception):
    """Something cannot be measured on this machine; the message says why."""


@dataclass(frozen=True)
class Measurement:
    """One measurement, which makes one record.

    Attributes:
        key: Names and values that no two records share.
        function: Measures; returns figures by name, as plain JSON values. If they have
            no `seconds`, the time of the call is recorded. It may raise `SkippedError`.
        settings: What else the figures depend on, as plain JSON values.
        seed: The seed of the measurement.
    """

    key: Mapping[str, Any]
    function: Callable[[], Mapping[str, Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = 0


class RecordFile:
    """The records of one benchmark, each written as soon as it is measured.

    A record is a mapping: its key (such as set, method and split), `settings`, `seed`,
    the figures, `seconds`, and `run_index`, the place in `runs` of the time, the
    machine, the device that measured, and the versions. The file holds one record per
    key. A record of the same key with other settings is measured anew and replaced.
    Several processes may write to one file.

    Args:
        path: The JSON file; created with the first record.
        smoke: Whether this is a short run, whose records count for no other.
        again: Whether to measure again what the file has.
    """

    def __init__(self, path: Path, *, smoke: bool = False, again: bool = False) -> None:
        self.path = path
        self._smoke = smoke
        self._again = again
        self._found: tuple[Any, dict[str, Any]] | None = None
        self._run: dict[str, Any] | None = None
        self._places = 1

    @property
    def records(self) -> list[dict[str, Any]]:
        """All records, in the order of their measurement."""
        return self._content()["records"]

    @property
    def skipped(self) -> list[dict[str, Any]]:
        """Keys, or parts of keys, each with the `reason` why it was not measured."""
        return self._content()["skipped"]

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The machine and the versions of each run."""
        return self._content()["runs"]

    def select(self, **fields: Any) -> list[dict[str, Any]]:
        """Returns the records with these values."""
        return [record for record in self.records if _has(record, fields)]

    def measure(
        self,
        key: Mapping[str, Any],
        function: Callable[[], Mapping[str, Any]],
        *,
        settings: Mapping[str, Any] | None = None,
        seed: int | None = 0,
    ) -> dict[str, Any] | None:
        """Returns the record of a key; measures and writes it if the file lacks it."""
        wanted = Measurement(key, function, settings or {}, seed)
        (found,) = self.measure_all([wanted])
        return found

    def measure_all(
        self, measurements: Sequence[Measurement]
    ) -> list[dict[str, Any] | None]:
        """Measures what the file lacks, by `call_each`; writes each record at once."""
        wanted = {_named(each.key): each for each in measurements}
        missing = {
            name: each for name, each in wanted.items() if self._misses(self._key(each))
        }
        self._places = joblib.effective_n_jobs(None)
        # Before the clock starts: the import takes seconds.
        if missing and self._places == 1:
            import_tensorflow()
        names = list(missing)
        arguments = [{"function": each.function} for each in missing.values()]
        for place, result in call_each(_measured, arguments):
            each = missing[names[place]]
            if isinstance(result, SkippedError):
                self.skip(each.key, str(result))
                continue
            figures, device = result
            record = {**self._key(each), "seed": each.seed, **figures}
            self._add(each.key, record, device)
            print(f"{names[place]}: {figures['seconds']:.1f} s", flush=True)
        return [
            next(iter(self.select(**self._key(each))), None) for each in measurements
        ]

    def without_failing(
        self, by_set: Sequence[Sequence[Measurement]]
    ) -> list[Sequence[Measurement]]:
        """Measures the first split of each set; returns the sets that did not fail.

        The other splits of a set would fail alike, after hours.
        """
        firsts = [of_set[0] for of_set in by_set]
        found = self.measure_all(firsts)
        return [of_set for of_set, record in zip(by_set, found, strict=True) if record]

    def _key(self, measurement: Measurement) -> dict[str, Any]:
        """Returns what the record of a measurement must have to count as it."""
        settings = dict(measurement.settings) | ({"smoke": True} if self._smoke else {})
        return {**measurement.key, "settings": rounded(settings, _DIGITS)}

    def _misses(self, wanted: Mapping[str, Any]) -> bool:
        found = self.select(**wanted)
        return not found or self._measures_again(found[0])

    def skip(self, key: Mapping[str, Any], reason: str) -> None:
        """Writes why something is not measured; the next run tries it again."""
        print(f"{_named(key)}: skipped, {reason}", flush=True)
        with self._changing() as content:
            self._forget_skipped(content, key)
            content["skipped"].append({**key, "reason": reason})

    def _measures_again(self, record: Mapping[str, Any]) -> bool:
        run = self.runs[record["run_index"]]
        device = {"device": run.get("device")}
        return self._again and (self._run is None or run != self._run | device)

    def _add(
        self,
        key: Mapping[str, Any],
        record: Mapping[str, Any],
        device: Mapping[str, Any],
    ) -> None:
        with self._changing() as content:
            if self._run is None:
                self._run = describe_run()
                if self._places > 1:
                    self._run["places"] = self._places
            # Each place may be a machine with a device of its own.
            described = {**self._run, "device": device}
            if described not in content["runs"]:
                content["runs"].append(described)
                print(f"device: {device['kind']}, {device['name']}", flush=True)
            run = content["runs"].index(described)
            records = content["records"]
            new = rounded({**record, "run_index": run}, _DIGITS)
            content["records"] = [r for r in records if not _has(r, key)] + [new]
            self._forget_skipped(content, key)

    def _forget_skipped(self, content: dict[str, Any], key: Mapping[str, Any]) -> None:
        """Drops entries that the key makes untrue."""
        content["skipped"] = [
            entry
            for entry in content["skipped"]
            if not all(key.get(k) == v for k, v in entry.items() if k != "reason")
        ]

    def _content(self) -> dict[str, Any]:
        """Returns what the file has, not to be changed; reads it if it is another."""
        if not self.path.exists():
            return self._read()
        state = self.path.stat()
        stamp = (state.st_ino, state.st_mtime_ns, state.st_size)
        if self._found is None or self._found[0] != stamp:
            self._found = (stamp, self._read())
        return self._found[1]

    def _read(self) -> dict[str, Any]:
        if not self.path.exists():
            return {"runs": [], "skipped": [], "records": []}
        return json.loads(self.path.read_text("utf-8"))

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """Reads the file, lets the caller change it, and replaces it as a whole."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # A lock on the directory leaves no file behind.
        directory = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            content = self._read()
            yield content
            with tempfile.NamedTemporaryFile(
                "w", dir=self.path.parent, suffix=".json", delete=False
            ) as file:
                file.write(_format(content))
            Path(file.name).chmod(0o644)
            Path(file.name).replace(self.path)
        finally:
            os.close(directory)


def _measured(function: Callable[[], Mapping[str, Any]]) -> _Measured | SkippedError:
    """Returns the figures of a function, with its `seconds`, and the device.

    Returns the reason if the function skipped the measurement.
    """
    import_tensorflow()
    start = time.perf_counter()
    try:
        figures = dict(function())
    except SkippedError as reason:
        return reason
    figures.setdefault("seconds", time.perf_counter() - start)
    return figures, describe_device()


def _named(key: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in key.items())


def describe_run() -> dict[str, Any]:
    """Returns time, machine and versions, and a digest of the code of `tfbbb`."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        **cores_and_versions(_LIBRARIES),
        "source": _digest_of_source(),
    }


def _digest_of_source() -> str:
    """Identifies the code of `tfbbb`, which changes more often than its version."""
    folder = Path(tfbbb.__file__).parent
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(path.relative_to(folder).as_posix().encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def _has(record: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    return all(record.get(name) == value for name, value in fields.items())


def _format(content: Mapping[str, Any]) -> str:
    """Returns JSON with one entry per line."""
    lists = []
    for name, entries in content.items():
        lines = ",\n".join(f"    {_format_entry(entry)}" for entry in entries)
        lists.append(f'  "{name}": [\n{lines}\n  ]' if lines else f'  "{name}": []')
    return "{\n" + ",\n".join(lists) + "\n}\n"


def _format_entry(entry: Mapping[str, Any]) -> str:
    # NumPy's numbers and arrays have `tolist`.
    return json.dumps(
        _finite(entry), allow_nan=False, default=lambda value: value.tolist()
    )


def _finite(value: Any) -> Any:
    """Replaces NaN and infinities, which JSON lacks, by None."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
