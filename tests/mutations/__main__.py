"""Puts each fault of the list into a copy of the tree and runs the tests against it.

`python -m tests.mutations [NAME ...]` from the root of the repository. The libraries
are imported once; each mutation runs in a fork of this process, in a copy of the tree.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.mutations.mutation import ROOT, Mutation, read_mutations

# A fault may make a test wait for ever.
LONGEST_TEST = 120
LONGEST_RUN = 300.0
# What Python raises for a fault that is no valid program.
BROKEN = {"ImportError", "ModuleNotFoundError", "NameError", "SyntaxError"}
LIBRARIES = (
    "keras",
    "tensorflow",
    "tensorflow_probability.python.distributions",
    "scipy.stats",
    "pandas",
    "pyarrow.parquet",
    "sklearn.datasets",
    "hypothesis",
    "pytest",
    "fastapi.testclient",
    "sqlalchemy.orm",
)


@dataclass
class Run:
    """One run of pytest in a process and a copy of the tree of its own."""

    name: str
    tests: list[str]
    mutation: Mutation | None = None
    copy: Path = field(default_factory=Path)
    log: Path = field(default_factory=Path)
    began: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    exit_code: int | None = None
    failures: list[list[str]] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        """`killed`, `SURVIVED`, or why the run says nothing."""
        if self.exit_code is None:
            return f"NO END after {LONGEST_RUN:g} s"
        if self.exit_code == 0:
            return "SURVIVED"
        if self.exit_code != 1 or not self.failures:
            return f"NOT RUN: exit code {self.exit_code}"
        _, error, _ = self.failures[0]
        return f"BROKEN: {error}" if error in BROKEN else "killed"


class Recorder:
    """A plugin of pytest that writes down which tests failed, and by what."""

    def __init__(self, only: set[str] | None = None) -> None:
        self.only = only
        self.failures: list[list[str]] = []

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self.only is not None:
            items[:] = [item for item in items if item.nodeid in self.only]

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = crash.message if crash else str(report.longrepr)
            first = (message.strip() or "?").splitlines()[0]
            error = first.split(":")[0].rpartition(".")[-1]
            self.failures.append([report.nodeid, error, first])


def copy_tree(destination: Path) -> None:
    """Copies the repository without its environment, history and caches.

    Models that tests keep in `build` are copied, those of `saved_models` are not.
    """
    patterns = shutil.ignore_patterns(
        ".git", ".venv", ".*_cache", ".hypothesis", "__pycache__"
    )

    def ignored(directory: str, names: list[str]) -> set[str]:
        own = {"saved_models"} if Path(directory) == ROOT else set()
        return patterns(directory, names) | own

    shutil.copytree(ROOT, destination, ignore=ignored)


def run_tests(run: Run) -> int:
    """Runs pytest in this process, with the packages of the copy."""
    os.chdir(run.copy)
    elsewhere = [path for path in sys.path if Path(path or ".").resolve() != ROOT]
    sys.path[:] = [str(run.copy), *elsewhere]
    os.environ["PYTHONPATH"] = str(run.copy)
    for name in [name for name in sys.modules if name.split(".")[0] == "tests"]:
        del sys.modules[name]
    only = None
    if run.mutation is None:
        only = set(run.tests)
        run.tests = sorted({test.partition("::")[0] for test in run.tests})
    recorder = Recorder(only)
    import pytest

    options = ["--quiet", "--tb=short", "-p", "no:cacheprovider"]
    options += ["-m", "not slow", f"--timeout={LONGEST_TEST}"]
    options += ["--exitfirst"] if run.mutation else []
    code = int(pytest.main([*options, *run.tests], plugins=[recorder]))
    import tfbbb

    if not Path(tfbbb.__file__).is_relative_to(run.copy):
        raise RuntimeError(f"tests of another tree: {tfbbb.__file__}")
    run.log.with_suffix(".json").write_text(json.dumps(recorder.failures))
    return code


def in_fork(run: Run) -> int:
    """Starts a run in a fork; returns the id of the process."""
    run.began = time.monotonic()
    process = os.fork()
    if process:
        return process
    code = 70
    try:
        # A process group of its own, which ends as a whole.
        os.setsid()
        log = os.open(run.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(log, stream)
        code = run_tests(run)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def mutate(run: Run) -> Callable[[], None]:
    """Puts the fault into the copy; returns how to take it out again."""
    if run.mutation is None:
        return lambda: None
    path = run.copy / run.mutation.file
    source = path.read_text(encoding="utf-8")
    path.write_text(run.mutation.apply(source), encoding="utf-8")

    def forget_bytecode() -> None:
        # It is told by size and second, which the fault may leave as they are.
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()

    def restore() -> None:
        path.write_text(source, encoding="utf-8")
        forget_bytecode()

    forget_bytecode()
    return restore


def run_all(
    runs: Iterable[Run], workers: int, directory: Path, done: Callable[[Run], None]
) -> None:
    """Runs several at a time, each in a copy that no other uses meanwhile."""
    copies = [directory / f"tree{number}" for number in range(workers)]
    for copy in copies:
        if not copy.exists():
            copy_tree(copy)
    waiting = list(runs)
    running: dict[int, tuple[Run, Callable[[], None]]] = {}
    try:
        while waiting or running:
            while waiting and copies:
                run = waiting.pop(0)
                run.copy = copies.pop()
                run.log = directory / f"{run.name.replace('/', ' ')}.log"
                restore = mutate(run)
                running[in_fork(run)] = run, restore
            process, status, usage = os.wait4(-1, os.WNOHANG)
            if not process:
                for process, (run, _) in running.items():
                    if time.monotonic() - run.began > LONGEST_RUN:
                        kill(process)
                time.sleep(0.05)
                continue
            run, restore = running.pop(process)
            restore()
            copies.append(run.copy)
            run.seconds = time.monotonic() - run.began
            run.cpu_seconds = usage.ru_utime + usage.ru_stime
            if os.WIFEXITED(status):
                run.exit_code = os.WEXITSTATUS(status)
            failures = run.log.with_suffix(".json")
            if failures.exists():
                run.failures = json.loads(failures.read_text())
            done(run)
    finally:
        for process in running:
            kill(process)


def kill(process: int) -> None:
    """Kills a run with the processes that its tests have started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


def import_libraries() -> None:
    """Imports what most tests need, so that no run imports it again."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ["MPLBACKEND"] = "Agg"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    for library in LIBRARIES:
        __import__(library)


def row(run: Run) -> str:
    """A row of the table of results."""
    assert run.mutation is not None
    test = run.failures[0][0] if run.failures else ""
    return (
        f"| {run.name} | `{run.mutation.file}` | {run.outcome} "
        f"| `{test}` | {run.seconds:.0f} | {run.cpu_seconds:.0f} |"
    )


def report(run: Run) -> None:
    """Prints the row of a mutation, and the end of the log where it is no kill."""
    print(row(run), flush=True)
    if run.outcome != "killed":
        lines = run.log.read_text(errors="replace").splitlines()[-40:]
        print("\n".join(f"    {line}" for line in lines), file=sys.stderr, flush=True)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutations",
        description="Puts faults into a copy of the tree, one at a time, and runs the "
        "tests that must notice each.",
    )
    parser.add_argument(
        "names", nargs="*", help="mutations whose name contains one of these; or all"
    )
    parser.add_argument("--list", action="store_true", help="list the mutations")
    parser.add_argument(
        "--workers", type=int, default=2, help="mutations at a time (default: 2)"
    )
    return parser.parse_args(arguments)


def main() -> int:
    given = parse()
    chosen = [
        mutation
        for mutation in read_mutations()
        if not given.names or any(name in mutation.name for name in given.names)
    ]
    if given.list:
        for mutation in chosen:
            print(f"{mutation.file}: {mutation.name}")
        return 0
    if not chosen:
        sys.exit(
            "No mutation has such a name; see `python -m tests.mutations --list`. "
            f"Received: {given.names}"
        )
    for mutation in chosen:
        mutation.apply((ROOT / mutation.file).read_text(encoding="utf-8"))
    began = time.monotonic()
    import_libraries()
    runs = [Run(each.name, list(each.tests), each) for each in chosen]
    print("| what goes wrong | file | outcome | first test that failed | s | CPU s |")
    print("|---|---|---|---|--:|--:|")
    with tempfile.TemporaryDirectory(prefix="mutations-") as name:
        directory = Path(name).resolve()
        run_all(runs, given.workers, directory, report)
        killed = [run for run in runs if run.outcome == "killed"]
        wrong = len(runs) - len(killed)
        print(f"\n{len(killed)} of {len(runs)} mutations are killed.")
        # The same tests must pass where there is no fault.
        killers = {run.failures[0][0] for run in killed}
        files = sorted({test.partition("::")[0] for test in killers})
        parts = [set(files[number :: given.workers]) for number in range(given.workers)]
        baselines = [
            Run(f"no fault {number}", sorted(tests))
            for number, part in enumerate(parts)
            if (tests := {t for t in killers if t.partition("::")[0] in part})
        ]
        run_all(baselines, given.workers, directory, lambda run: None)
        for run in baselines:
            if run.exit_code != 0:
                wrong += 1
                print(f"Without a fault too, {run.outcome}: {run.failures}")
                print(run.log.read_text(errors="replace"), file=sys.stderr)
        if killers and not any(run.exit_code for run in baselines):
            print(f"Without a fault, the {len(killers)} tests that killed them pass.")
    print(f"{time.monotonic() - began:.0f} s with {given.workers} at a time.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
