"""`tfbbb benchmark`: runs the programs of `benchmarks/`, from a clone alone."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from tfbbb.cli.errors import CommandError, errors_in_one_sentence

# Of a clone: a wheel has no benchmarks.
_FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def find_programs() -> dict[str, Path]:
    """Returns the benchmarks by name.

    A benchmark is a program whose function `main` takes arguments; the other files
    beside it are modules, or programs that compare speeds.
    """
    # A folder of this name beside an installed package is not ours.
    found = _FOLDER.glob("*.py") if (_FOLDER / "program.py").is_file() else ()
    return {path.stem: path for path in sorted(found) if _takes_arguments(path)}


def describe_program(path: Path) -> str:
    """Returns the first line of a program's docstring, without importing it."""
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return docstring.partition("\n")[0]


def _takes_arguments(path: Path) -> bool:
    return "\ndef main(arguments" in path.read_text("utf-8")


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Returns the exit code of a program, which Ctrl-C ends after its report."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


class Program(TyperCommand):
    """Runs one benchmark with the options after its name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = args
        return args

    def invoke(self, ctx: Any) -> None:
        with errors_in_one_sentence():
            path = find_programs()[str(self.name)]
            # A process of its own: the program's folder is the first of its `sys.path`.
            process = subprocess.Popen([sys.executable, str(path), *ctx.args])
        raise typer.Exit(_wait(process))


class Programs(TyperGroup):
    """The benchmarks as commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(find_programs())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        path = find_programs().get(cmd_name)
        if path is None:
            return None
        return Program(cmd_name, help=describe_program(path))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        with errors_in_one_sentence():
            names = find_programs()
            if not names:
                raise CommandError(
                    "Benchmarks run from a clone of the repository, which this "
                    f"installation is not. Received: {args[0]!r}"
                )
            if args[0] not in names:
                raise CommandError(
                    f"Name one of the benchmarks {', '.join(names)}. "
                    f"Received: {args[0]!r}"
                )
        return super().resolve_command(ctx, args)


benchmark = typer.Typer(
    name="benchmark",
    cls=Programs,
    no_args_is_help=True,
    help="Measure the defaults and the layers on public data, beside published figures;"
    " in a clone of the repository. `tfbbb benchmark NAME --help` shows the options of"
    " one benchmark.\n\n"
    "Example: tfbbb benchmark uci --data data --splits 3",
)
