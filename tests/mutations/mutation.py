"""The list of mutations: faults of one line each that the tests must notice."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("mutations.toml")


@dataclass(frozen=True)
class Mutation:
    """One fault, put into one file.

    Args:
        name: What goes wrong.
        file: The file, by its path in the repository.
        old: The text that is replaced; it occurs once in the file.
        new: The text that replaces it.
        tests: Test files, or node ids, of which at least one test must fail.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def apply(self, source):
        """Returns the source of the file with the fault."""
        count = source.count(self.old)
        if count != 1:
            raise ValueError(
                f"The text of the mutation '{self.name}' must occur once in "
                f"{self.file}; choose another or a longer one. "
                f"Received: {count} times {self.old!r}"
            )
        return source.replace(self.old, self.new)


def read_mutations(path=LIST):
    """Reads the list, in its order."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]
    return [Mutation(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]
