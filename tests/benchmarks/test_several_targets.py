import numpy as np
import pytest
from scipy import stats

from tests.benchmarks.programs import load

program = load("several_targets")


def test_the_energy_score_of_one_target_is_its_crps():
    generator = np.random.default_rng(0)
    truth = np.array([[-1.0], [0.0], [2.0]])
    drawn = generator.normal(size=(4000, 3, 1))
    z = truth[:, 0]
    normal = stats.norm()
    crps = z * (2 * normal.cdf(z) - 1) + 2 * normal.pdf(z) - 1 / np.sqrt(np.pi)
    # The mean of 4000 distances, whose standard deviation is below 1.
    found = program.energy_score(drawn, truth)
    assert found == pytest.approx(crps.mean(), abs=4.0 / np.sqrt(4000))


def test_every_set_has_rows_with_several_targets():
    for columns in program.SETS.values():
        features, targets = columns()
        sizes = {len(values) for values in (*features.values(), *targets.values())}
        assert len(sizes) == 1
        assert len(targets) == 2
        assert not {*features} & {*targets}
