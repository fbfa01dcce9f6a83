"""Puts each fault of the list into a copy of the tree and runs the tests against it.

`python -m tests.mutations [NAME ...]` from the root of the repository.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutations.mutation import ROOT, read_mutations

# A fault may make a test wait for ever.
LONGEST_TEST = 120
LONGEST_RUN = 300
PYTEST = (
    *(sys.executable, "-m", "pytest", "--quiet", "--tb=line", "--exitfirst"),
    *("-p", "no:cacheprovider", "-m", "not slow", f"--timeout={LONGEST_TEST}"),
)
# What Python raises for a fault that is no valid program.
BROKEN = re.compile(r"\b(ImportError|ModuleNotFoundError|NameError|SyntaxError)\b")
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - (.*))?$", re.MULTILINE)


def copy_tree(destination):
    """Copies the repository, and the models that tests keep in its `build`."""
    patterns = shutil.ignore_patterns(
        ".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "saved_models"
    )
    return shutil.copytree(ROOT, destination, ignore=patterns)


def run_tests(copy, tests):
    """Returns the exit code of pytest in a copy, None without an end, and its output.

    Python writes no bytecode: a fault may leave size and second of a file as they are.
    """
    environment = {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        [*PYTEST, *tests],
        cwd=copy,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=LONGEST_RUN)
    except subprocess.TimeoutExpired:
        # With the processes that its tests have started.
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]
    return process.returncode, output


def outcome(code, output):
    """Returns `killed`, or what else happened, and the test that failed."""
    if code is None:
        return f"NO END after {LONGEST_RUN} s", ""
    if code == 0:
        return "SURVIVED", ""
    found = FAILED.search(output)
    if code != 1 or found is None:
        return f"NOT RUN: exit code {code}", ""
    broken = BROKEN.search(found[2] or "")
    return f"BROKEN: {broken[1]}" if broken else "killed", found[1]


def report(mutation, copies):
    """Prints the row of one mutation; returns whether a test killed it."""
    copy, began = copies.get(), time.monotonic()
    path = copy / mutation.file
    source = path.read_text(encoding="utf-8")
    try:
        path.write_text(mutation.apply(source), encoding="utf-8")
        code, output = run_tests(copy, mutation.tests)
    finally:
        path.write_text(source, encoding="utf-8")
        copies.put(copy)
    found, test = outcome(code, output)
    seconds = time.monotonic() - began
    print(
        f"| {mutation.name} | `{mutation.file}` | {found} | `{test}` | {seconds:.0f} |",
        flush=True,
    )
    if found != "killed":
        print(*output.splitlines()[-40:], sep="\n", file=sys.stderr, flush=True)
    return found == "killed"


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutations",
        description="Puts faults into copies of the tree, and runs the tests that must "
        "notice each. The same tests pass without a fault: `make test` runs them.",
    )
    parser.add_argument(
        "names", nargs="*", help="mutations whose name contains one of these; or all"
    )
    parser.add_argument("--list", action="store_true", help="list the mutations")
    parser.add_argument(
        "--workers", type=int, default=2, help="mutations at a time (default: 2)"
    )
    given = parser.parse_args()
    chosen = [
        mutation
        for mutation in read_mutations()
        if not given.names or any(name in mutation.name for name in given.names)
    ]
    if not chosen:
        parser.error(f"no mutation has such a name. Received: {given.names}")
    if given.list:
        print(*(f"{each.file}: {each.name}" for each in chosen), sep="\n")
        return 0
    began = time.monotonic()
    print("| what goes wrong | file | outcome | first test that failed | s |")
    print("|---|---|---|---|--:|")
    with (
        tempfile.TemporaryDirectory(prefix="mutations-") as name,
        ThreadPoolExecutor(given.workers) as pool,
    ):
        copies = SimpleQueue()
        for number in range(given.workers):
            copies.put(copy_tree(Path(name).resolve() / f"tree{number}"))
        killed = sum(pool.map(lambda mutation: report(mutation, copies), chosen))
    seconds = time.monotonic() - began
    print(f"\n{killed} of {len(chosen)} mutations are killed, in {seconds:.0f} s.")
    return 0 if killed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
