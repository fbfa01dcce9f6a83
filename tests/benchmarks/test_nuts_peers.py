import numpy as np
import pytest
from scipy import stats

from tests.benchmarks.programs import load, run_smoke
from tests.benchmarks.test_uci import write_set
from tfbbb.inference import NUTS

nuts_peers = load("nuts_peers")
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 2))
Y = X @ [1.0, -1.0] + 0.1 * RANDOM.normal(size=40)
UNITS = nuts_peers.UNITS


def log_density(state, x, y):
    """The library's density of one state, from its definition."""
    kernel, bias, last_kernel, last_bias = np.split(
        state, np.cumsum([2 * UNITS, UNITS, 2 * UNITS])
    )
    units = x @ kernel.reshape(2, UNITS) + bias
    units = units / (1.0 + np.exp(-units))
    mean, raw = (units @ last_kernel.reshape(UNITS, 2) + last_bias).T
    noise = np.logaddexp(0.0, raw) + 1e-6
    return stats.norm.logpdf(y, mean, noise).sum() + stats.norm.logpdf(state).sum()


def independent_draws(x, y, units, chains, draws, **options):
    """Draws of a peer that samples the prior, scaled down."""
    size = 3 * units + 2 * units + 2
    states = 0.1 * np.random.default_rng(1).normal(size=(draws, chains, size))
    return {
        "states": states.astype("float32"),
        "log_prob": np.array([log_density(state, x, y) for state in states[-1]]),
        "seconds": np.array(2.0),
        "warmup_seconds": np.array(1.0),
        "versions": np.array("peer 1.0"),
    }


def own_draws(method, target):
    """Independent draws in place of those of NUTS, whose compilation takes long."""
    size = (method.num_draws, method.num_chains, target.size)
    figures = dict.fromkeys(("divergences", "gradients_per_draw", "acceptance"), 1.0)
    figures["sampling_processor_seconds"] = 0.5
    return np.random.default_rng(2).normal(size=size).astype("float32"), figures


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    write_set(data, "plane", X, Y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NUTS, "sample", own_draws)
        patch.setattr(
            nuts_peers.Peer, "run", lambda self, **inputs: independent_draws(**inputs)
        )
        methods = f"{nuts_peers.SAME_MODEL},{nuts_peers.THEIRS}"
        return run_smoke(
            "nuts_peers", data, data / "nuts_peers.json", "--methods", methods
        )


def test_our_density_is_the_one_of_the_library(smoke):
    (theirs,) = smoke.select(method=nuts_peers.THEIRS)
    # float32, and a least noise of 1e-4 instead of 1e-6.
    assert abs(theirs["log_density"]) > 10.0
    assert theirs["density_difference"] < 1e-3 * abs(theirs["log_density"])


def test_independent_draws_agree(smoke):
    (theirs,) = smoke.select(method=nuts_peers.THEIRS)
    # 100 draws of four chains; the largest of some hundred quantities.
    assert theirs["r_hat"] < 1.06
    assert theirs["ess_median"] == pytest.approx(400.0, rel=0.3)
    assert nuts_peers.per_second(theirs, "ess_min") == theirs["ess_min"] / 2.0


def test_effective_sizes_per_second_are_compared(smoke):
    (ours,) = smoke.select(method=nuts_peers.SAME_MODEL)
    compared = nuts_peers.compare(smoke)
    assert [found.name for found in compared] == [
        f"plane {what} ESS per second" for what in ("smallest", "median", "density's")
    ]
    assert compared[0].ours == ours["ess_min"] / 0.5
    assert "plane, sklearn-contrib-bde" in nuts_peers.report(smoke)
