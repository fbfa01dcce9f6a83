import sys

import numpy as np
import pytest

from tests.benchmarks.programs import load

environments = load("environments")
records = load("records")

DOUBLING = """
import sys
import numpy as np
given = np.load(sys.argv[1])
if "fail" in given:
    sys.exit("There is no model.")
np.savez(sys.argv[2], means=2.0 * given["x"], versions="peer 1.0")
"""


@pytest.fixture
def peer(tmp_path, monkeypatch):
    """A peer that needs NumPy alone, with this environment as its own."""
    (tmp_path / "fit_double.py").write_text(DOUBLING)
    monkeypatch.setattr(environments, "PROGRAMS", tmp_path)
    monkeypatch.setattr(
        environments.Peer, "environment", lambda self: environments.Path(sys.executable)
    )
    return environments.Peer("fit_double", ())


def test_a_peer_gets_and_returns_arrays_or_is_skipped_with_its_last_words(peer):
    found = peer.run(x=np.arange(3.0), seed=1)
    assert found["means"].tolist() == [0.0, 2.0, 4.0]
    assert str(found["versions"]) == "peer 1.0"
    with pytest.raises(
        records.SkippedError, match=r"fit_double failed: There is no model\."
    ):
        peer.run(fail=1)


def test_a_peer_that_cannot_be_installed_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    peer = environments.Peer("fit_nothing", (str(tmp_path / "nothing.whl"),))
    with pytest.raises(
        records.SkippedError, match=r"cannot install .*nothing\.whl: .+"
    ):
        peer.environment()
    # The next call must not take the half of an environment for the whole.
    assert not list(tmp_path.rglob("complete"))


@pytest.mark.parametrize(("runs", "installs"), [(True, 1), (False, 2)])
def test_tensorflow_is_installed_where_this_one_does_not_run(
    tmp_path, monkeypatch, runs, installs
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    commands = []

    def run(command, what):
        commands.append(list(map(str, command)))
        if "venv" in command:
            packages = environments.Path(command[-1], "lib/python3.1/site-packages")
            packages.mkdir(parents=True)
        if "-c" in command and not runs:
            raise records.SkippedError("it does not run")

    monkeypatch.setattr(environments, "_run", run)
    peer = environments.Peer("serve_some", ("some==1.0",), needs_tensorflow=True)
    python = peer.environment()
    installed = [command[-1] for command in commands if "install" in command]
    assert len(installed) == installs
    assert all("tensorflow==" in name for name in installed[1:])
    assert len(list(python.parents[1].rglob("*.pth"))) == runs


@pytest.mark.parametrize("program", sorted(environments.PROGRAMS.glob("*.py")))
def test_programs_of_peers_compile(program):
    compile(program.read_text(), str(program), "exec")
