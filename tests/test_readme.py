import re
from pathlib import Path

import numpy as np

README = Path(__file__).parent.parent / "README.md"


def test_programs_of_the_readme_run_as_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(programs) == 8
    namespace = {}
    for number, program in enumerate(programs):
        exec(compile(program, str(README), "exec"), namespace)
        if number == 0:
            first = namespace["prediction"]
    # The first one has learnt something: a constant would have an error of 1.
    y, mean = namespace["y"][350:, None], first.mean
    assert np.std(y - mean) < 0.8 * np.std(y)
    assert (tmp_path / "saved_models" / "mine" / "1" / "saved_model.pb").is_file()


def test_readme_calls_the_test_command():
    assert "make test" in README.read_text()
