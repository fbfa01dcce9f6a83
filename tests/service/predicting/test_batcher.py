"""The queue of predictions, without predictions: computing takes a fixed time."""

import asyncio
import contextlib
import functools
import itertools
import threading
import time

import pytest

from service.predicting import batcher as batcher_module
from service.predicting.batcher import Batcher, Task
from service.predicting.pace import Pace
from service.shared.errors import DeadlineExceeded, Overloaded
from service.shared.settings import Settings
from tests.waiting import set_clock


class Queue:
    """A batcher whose answers name the rows that were computed."""

    def __init__(self, seconds=lambda work: 0.0, **settings):
        self.batches = []
        self.threads = set()
        self.seconds = seconds
        self.may_compute = threading.Event()
        self.may_compute.set()
        chosen = Settings(threads=1, **settings)
        self.batcher = Batcher(self.compute, self.finish, chosen)
        self.batcher.start()

    def compute(self, batch):
        self.batches.append([portion.task.subject for portion in batch])
        self.threads.add(threading.get_ident())
        self.may_compute.wait(60)
        if any(portion.task.subject.startswith("bad") for portion in batch):
            raise ValueError("a bad row")
        time.sleep(self.seconds(sum(portion.work for portion in batch)))
        return [f"{rows.start}:{rows.stop}" for _, rows in batch]

    def finish(self, subject, results):
        return f"{subject}[{', '.join(results)}]"

    def ask(self, name, rows=1, deadline=30.0, **given):
        task = Task(
            subject=name,
            rows=rows,
            deadline=time.monotonic() + deadline,
            **{"key": "a model", "work": 100 * rows, "pace": Pace(0.01)} | given,
        )
        return asyncio.create_task(self.batcher.answer(task))

    async def occupy(self):
        """Lets the thread wait, so that what is asked then waits for it."""
        self.may_compute.clear()
        before = len(self.batches)
        first = self.ask("first", key="first")
        while len(self.batches) == before:
            await asyncio.sleep(0.001)
        return first


def in_loop(test):
    """Runs a test in an event loop of its own."""

    @functools.wraps(test)
    def run(**given):
        asyncio.run(asyncio.wait_for(test(**given), 60))

    return run


@in_loop
async def test_waiting_tasks_with_one_key_are_computed_together():
    queue = Queue()
    first = await queue.occupy()
    keys = {"a": "x", "b": "y", "c": "x", "d": "x"}
    asked = [queue.ask(name, key=key) for name, key in keys.items()]
    await asyncio.sleep(0)
    queue.may_compute.set()
    found = await asyncio.gather(first, *asked)
    assert found == ["first[0:1]", *(f"{name}[0:1]" for name in "abcd")]
    assert queue.batches == [["first"], ["a", "c", "d"], ["b"]]


@in_loop
async def test_tasks_of_milliseconds_are_computed_together_on_the_event_loop():
    queue = Queue()
    asked = [queue.ask(name, pace=Pace(0.001)) for name in "abc"]
    found = await asyncio.gather(*asked)
    assert found == ["a[0:1]", "b[0:1]", "c[0:1]"]
    assert queue.batches == [["a", "b", "c"]]
    assert queue.threads == {threading.get_ident()}


@in_loop
async def test_tasks_without_a_key_are_computed_alone():
    queue = Queue()
    first = await queue.occupy()
    asked = [queue.ask(name, key=None) for name in "ab"]
    await asyncio.sleep(0)
    queue.may_compute.set()
    await asyncio.gather(first, *asked)
    assert queue.batches == [["first"], ["a"], ["b"]]


@in_loop
async def test_a_large_task_and_small_ones_take_turns():
    queue = Queue()
    first = await queue.occupy()
    large = queue.ask("large", rows=100, key="l", pace=Pace(0.0, 1e-5), work=30_000)
    small = [queue.ask(name, key=name) for name in ("a", "b")]
    await asyncio.sleep(0)
    queue.may_compute.set()
    answer, *_ = await asyncio.gather(large, first, *small)
    assert queue.batches[1:5] == [["large"], ["a"], ["large"], ["b"]]
    ends = [tuple(map(int, part.split(":"))) for part in answer[6:-1].split(", ")]
    assert ends[0][0] == 0
    assert ends[-1][1] == 100
    assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(ends))


@in_loop
async def test_a_deadline_of_an_hour_does_not_starve_large_tasks():
    queue = Queue(seconds=lambda work: 0.002)
    pace = Pace(0.0, 1e-5)
    large = queue.ask("large", rows=100, key="l", pace=pace, work=50_000)
    patient = queue.ask("patient", key="p", deadline=3600.0)

    async def keep_asking():
        for place in range(1000):
            await queue.ask(f"{place}", key=place)

    newcomers = asyncio.create_task(keep_asking())
    await asyncio.gather(large, patient)
    newcomers.cancel()
    assert len(queue.batches) < 500


@in_loop
async def test_forty_rows_at_a_fixed_cost_are_few_batches_and_none_is_refused(
    monkeypatch,
):
    passed = [0.0]

    def pass_a_tenth(work):
        passed[0] += 0.1
        return 0.0

    queue = Queue(seconds=pass_a_tenth)
    set_clock(monkeypatch, batcher_module, perf_counter=lambda: passed[0])
    pace = Pace()
    for _ in range(2):
        rows = [queue.ask(f"{n}", pace=pace, deadline=2.0) for n in range(40)]
        await asyncio.gather(*rows)
    assert len(queue.batches) <= 6
    assert pace.seconds(100) == pytest.approx(0.1, rel=1e-3)


@in_loop
async def test_a_failing_task_fails_alone():
    queue = Queue()
    first = await queue.occupy()
    asked = [queue.ask(name) for name in ("good", "bad", "fine")]
    await asyncio.sleep(0)
    queue.may_compute.set()
    good, bad, fine = await asyncio.gather(*asked, return_exceptions=True)
    assert (good, fine) == ("good[0:1]", "fine[0:1]")
    assert str(bad) == "a bad row"
    await first


@in_loop
async def test_the_deadline_is_kept_while_a_block_is_computed():
    queue = Queue()
    first = await queue.occupy()
    with pytest.raises(DeadlineExceeded, match="passed"):
        await queue.ask("late", deadline=0.1)
    assert not first.done()
    queue.may_compute.set()
    await first
    assert queue.batches == [["first"]]
    with pytest.raises(DeadlineExceeded, match="passed"):
        await queue.ask("later", deadline=0.0)


@in_loop
async def test_a_deadline_that_cannot_be_met_is_refused_at_once():
    queue = Queue(max_queue_seconds=1000.0)
    queue.may_compute.clear()
    # What comes first is tried, however long it seems to take.
    first = queue.ask("first", rows=4000, pace=Pace(0.0, 1e-4))
    await asyncio.sleep(0)
    with pytest.raises(
        DeadlineExceeded, match=r"would take 80000 ms, but its de"
    ) as no:
        await queue.ask("second", rows=4000, pace=Pace(0.0, 1e-4))
    assert no.value.headers == {"Retry-After": "40"}
    queue.may_compute.set()
    await first


@in_loop
async def test_more_waiting_work_than_the_limit_is_refused_before_its_body():
    queue = Queue(max_queue_seconds=1.0)
    first = await queue.occupy()
    pace = Pace(0.45, 1e-9)
    asked = [queue.ask(f"{n}", key=n, pace=pace) for n in range(3)]
    await asyncio.sleep(0)
    with (
        pytest.raises(Overloaded, match=r"would wait 1\.4 s"),
        queue.batcher.admitted(10),
    ):
        pass
    queue.may_compute.set()
    await asyncio.gather(first, *asked)
    with queue.batcher.admitted(10):
        pass


def test_more_waiting_requests_or_bytes_than_the_limits_are_refused():
    batcher = Queue(max_waiting_requests=2, max_waiting_bytes=100).batcher
    with (
        batcher.admitted(200),  # Whatever its size, if no other waits.
        pytest.raises(Overloaded, match="Bodies of 200 bytes are waiting"),
        batcher.admitted(1),
    ):
        pass
    with (
        batcher.admitted(10),
        batcher.admitted(10),
        pytest.raises(Overloaded, match="2 predictions are waiting"),
        batcher.admitted(10),
    ):
        pass
    with batcher.admitted(10):
        pass


def test_requests_count_from_their_headers_on():
    batcher = Queue(max_waiting_requests=2).batcher
    assert batcher.arrive() is None
    assert batcher.arrive() is None
    assert "2 predictions are waiting" in str(batcher.arrive())
    # Those that have arrived are admitted.
    with batcher.admitted(10), batcher.admitted(10):
        pass
    batcher.leave()
    assert batcher.arrive() is None


@in_loop
async def test_few_requests_begin_in_one_turn_of_the_event_loop():
    batcher, begun = Queue().batcher, [0]

    async def begin():
        await batcher.begin()
        begun[-1] += 1

    requests = [asyncio.create_task(begin()) for _ in range(100)]
    while not all(request.done() for request in requests):
        await asyncio.sleep(0)
        begun.append(0)
    assert sum(begun) == 100
    assert max(begun) <= 16


@in_loop
async def test_a_batch_on_the_event_loop_takes_a_few_milliseconds():
    queue = Queue()
    # Each takes 1.1 ms, of which 0.1 ms once for a batch; a block takes 100 ms.
    pace = Pace(1e-4, 1e-4)
    await asyncio.gather(*(queue.ask(n, work=10, pace=pace) for n in "abcdef"))
    assert queue.batches[0] == ["a", "b"]


@in_loop
async def test_a_request_that_is_alone_is_computed_at_once():
    queue = Queue()
    with queue.batcher.admitted(10):
        asked = queue.ask("alone", pace=Pace(0.001))
        await asyncio.sleep(0)
        assert queue.batches == [["alone"]]
        assert await asked == "alone[0:1]"


@pytest.mark.parametrize(
    ("computed", "waited", "is_refused"), [(0.02, 0.0, True), (1e-4, 0.5, False)]
)
@in_loop
async def test_a_crowd_is_refused_for_its_work_and_not_for_a_stall_of_the_machine(
    monkeypatch, computed, waited, is_refused
):
    processor, wall = [0.0], [0.0]
    set_clock(
        monkeypatch,
        batcher_module,
        thread_time=lambda: processor[0],
        monotonic=lambda: wall[0],
    )
    queue = Queue()
    with contextlib.ExitStack() as admitted:
        for _ in range(256):
            admitted.enter_context(queue.batcher.admitted(10))
        assert queue.batcher.arrive() is None
        for place in range(20):
            asked = queue.ask(f"{place}", pace=Pace(0.001))
            processor[0] += computed
            wall[0] += waited
            await asked
        refusal = queue.batcher.arrive()
        assert ("overloaded: 256 predictions" in str(refusal)) is is_refused
    queue.batcher.leave()
    assert queue.batcher.arrive() is None


@in_loop
async def test_a_cancelled_task_is_not_computed_and_nobody_waits_for_it():
    queue = Queue()
    first = await queue.occupy()
    given_up = queue.ask("given up", pace=Pace(10.0))
    await asyncio.sleep(0.01)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    other = queue.ask("other")
    await asyncio.sleep(0)
    queue.may_compute.set()
    await asyncio.gather(first, other)
    assert queue.batches == [["first"], ["other"]]


def test_pace_follows_the_load_of_the_machine():
    pace = Pace()
    for work, seconds in ((100, 0.0021), (1100, 0.0031)):
        pace.observe(work, seconds)
    assert pace.seconds(100) == pytest.approx(0.0021, rel=1e-3)
    assert pace.per_work == pytest.approx(1e-6, rel=1e-3)
    for _ in range(400):
        for work, seconds in ((100, 0.0042), (1100, 0.0062)):
            pace.observe(work, seconds)
    assert pace.seconds(1100) == pytest.approx(0.0062, rel=1e-2)
    # A block lasts a tenth of a second, or twice the fixed cost of a batch.
    assert pace.block_work == pytest.approx(48_000, rel=0.05)
    assert Pace(0.2, 1e-6).block_work == pytest.approx(200_000)
