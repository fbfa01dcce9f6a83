"""Waiting for what another thread or process does, and clocks of single modules."""

import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest


def wait_until(condition: Callable[[], object], seconds: float = 300.0) -> None:
    """Returns once a condition holds; fails if it does not in time."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "it does not come true"
        time.sleep(0.02)


def set_clock(
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    **functions: Callable[[], float],
) -> None:
    """Gives one module other functions of `time`.

    All other threads keep theirs: one that waits until a time of a clock that was ahead
    would wait for hours.
    """
    own = SimpleNamespace(**{**vars(time), **functions})
    monkeypatch.setattr(module, "time", own)
