import itertools
import pickle

import pytest

from tfbbb.base.texts import time_left
from tfbbb.training import job_clock
from tfbbb.training.job_clock import PARTS, STAGES, WAITING, JobClock, Progress

STEPS = 100


@pytest.fixture(autouse=True)
def first_training(monkeypatch):
    """What the process has learned from other trainings is forgotten."""
    monkeypatch.setattr(job_clock, "_has_trained", False)


def run(slowness=1.0, skipped=(), seconds_of_steps=8.0, **options):
    """Takes the expected time of each part, times a factor; yields what is left."""
    now = [1000.0]
    clock = JobClock(now=lambda: now[0], **options)
    clock.skip(*skipped)
    for name, part in PARTS.items():
        if name in skipped or name == "steps":
            continue
        clock.begin(name)
        seconds = slowness * (part.seconds + part.first)
        for _ in range(10):
            now[0] += 0.1 * seconds
            yield now[0] - 1000.0, clock.left()
        if name == "first step":
            for step in range(STEPS + 1):
                now[0] += slowness * seconds_of_steps / STEPS
                clock.see(report(step, slowness * seconds_of_steps * step / STEPS))
                yield now[0] - 1000.0, clock.left()
    clock.end()
    yield now[0] - 1000.0, clock.left()


def report(step, seconds):
    return Progress(epoch=step, epochs=STEPS, step=step, steps=STEPS, seconds=seconds)


@pytest.mark.parametrize("slowness", [0.6, 1.0, 4.0])
@pytest.mark.parametrize("skipped", [(), ("linear network", "after the choice")])
def test_time_left_comes_true_on_machines_of_any_speed(slowness, skipped):
    told = list(run(slowness, skipped))
    total = told[-1][0]
    later = [(at, left) for at, left in told if 3.0 * slowness <= at < total]
    for at, left in later:
        assert 0.75 * left.least <= total - at + 0.5 * slowness, (at, left)
        assert total - at <= 1.25 * left.most + 0.5 * slowness, (at, left)
    # Half-way through the steps, the machine is known.
    middle = next(left for at, left in told if at > 0.5 * total)
    assert middle.most < (4.0 if slowness <= 1.0 else 8.0) * middle.least


def test_share_that_is_done_rises_to_one_through_all_stages():
    told = [left for _, left in run(2.0)]
    shares = [left.done for left in told]
    assert all(a <= b for a, b in itertools.pairwise(shares))
    assert shares[-2] < shares[-1] == 1.0
    assert tuple(dict.fromkeys(left.stage for left in told)) == STAGES[1:]
    assert STAGES[0] == WAITING
    assert all(left.most > 0.0 for left in told[:-1])


def test_processes_that_have_trained_expect_less():
    cold = JobClock(now=lambda: 0.0).left()
    assert list(run())
    warm = JobClock(now=lambda: 0.0).left()
    assert warm.most < cold.most


def test_steps_end_in_time_for_what_follows():
    now = [0.0]
    clock = JobClock(now=lambda: now[0])
    clock.limit = 90.0
    clock.expect("steps", 500.0)
    clock.begin("first step")
    now[0] = 5.0
    assert clock.left().most <= 85.2


def test_time_before_a_training_counts_for_its_limit():
    now = [0.0]
    clock = JobClock(elapsed=12.0, now=lambda: now[0])
    clock.limit = 30.0
    now[0] = 4.0
    assert clock.elapsed == 16.0
    clock.expect("version", 3.0)
    # Somewhat more than expected is kept for it.
    assert 10.0 < clock.seconds_before("version") < 11.0


@pytest.mark.parametrize("slowness", [0.7, 1.0, 3.0])
@pytest.mark.parametrize("loading", [1.0, 4.0])
@pytest.mark.parametrize("rows", [900, 10_000])
def test_steps_that_end_in_time_keep_the_limit(slowness, loading, rows):
    now, limit = [0.0], 120.0
    clock = JobClock(now=lambda: now[0])
    clock.limit, clock.rows = limit, rows
    clock.skip("linear network", "after the choice")
    for name, part in PARTS.items():
        if part.of_steps:
            continue
        clock.begin(name)
        seconds = part.seconds + part.first + 1e-3 * part.per_thousand * rows
        # Files that the disk has not read yet take longer, and nothing after them.
        now[0] += slowness * seconds * (loading if name == "loading" else 1.0)
        if name == "first step":
            while clock.seconds_before("choice") > 0.0:
                now[0] += 0.2 * slowness
                clock.see(report(1, 1.0))
    clock.end()
    assert 0.7 * limit < clock.elapsed <= 1.1 * limit


def test_parts_that_are_over_need_no_time():
    clock = JobClock(now=lambda: 0.0)
    clock.limit = 90.0
    before = clock.seconds_before("choice")
    clock.begin("baselines")
    clock.begin("after the choice")
    needed = clock.seconds_before("choice") - before
    assert needed == pytest.approx(clock.seconds_of("baselines"))


def test_a_part_that_takes_long_is_never_said_to_end_now():
    now = [0.0]
    clock = JobClock(now=lambda: now[0])
    clock.begin("version")
    now[0] = 600.0
    left = clock.left()
    assert left.most > 100.0
    assert left.done < 1.0


def test_a_part_that_is_held_up_does_not_slow_all_later_ones():
    now = [0.0]
    clock = JobClock(now=lambda: now[0])
    clock.begin("reading")
    now[0] = 20.0
    early = clock.left().most
    now[0] = 60.0
    # What is left grows by less than the part has taken longer.
    assert 0.0 < clock.left().most - early < 40.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        ([0.0, 0.2], "1 s left"),
        ([11.4, 19.0], "11 to 19 s left"),
        ([100.0, 240.0], "2 to 4 min left"),
    ],
)
def test_time_left_is_written_as_a_range(seconds, text):
    assert time_left(seconds) == text


def test_a_clock_can_be_pickled_with_its_model():
    clock = JobClock(elapsed=2.0)
    clock.begin("reading")
    copied = pickle.loads(pickle.dumps(clock))
    copied.begin("likelihood")
    assert copied.seconds["reading"] >= 2.0
