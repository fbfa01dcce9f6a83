"""Runs the tests nearest to a change, within a time: `python -m tests.touched`."""

import argparse
import ast
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# Any change may break these, and they take a second.
RULES = (
    "tests/test_imports.py",
    "tests/mutations/test_list.py",
)
# Collecting a file costs a tenth of a second and more.
MOST_FILES = 40
SECONDS = 60.0
_WORD = re.compile(r"\w+")
_FROM = re.compile(r"^ *from ([\w.]+) import (\([^)]*\)|.*)", re.MULTILINE)
_IMPORT = re.compile(r"^ *import (.*)", re.MULTILINE)
_PAGE_RULES = ("tests/test_document_links.py", "tests/test_documents.py")


class Tree:
    """The files of the repository, and what they import and name.

    Args:
        root: The root of the repository.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = [
            path.relative_to(root).as_posix()
            for folder in ("service", "tests", "tfbbb")
            for path in sorted((root / folder).rglob("*.py"))
        ]
        self.tests = [file for file in self.files if _is_test(file)]

    def text(self, file: str) -> str:
        path = self.root / file
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @cached_property
    def words(self) -> dict[str, set[str]]:
        """Every word of each test file."""
        return {file: set(_WORD.findall(self.text(file))) for file in self.tests}

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """The modules that each file imports anywhere, and the names of modules."""
        return {file: set(_imported(self.text(file))) for file in self.files}

    def names(self, file: str) -> set[str]:
        """What a module of the packages defines, as its tests name it."""
        is_module = file.endswith(".py") and not file.startswith("tests/")
        return _public_names(self.text(file)) if is_module else set()

    def importers(self, file: str) -> list[str]:
        """The files that import a file."""
        module = _module(file)
        return [other for other in self.files if module in self.imports[other]]

    def mirrors(self, file: str) -> list[str]:
        """The tests of a module by the layout of folders, and its own examples."""
        path = Path(file)
        found = (
            [file] if file.startswith("tfbbb/") and ">>> " in self.text(file) else []
        )
        folder = Path("tests", *path.parts[path.parts[0] == "tfbbb" : -1])
        mirror = (folder / f"test_{path.name}").as_posix()
        return [*found, mirror] if mirror in self.tests else found

    def naming(self, file: str) -> list[str]:
        """The tests that import a module, or name a class or function of it.

        Those with the most of its names come first.
        """
        names = self.names(file)
        importers = set(self.importers(file))
        counts = {
            test: len(names & self.words[test]) + (test in importers)
            for test in self.tests
        }
        found = [test for test in self.tests if counts[test]]
        return sorted(found, key=lambda test: -counts[test])


def touched_tests(tree: Tree, changed: Iterable[str]) -> list[str]:
    """Returns the test files that a change touches, the nearest first.

    1. Changed tests; `tests/a/test_b.py` and the examples of a changed `tfbbb/a/b.py`;
       the programs and links of a changed page.
    2. Tests of that folder that import the module or name what it defines; the users
       of a changed helper of tests.
    3. The same of other folders.
    4. The tests, by layout, of the modules that import the changed one.
    """
    rings: list[list[str]] = [[], [], [], []]
    for file in changed:
        if file.endswith(".md"):
            rings[0] += [test for test in _PAGE_RULES if test in tree.tests]
        elif _is_test(file):
            rings[0] += [file] if (tree.root / file).exists() else []
        elif Path(file).name == "conftest.py":
            folder = f"{Path(file).parent.as_posix()}/"
            rings[1] += [test for test in tree.tests if test.startswith(folder)]
        elif file.startswith("tests/"):
            rings[1] += [test for test in tree.importers(file) if _is_test(test)]
        elif file.endswith(".py"):
            rings[0] += tree.mirrors(file)
            folder = Path("tests", *Path(file).parts[file.startswith("tfbbb/") : -1])
            for test in tree.naming(file):
                rings[1 if Path(test).parent == folder else 2].append(test)
            for importer in tree.importers(file):
                if not importer.startswith("tests/"):
                    rings[3] += tree.mirrors(importer)
    # Each file once, where it is nearest.
    return list(dict.fromkeys(test for ring in rings for test in ring))


def changed_files(base: str) -> list[str]:
    """Returns the files that differ from a commit, new ones included."""

    def git(*arguments: str) -> list[str]:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"{done.stderr.strip()}\nReceived: BASE={base}")
        return done.stdout.splitlines()

    new = git("ls-files", "--others", "--exclude-standard")
    return sorted({*git("diff", "--name-only", base, "--"), *new})


class Budget:
    """A plugin of pytest: starts no test after a time, and says which it left out.

    The rules always run; then come the first cases of all other tests, then the rest.

    Args:
        ends_at: The time, by `time.monotonic`.
        pages: The changed pages; tests of one page run for these only.
    """

    def __init__(self, ends_at: float, pages: Iterable[str] = ()) -> None:
        self.ends_at = ends_at
        self.pages = set(pages)
        self.left_out: list[str] = []

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        seen: set[str] = set()
        order: list[list[Any]] = [[], [], []]
        for item in items:
            name, _, case = item.nodeid.partition("[")
            page = case.removesuffix("]")
            if page.endswith(".md") and page not in self.pages:
                continue
            is_rule = item.nodeid.startswith(RULES)
            order[0 if is_rule else 2 if name in seen else 1].append(item)
            seen.add(name)
        items[:] = [item for items in order for item in items]

    def pytest_runtest_protocol(self, item: Any) -> bool | None:
        if time.monotonic() < self.ends_at or item.nodeid.startswith(RULES):
            return None
        self.left_out.append(item.nodeid)
        return True


def main(arguments: list[str] | None = None) -> int:
    began = time.monotonic()
    parser = argparse.ArgumentParser(
        prog="python -m tests.touched",
        description="Runs the tests nearest to what differs from a commit.",
    )
    parser.add_argument(
        "base", nargs="?", default="HEAD", help="commit (default: HEAD)"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        help=f"no test starts after these (default: {SECONDS:g})",
    )
    parser.add_argument("--list", action="store_true", help="only list the files")
    given = parser.parse_args(arguments)
    changed = changed_files(given.base)
    if not changed:
        print(
            f"Nothing differs from {given.base}; name a commit: `make check BASE=main`."
        )
    tree = Tree(ROOT)
    found = [test for test in touched_tests(tree, changed) if test not in RULES]
    chosen, far = found[:MOST_FILES], found[MOST_FILES:]
    print(f"{len(changed)} changed files touch {len(found)} files with tests.")
    if given.list:
        print("\n".join(found))
        return 0
    import pytest

    budget = Budget(began + given.seconds, changed)
    options = ["--quiet", "-m", "not slow"]
    code = int(pytest.main([*options, *RULES, *chosen], plugins=[budget]))
    left_out = dict.fromkeys(test.partition("::")[0] for test in budget.left_out)
    if left_out or far:
        print(
            f"Not run, for lack of time: {len(budget.left_out)} tests of "
            f"{len(left_out)} files, and {len(far)} files whole. To run these files:\n"
            f'.venv/bin/pytest -m "not slow" {" ".join([*left_out, *far])}'
        )
    return code


def _is_test(file: str) -> bool:
    return file.startswith("tests/") and Path(file).name.startswith("test_")


def _module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imported(source: str) -> Iterable[str]:
    """Returns the imported modules, and names of which each may be a module.

    By a pattern, which takes a tenth of the time of a syntax tree.
    """
    for module, names in _FROM.findall(source):
        yield module
        yield from (f"{module}.{name}" for name in _WORD.findall(names))
    for modules in _IMPORT.findall(source):
        yield from (part.split()[0] for part in modules.split(",") if part.strip())


def _public_names(source: str) -> set[str]:
    """Returns the classes and functions of a module, and the names of its families.

    Without plain words, which tests use for other things.
    """
    names = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names |= {
                node.name,
                re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", node.name).lower(),
            }
    return {
        name
        for name in names
        if not name.startswith("_") and ("_" in name or name != name.lower())
    }


if __name__ == "__main__":
    sys.exit(main())
