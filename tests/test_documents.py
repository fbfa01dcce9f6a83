"""Programs in the README and in the pages under docs/ run as they are written."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.documents import (
    CLIENT_PAGE,
    COURSE,
    ELSEWHERE,
    GALLERY,
    PAGES,
    PICTURED_PAGES,
    blocks,
    pictures,
    prose,
    run_programs,
    shell_session,
)
from tests.ports import free_port
from tfbbb.tables import read_table

NUM_PROGRAMS = {
    "README.md": 1,
    "docs/coming_from.md": 6,
    "docs/evidence.md": 6,
    "docs/inference.md": 11,
    "docs/keras.md": 18,
    "docs/saved_models.md": 5,
    "docs/service.md": 1,
    "docs/sklearn.md": 2,
    "docs/tables.md": 2,
    "docs/tfp_layers.md": 1,
    "docs/uncertainty.md": 2,
    "docs/which.md": 6,
    "docs/worse_than_dense.md": 12,
}
# Pages whose programs have a short form.
SIZED_PAGES = {
    *("README.md", "docs/keras.md", "docs/tables.md", "docs/uncertainty.md"),
    *("docs/which.md", "docs/worse_than_dense.md", *GALLERY, *COURSE),
}
# Pages whose short form takes eight seconds and more: they run in full alone.
FULL_PAGES = {
    *("docs/worse_than_dense.md", "docs/gallery/frozen_backbone.md"),
    *("docs/course/01_why_a_distribution.md", "docs/course/10_choosing_models.md"),
    *("docs/course/08_priors_and_posteriors.md", "docs/course/09_other_ways.md"),
    "docs/course/11_less_is_more.md",
}
# Pages that take half a minute and more: `make docs` and `make test-slow` run them.
LONG_PAGES = {
    *("docs/coming_from.md", "docs/evidence.md"),
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
    """Returns what a page has drawn, without the frames of sliders."""
    return {path.name for path in directory.glob("*.png") if "=" not in path.name}


@pytest.mark.parametrize("page", sorted(SIZED_PAGES - FULL_PAGES))
def test_pages_run_in_their_short_form(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_programs(page, short=True)
    if page in PICTURED_PAGES:
        assert picture_names(tmp_path) == set(pictures(page))
    if page == "README.md":
        assert (tmp_path / "saved_models" / "mine" / "1" / "saved_model.pb").is_file()


def labels(printed):
    """Returns the words beside the numbers of an output."""
    lines = [line for line in printed.splitlines() if re.search(r"\d", line)]
    return re.sub(r"-?[\d.,]+(?:e[-+]\d+)?", " ", " ".join(lines)).split()


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(SIZED_PAGES))
def test_claims_of_a_page_hold(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = run_programs(page)
    if page in COURSE:
        recorded = "".join(blocks(page, "output"))
        assert labels(capsys.readouterr().out) == labels(recorded)
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


# The price by which the sample table is made, of the house that the pages ask for.
PRICE = 2800 * 120**0.95 * (1 - 0.005 * 30) * 1.2 * 1.035**3.16


def run_in_shell(script, directory):
    """Runs a script in a directory, with the commands of this environment.

    Nothing of the caller's environment but the paths of programs reaches it.
    """
    paths = {x: os.environ[x] for x in ("PYTHONPATH", "LANG") if x in os.environ}
    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env={
            **paths,
            "PATH": commands,
            "HOME": str(directory),
            "TFBBB_PORT": str(free_port()),
        },
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout.splitlines()


def check_answers(lines, number):
    """Checks the answers to `:predict` among the lines, of which there is a number."""
    answers = [json.loads(x) for x in lines if x.startswith('{"predictions"')]
    assert len(answers) == number
    for answer in answers:
        (mean,) = answer["predictions"][0]["mean"]
        assert mean == pytest.approx(PRICE, rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("short", [True, False], ids=["short", "full"])
def test_the_commands_about_a_service_run_as_written(short, tmp_path):
    lines = run_in_shell(shell_session(CLIENT_PAGE, short=short), tmp_path)
    check_answers(lines, 2)
    assert "event: epoch" in lines
    assert read_table(tmp_path / "predictions.csv").num_rows == 200
    labels = [json.loads(x) for x in lines if x.startswith('{"label"')]
    assert labels[-1]["version"] == 2
    # The service has stopped: its state is copied and put back.
    run_in_shell(shell_session("docs/operations.md"), tmp_path)
    assert (tmp_path / "saved_models" / "houses" / "3").is_dir()


@pytest.mark.slow
def test_the_commands_of_the_readme_run_as_written(tmp_path):
    lines = run_in_shell(shell_session("README.md"), tmp_path)
    check_answers(lines, 1)
    assert read_table(tmp_path / "predictions.csv").num_rows == 200


@pytest.mark.slow
def test_the_commands_about_tables_run_in_order(tmp_path):
    script = shell_session("docs/tables.md").replace("--trials 20", "--trials 2")
    run_in_shell(script, tmp_path)
    assert (tmp_path / "houses.json").is_file()
    assert (tmp_path / "saved_models" / "houses" / "2").is_dir()


@pytest.mark.parametrize("page", ELSEWHERE)
def test_commands_that_need_other_machines_exist(page):
    text = PAGES[page].read_text()
    assert all(f"# {heading}\n" in text for heading in ELSEWHERE[page])


def test_readme_calls_the_test_command():
    assert "make test" in PAGES["README.md"].read_text()
