import json
import re
import subprocess
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tfbbb.cli import app
from tfbbb.cli.running_service import running_service
from tfbbb.data import read_table
from tfbbb.data.writing import write_table

README = Path(__file__).parent.parent / "README.md"


def programs() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_programs_of_the_readme_run_as_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    of_keras = [program for program in programs() if "tfbbb.client" not in program]
    assert len(of_keras) == 8
    namespace = {}
    for number, program in enumerate(of_keras):
        exec(compile(program, str(README), "exec"), namespace)
        if number == 0:
            first = namespace["prediction"]
    # The first one has learnt something: a constant would have an error of 1.
    y, mean = namespace["y"][350:, None], first.mean
    assert np.std(y - mean) < 0.8 * np.std(y)
    assert (tmp_path / "saved_models" / "mine" / "1" / "saved_model.pb").is_file()


def houses(rows, seed):
    generator = np.random.default_rng(seed)
    area = generator.uniform(30, 250, rows)
    street = generator.choice(["mill lane", "park road"], rows)
    price = 1000 * area + generator.normal(0, 8000, rows)
    return pa.table({"area": area, "street": street, "price": price})


@pytest.mark.slow
def test_the_service_is_used_as_the_readme_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(houses(400, 0), tmp_path / "houses.csv")
    write_table(houses(9, 1).drop_columns("price"), tmp_path / "more.csv")
    (tmp_path / "saved_models").mkdir()
    (of_client,) = (program for program in programs() if "tfbbb.client" in program)
    section = README.read_text().partition("And over HTTP:\n")[2]
    of_shell = textwrap.dedent(section.partition("\nWhat is to be")[0])
    with running_service(tmp_path / "saved_models") as service:
        monkeypatch.setenv("TFBBB_URL", service.url)
        monkeypatch.setenv("TFBBB_KEY", service.key)
        namespace = {}
        exec(compile(of_client, str(README), "exec"), namespace)
        assert namespace["prediction"].mean[0, 0] == pytest.approx(120_000, rel=0.1)
        done = subprocess.run(
            ["bash", "-euc", of_shell], capture_output=True, text=True, check=True
        )
        *events, answer = done.stdout.strip().splitlines()
        assert "event: epoch" in events
        mean = json.loads(answer)["predictions"][0]["mean"]
        assert mean == pytest.approx([120_000], rel=0.1)
        for command in (
            "train houses.csv --target price --name houses",
            "predict houses more.csv --output predictions.csv",
        ):
            assert f"    tfbbb remote {command}\n" in README.read_text()
            result = CliRunner().invoke(app, ["remote", *command.split()])
            assert result.exit_code == 0, result.output
    assert read_table(tmp_path / "predictions.csv").num_rows == 9


def test_readme_calls_the_test_command():
    assert "make test" in README.read_text()
