"""Programs in the README and in the pages under docs/ run as they are written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.documents import (
    CLIENT_PAGE,
    COURSE,
    GALLERY,
    PAGES,
    PICTURED_PAGES,
    blocks,
    pictures,
    prose,
    run_programs,
    write_houses,
)
from tfbbb.cli import app
from tfbbb.cli.running_service import running_service
from tfbbb.tables import read_table

NUM_PROGRAMS = {
    "README.md": 2,
    "docs/coming_from.md": 6,
    "docs/distributed.md": 3,
    "docs/evidence.md": 7,
    "docs/inference.md": 12,
    "docs/keras.md": 16,
    "docs/saved_models.md": 5,
    "docs/service.md": 1,
    "docs/sklearn.md": 2,
    "docs/tables.md": 2,
    "docs/tfp_layers.md": 1,
    "docs/uncertainty.md": 3,
    "docs/which.md": 6,
}
# Pages whose programs have a short form.
SIZED_PAGES = {
    *("README.md", "docs/keras.md", "docs/tables.md", "docs/uncertainty.md"),
    *("docs/which.md", *GALLERY, *COURSE),
}
# Pages that take half a minute and more: `make docs` and `make test-slow` run them.
LONG_PAGES = {
    *("docs/coming_from.md", "docs/distributed.md", "docs/evidence.md"),
    *("docs/inference.md", "docs/saved_models.md", "docs/sklearn.md"),
}


def test_every_page_has_the_programs_that_are_run():
    pages = PAGES.keys() - {*GALLERY, *COURSE}
    found = {page: len(blocks(page, "python")) for page in pages}
    assert {page: number for page, number in found.items() if number} == NUM_PROGRAMS


@pytest.mark.parametrize("page", [*GALLERY, *COURSE])
def test_pages_of_gallery_and_course_end_in_their_picture(page):
    assert len(blocks(page, "python")) > 1
    *_, last = prose(page).split("![")
    assert last.count("\n\n") <= 1, "a picture, and at most one remark"
    assert pictures(page)[-1] == f"{page.split('/')[-1].removesuffix('.md')}.png"


def picture_names(directory):
    return {path.name for path in directory.glob("*.png")}


@pytest.mark.parametrize("page", sorted(SIZED_PAGES))
def test_pages_run_in_their_short_form(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_programs(page, short=True)
    if page in PICTURED_PAGES:
        assert picture_names(tmp_path) == set(pictures(page))
    if page == "README.md":
        assert (tmp_path / "saved_models" / "mine" / "1" / "saved_model.pb").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(SIZED_PAGES))
def test_claims_of_a_page_hold(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = run_programs(page)
    if page in PICTURED_PAGES:
        assert picture_names(tmp_path) == set(pictures(page))
    if page == "README.md":
        # The model has learned something: a constant would have an error of 1.
        y, mean = namespace["y"][350:, None], namespace["prediction"].mean
        assert np.std(y - mean) < 0.8 * np.std(y)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page in LONG_PAGES else [])
        for page in sorted(NUM_PROGRAMS.keys() - SIZED_PAGES - {CLIENT_PAGE})
    ],
)
def test_programs_of_a_page_run_as_written(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_programs(page)
    if page in PICTURED_PAGES:
        assert picture_names(tmp_path) == set(pictures(page))


@pytest.fixture
def in_directory_of_houses(tmp_path, monkeypatch):
    """Changes to a directory with the files that the pages name."""
    monkeypatch.chdir(tmp_path)
    write_houses(tmp_path)
    (tmp_path / "saved_models").mkdir()
    return tmp_path


def run_in_shell(script):
    """Runs a script with the commands of this environment; returns its output."""
    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PATH": commands},
    )
    return done.stdout.strip().splitlines()


def mean_of(answer):
    """Returns the mean of the first row of an answer to `:predict`."""
    return json.loads(answer)["predictions"][0]["mean"]


@pytest.mark.slow
def test_tables_train_and_predict_as_the_readme_says(in_directory_of_houses):
    (script,) = blocks("README.md", "sh", "## A table")
    assert blocks("docs/tables.md", "sh", "## Train and predict")[0].startswith(script)
    run_in_shell(script)
    assert read_table("predictions.csv").num_rows == 9


@pytest.mark.slow
def test_the_service_is_used_as_the_pages_say(in_directory_of_houses, monkeypatch):
    with running_service(in_directory_of_houses / "saved_models") as service:
        monkeypatch.setenv("TFBBB_URL", service.url)
        monkeypatch.setenv("TFBBB_KEY", service.key)
        # The service of the test has another address and key.
        (script,) = blocks("README.md", "sh", "## HTTP")
        lines = [line for line in script.splitlines() if not line.startswith("export")]
        assert mean_of(run_in_shell("\n".join(lines))[-1]) == pytest.approx(
            [120_000], rel=0.1
        )

        namespace = run_programs(CLIENT_PAGE)
        assert namespace["prediction"].mean[0, 0] == pytest.approx(120_000, rel=0.1)

        (script,) = blocks(CLIENT_PAGE, "bash", "## Over HTTP")
        *events, answer = run_in_shell(script)
        assert "event: epoch" in events
        assert mean_of(answer) == pytest.approx([120_000], rel=0.1)

        (script,) = blocks(CLIENT_PAGE, "sh", "## From the command line")
        for command in script.splitlines():
            result = CliRunner().invoke(app, command.split()[1:])
            assert result.exit_code == 0, result.output
    assert read_table("predictions.csv").num_rows == 9


def test_readme_calls_the_test_command():
    assert "make test" in PAGES["README.md"].read_text()
