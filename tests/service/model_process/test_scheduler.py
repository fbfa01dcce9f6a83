"""The queue of predictions, without predictions: time passes only where a test says."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from service.model_process.scheduler import Batch, Scheduler, Task
from service.model_process.speed import Speed
from service.shared.errors import DeadlineExceeded, Overloaded


class Queue:
    """A scheduler whose computations take the estimated time of a stopped clock."""

    def __init__(self, max_seconds: float = 2.0) -> None:
        self.now = 0.0
        self.batches: list[list[tuple[str, int, int]]] = []
        self.outcomes: dict[str, Any] = {}
        self.during: Callable[[], object] = lambda: None
        self.speed = Speed(fixed=0.001, per_unit=1e-6)
        self.scheduler: Scheduler[str, str] = Scheduler(
            self.compute, max_seconds, clock=lambda: self.now
        )

    def compute(self, batch: Batch[str, str]) -> Sequence[str]:
        self.batches.append(
            [(p.task.subject, p.rows.start, p.rows.stop) for p in batch]
        )
        if any(p.task.subject.startswith("bad") for p in batch):
            raise ValueError("a bad row")
        self.now += self.speed.seconds(sum(p.work for p in batch))
        self.during()
        return [f"{p.task.subject}[{p.rows.start}:{p.rows.stop}]" for p in batch]

    def submit(
        self, name: str, deadline: float | None = None, **given: Any
    ) -> Task[str, str]:
        rows = given.pop("rows", 1)

        def finish(outcome: Any) -> None:
            self.outcomes[name] = outcome

        defaults: dict[str, Any] = {
            "key": "a model",
            "work": 100 * rows,
            "speed": self.speed,
        }
        task: Task[str, str] = Task(
            subject=name,
            rows=rows,
            deadline=self.now + (30.0 if deadline is None else deadline),
            waits_anew=deadline is None,
            finish=finish,
            **defaults | given,
        )
        self.scheduler.submit(task)
        return task

    def run(self) -> None:
        while self.scheduler.run_once():
            pass

    @property
    def order(self) -> list[list[str]]:
        return [[name for name, _, _ in batch] for batch in self.batches]


def test_waiting_tasks_with_one_key_are_computed_together() -> None:
    queue = Queue()
    for name, key in (("a", 1), ("b", 2), ("c", 1), ("d", 1)):
        queue.submit(name, key=key)
    queue.run()
    assert queue.order == [["a", "c", "d"], ["b"]]
    assert queue.outcomes["c"] == ["c[0:1]"]


def test_the_earliest_deadline_is_computed_first() -> None:
    queue = Queue()
    for name, deadline in (("late", 9.0), ("early", 1.0), ("middle", 5.0)):
        queue.submit(name, deadline, key=name)
    queue.run()
    assert queue.order == [["early"], ["middle"], ["late"]]


def test_a_large_task_lets_others_take_turns_between_its_blocks() -> None:
    queue = Queue(max_seconds=10.0)
    queue.submit("large", rows=10_000, work=1_000_000, key="large")

    def submit_small() -> None:
        queue.during = lambda: None
        queue.submit("small")

    queue.during = submit_small
    queue.run()
    assert queue.order[:3] == [["large"], ["small"], ["large"]]
    assert "".join(queue.outcomes["large"]).endswith(":10000]")
    ends = [rows for batch in queue.batches for name, *rows in batch if name == "large"]
    assert ends[0][0] == 0
    assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(ends))


def test_a_failing_task_fails_alone() -> None:
    queue = Queue()
    for name in ("good", "bad", "fine"):
        queue.submit(name)
    queue.run()
    assert queue.outcomes["good"] == ["good[0:1]"]
    assert queue.outcomes["fine"] == ["fine[0:1]"]
    assert str(queue.outcomes["bad"]) == "a bad row"


def test_a_task_is_not_computed_after_its_deadline() -> None:
    queue = Queue()
    queue.submit("late", deadline=1.0)
    queue.now = 1.5
    queue.run()
    assert queue.batches == []
    assert isinstance(queue.outcomes["late"], DeadlineExceeded)
    with pytest.raises(DeadlineExceeded, match="passed"):
        queue.submit("later", deadline=0.0)


def test_a_deadline_that_cannot_be_met_is_refused_at_once() -> None:
    queue = Queue()
    queue.submit("first", deadline=0.5, rows=4000, work=400_000, key="first")
    with pytest.raises(DeadlineExceeded, match="its deadline is in 300 ms") as refused:
        queue.submit("second", deadline=0.3, rows=4000, work=400_000)
    assert refused.value.headers == {"Retry-After": "1"}


def test_more_waiting_work_than_the_limit_is_refused() -> None:
    queue = Queue(max_seconds=1.0)
    for place in range(3):
        queue.submit(f"{place}", deadline=20.0, work=450_000, rows=450, key=place)
    with pytest.raises(Overloaded, match=r"would wait 1\.4 s"):
        queue.submit("more")
    queue.run()
    queue.submit("more")


def test_speed_follows_the_load_of_the_machine() -> None:
    speed = Speed.measured((100, 0.002), (1100, 0.003))
    assert speed.seconds(100) == pytest.approx(0.002)
    assert speed.work_within(0.01) == pytest.approx(8100)
    for _ in range(100):
        speed.observe(100, 0.004)
    assert speed.seconds(100) == pytest.approx(0.004, rel=1e-3)
    assert speed.seconds(1100) == pytest.approx(0.006, rel=1e-3)


def test_scheduler_is_idle_once_nothing_waits_or_is_computed() -> None:
    queue = Queue()
    assert queue.scheduler.is_idle()
    queue.submit("a")
    assert not queue.scheduler.is_idle()
    seen = []
    queue.during = lambda: seen.append(queue.scheduler.is_idle())
    queue.run()
    assert seen == [False]
    assert queue.scheduler.is_idle()
