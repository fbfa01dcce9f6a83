import numpy as np
import pytest

from tests.benchmarks.programs import load, run_smoke

bandit = load("bandit")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A directory of mushrooms, of which one code tells the poisonous ones."""
    directory = tmp_path_factory.mktemp("data")
    random = np.random.default_rng(0)
    poisonous = random.random(200) < 0.5
    others = random.integers(2, size=(200, 3))
    codes = np.column_stack([poisonous, ~poisonous, others]).astype("uint8")
    np.savez(directory / "mushroom.npz", onehot=codes, poisonous=poisonous)
    return directory


@pytest.fixture(scope="module")
def measured(data, tmp_path_factory):
    output = tmp_path_factory.mktemp("bandit") / "bandit.json"
    return run_smoke("bandit", data, output, "--agents", "thompson,greedy 5 %")


@pytest.mark.slow
def test_regret_is_that_of_the_mistakes(measured):
    for record in measured.records:
        # A poisonous mushroom costs 15 on average, +5 or -35, each with a sampling
        # error of 20; an edible one that is left costs 5.
        expected = 15 * record["ate_poisonous"] + 5 * record["left_edible"]
        error = 20 * np.sqrt(record["ate_poisonous"])
        assert abs(record["regret"] - expected) < 4.5 * error
        assert record["curve"][-1] == record["regret"]


def test_agents_do_better_than_chance(measured):
    assert {record["agent"] for record in measured.records} == {
        "thompson",
        "greedy 5 %",
    }
    for record in measured.records:
        # Random choices lose 5 in a round: half of 15 for half of the mushrooms, and
        # half of 5 for the others.
        assert record["regret"] < 0.8 * 5 * record["rounds_of_curve"][-1]
