import re
import shlex
import subprocess
import sys

import pytest
import typer

from tests.cli.commands import run_commands
from tfbbb.cli import app
from tfbbb.version import __version__, commit

HEAVY = ["tensorflow", "keras", "pyarrow", "pandas", "matplotlib", "sklearn", "fastapi"]
HELPED = (
    *(["train"], ["tune"], ["predict"], ["serve"], ["demo"]),
    *(["remote"], ["remote", "train"]),
)


def commands(command, path=()):
    """Every command and group by its path."""
    yield path, command
    for name, part in getattr(command, "commands", {}).items():
        yield from commands(part, (*path, name))


TREE = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("path", TREE, ids=" ".join)
def test_the_help_has_an_example_that_parses(path):
    (example,) = re.findall(r"^Example: tfbbb (.*)$", TREE[path].help, re.M)
    words = shlex.split(example)
    # The options of a group may stand before its command.
    assert set(path) <= set(words)
    context = None
    command = TREE[()]
    while command is not None:
        context = command.make_context(command.name, words, parent=context)
        words, command = context._protected_args + context.args, None
        if words and hasattr(context.command, "resolve_command"):
            _, command, words = context.command.resolve_command(context, words)


def test_every_list_has_json():
    lists = {
        " ".join(path)
        for path, command in TREE.items()
        if (command.help or "").startswith("List ")
    }
    assert lists >= {"keys list", "remote datasets", "remote jobs", "remote models"}
    for path in lists:
        names = [name for p in TREE[tuple(path.split())].params for name in p.opts]
        assert "--json" in names, path


def test_the_shell_completes_commands(monkeypatch):
    monkeypatch.setenv("_TFBBB_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "tfbbb remote da")
    monkeypatch.setenv("COMP_CWORD", "2")
    program = (
        "import sys; from tfbbb.__main__ import main; sys.argv = ['tfbbb']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert done.stdout.split() == ["datasets"]


def test_help_imports_no_slow_module():
    helped = [["--help"], *([*path, "--help"] for path in HELPED)]
    then = f"print('imported:', [name for name in {HEAVY!r} if name in sys.modules])"
    done = run_commands(*helped, then=then)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: tfbbb") == len(helped)
    assert "…" not in done.stdout, "an option is cut off"
    assert done.stdout.endswith("imported: []\n")


def test_version_prints_version_and_commit_of_the_package(tfbbb):
    expected = f"tfbbb {__version__} (commit {commit()})\n"
    assert tfbbb("--version").stdout == expected


@pytest.mark.parametrize(
    "words",
    [
        "train rows.csv --target a --output model --output other",
        "tune rows.csv --target=a --trials 2 --trials 3",
        "predict model rows.csv --seed 1 --level .5 --seed 1",
        "keys list --data-dir a --data-dir b",
        "remote jobs --url a --url b",
        "remote delete job 7 --key a --key b",
    ],
)
def test_an_option_of_one_value_is_given_once(tfbbb, words):
    result = tfbbb(*words.split())
    assert result.exit_code == 2
    said = " ".join(result.stderr.replace("│", " ").split())
    assert "takes one value: give it once" in said
    assert re.search(r"Received: --[a-z-]+ 2 times", said)


def test_an_option_of_several_values_may_be_repeated(tfbbb):
    words = "train rows.csv --target t --ignore a --ignore b --output model"
    assert "rows.csv does not exist" in tfbbb(*words.split()).stderr
