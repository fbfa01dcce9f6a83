"""Whether XLA compiles the steps of a training, decided by their measured times.

XLA may make a step faster, because it fuses operations, or slower: on a CPU it draws
random numbers about ten times slower than TensorFlow does.
"""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal, Self

import tensorflow as tf

from tfbbb.base.types import Config
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.training.steps import Steps
from tfbbb.training.training_state import assign, named_arrays

XLA = Literal["auto", "measure", "off"]

# XLA takes from seconds to a minute to compile the step for each size of batch.
_LEAST_SECONDS = 120.0
# A smaller gain may be chance, and would not repay the compilation.
_MOST_OF_PLAIN = 0.9
_LEAST_EXECUTIONS = 3
_SECONDS_OF_EXECUTIONS = 1.0


@dataclass(frozen=True)
class XLAChoice:
    """The choice, and the times of a step behind it.

    Attributes:
        used: Whether XLA compiles the steps.
        seconds: Time of a step without XLA.
        xla_seconds: Time of a step with XLA; None if XLA cannot compile it.
    """

    used: bool
    seconds: float
    xla_seconds: float | None

    @classmethod
    def decide(cls, seconds: float, xla_seconds: float | None) -> Self:
        """Chooses XLA if it saves a tenth of the time."""
        used = xla_seconds is not None and xla_seconds < _MOST_OF_PLAIN * seconds
        return cls(used, seconds, xla_seconds)

    @classmethod
    def from_state(cls, state: Config | None) -> Self | None:
        """Returns the choice of which `state` is the result of `to_state`."""
        return None if state is None else cls(**state)

    def to_state(self) -> Config:
        """Returns the choice as plain JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        plain = f"{1e3 * self.seconds:.3g} ms"
        if self.xla_seconds is None:
            return f"{plain} per step without XLA, which cannot compile it"
        compiled = f"{1e3 * self.xla_seconds:.3g} ms"
        if self.used:
            return f"{compiled} per step with XLA, {plain} without"
        return f"{plain} per step without XLA, {compiled} with it"


def may_use_xla(xla: XLA, model: BayesianModel) -> bool:
    """Returns whether to measure steps with XLA, if the training is long enough."""
    if xla not in ("auto", "measure", "off"):
        raise ValueError(
            f"`xla` must be 'auto', 'measure' or 'off'. Received: xla={xla!r}"
        )
    if xla == "off" or model.distribute_strategy.num_replicas_in_sync > 1:
        return False
    return xla == "measure" or bool(tf.config.list_logical_devices("GPU"))


def choose_xla(
    xla: XLA,
    steps: Steps,
    model: BayesianModel,
    *,
    num_steps: int,
    max_seconds: float = math.inf,
    spend: Callable[[float], None] = lambda seconds: None,
) -> XLAChoice | None:
    """Takes steps without and with XLA, and restores the model."""
    state = named_arrays(model)
    try:
        seconds = _seconds_per_step(steps, num_steps, spend)
        if xla == "auto" and min(num_steps * seconds, max_seconds) < _LEAST_SECONDS:
            return None
        steps.use_xla = True
        try:
            found = _seconds_per_step(steps, num_steps, spend)
        except tf.errors.OpError:
            # XLA lacks some operations, such as those of strings, or memory.
            return XLAChoice.decide(seconds, None)
        return XLAChoice.decide(seconds, found)
    finally:
        steps.use_xla = False
        assign(model, state)


def _seconds_per_step(
    steps: Steps, num_steps: int, spend: Callable[[float], None]
) -> float:
    """Returns the time of a step in the fastest execution after the first.

    The first execution traces and compiles, as does that of another size of batch.
    """
    found: list[float] = []
    step, measured = 0, 0.0
    while step < num_steps and (
        len(found) < _LEAST_EXECUTIONS or measured < _SECONDS_OF_EXECUTIONS
    ):
        began = time.monotonic()
        after = steps.take(step, num_steps)
        seconds = time.monotonic() - began
        spend(seconds)
        measured += seconds if found else 0.0
        found.append(seconds / (after - step))
        step = after
    return min(found[1:] or found)
