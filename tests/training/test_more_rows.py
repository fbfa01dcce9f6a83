"""The training of the chosen members on more rows."""

import numpy as np

from tfbbb.training import candidates, effort, train_table
from tfbbb.training.cross_fitting import MemberRows

ROWS = 120
MODEL = {"hidden_units": [8], "members": 4, "likelihood": "normal"}


def table():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ROWS, 2))
    y = np.sin(2.0 * x[:, 0]) + x[:, 1] + 0.1 * generator.normal(size=ROWS)
    return {"a": x[:, 0], "b": x[:, 1], "y": y}


def test_one_of_the_members_that_left_out_a_row_leaves_it_out_still():
    members = MemberRows.draw(ROWS, (0.3, 0.1), 8, 2, seed=3)
    left_out = candidates.left_out_by_one(members, None, seed=3)
    assert left_out.temperatures == (1.0,)
    assert left_out.num_members == 8
    now, before = 1.0 - left_out.weights, 1.0 - members.weights[:, :8]
    np.testing.assert_array_equal(now.sum(axis=1), 1.0)
    np.testing.assert_array_equal(before.sum(axis=1), 2.0)
    assert np.all(now <= before)
    # Members of both repeats see more rows than before.
    assert np.all(left_out.sizes > members.sizes[:8])


def test_all_rows_of_a_group_are_left_out_by_one_member():
    groups = np.arange(ROWS) % 30
    members = MemberRows.draw(ROWS, (0.3, 0.1), 8, 2, groups=groups)
    (places,) = candidates.left_out_by_one(members, groups, seed=0).folds
    for group in range(30):
        assert len(set(places[groups == group])) == 1
    # Of both repeats, four members each.
    assert set(places) == set(range(8))


def test_one_member_leaves_out_the_last_rows_still():
    last = np.arange(ROWS) >= 90
    members = MemberRows.draw(ROWS, (0.3, 0.1), 8, 2, last=last)
    left_out = candidates.left_out_by_one(members, last, seed=0)
    assert np.sum(1.0 - left_out.weights) == 30.0
    assert set(left_out.folds[0, ~last]) == {-1}


def test_the_members_of_the_best_temperature_go_on_where_rows_are_held_out(monkeypatch):
    monkeypatch.setattr(effort, "FEWEST_ROWS_TO_HOLD_OUT", 100)
    stages = []
    found = train_table(
        table(),
        {"target": "y", "training": {"steps": 10}, "model": MODEL},
        report=lambda at: stages.append(at.stage),
    )
    assert len(found.held_out_rows) == 12
    assert stages[-1] == "4 members go on training"
    (kept,) = [trial for trial in found.recipe["tried"] if trial["kept"]]
    assert kept["temperature"] == found.recipe["chosen"]["temperature"]
    # Of 10 steps, 4 are those of the trial.
    assert found.recipe["steps"] == 10
    assert len(found.model.members) == 4
