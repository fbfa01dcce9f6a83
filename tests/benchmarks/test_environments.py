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


@pytest.mark.parametrize("program", sorted(environments.PROGRAMS.glob("*.py")))
def test_programs_of_peers_compile(program):
    compile(program.read_text(), str(program), "exec")
