import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_programs_of_the_readme_run_as_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(programs) == 2
    namespace = {}
    for program in programs:
        exec(compile(program, str(README), "exec"), namespace)
    assert (tmp_path / "saved_models" / "mine" / "1" / "saved_model.pb").is_file()


def test_readme_calls_the_test_command():
    assert "make test" in README.read_text()
