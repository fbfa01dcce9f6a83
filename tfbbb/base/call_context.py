"""What the layers, weights and metrics in a call know without an argument."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Protocol

from tfbbb.base.types import Structure, Tensor

# (input products at a time step, previous states) -> (outputs, new states)
RecurrentStep = Callable[[Structure, list[Tensor]], tuple[Tensor, list[Tensor]]]


class LayerDraws(Protocol):
    """Draws the outputs of layers while a posterior predictive is computed."""

    def outputs(self, layer: Any, inputs: Tensor) -> Tensor:
        """Returns draws of the pre-activations of a layer that is linear in a kernel.

        Its inputs have the samples folded into the batch or not, its outputs do.
        """

    def drawn_weights(self, layer: Any, inputs: Tensor) -> dict[str, Tensor]:
        """Returns draws of all weights of a layer by name, [samples, *shape].

        The layer may have arranged them already. They are in the dtype that the layer
        computes in.

        The inputs of the layer have the samples folded into the batch: [samples * rows,
        ...].
        """


@dataclass(frozen=True)
class CallContext:
    """The state around a call, which Keras offers no argument for.

    Each thread has its own, so a prediction in one thread does not see a training step
    in another.

    Attributes:
        layer_draws: Draws the outputs of layers in a prediction; None for an ordinary
            call, in which layers draw by their estimators.
        samples_in_batch: How often the batch holds each row, once per draw; None
            outside a `BayesianModel`.
        copies_in_batch: How often a `BayesianModel` has repeated its batch, one copy
            after the other; 1 where the rows of the batch may differ.
        loss_of_members: Whether the loss of a step has the gradient of the sum of the
            members' losses, so that no weight restores its member's part.
        graph: The graph in which a `BayesianModel` is called: perhaps the body of a
            loop over steps. None elsewhere.
        recurrent_step: The step of the recurrent layer whose loop runs.
        memos: Values computed from weights, by the `id` of the `VariationalWeight`.
        prediction: The `StepPrediction` that metrics of distributions score; None
            outside a step of a `BayesianModel`.
    """

    layer_draws: LayerDraws | None = None
    samples_in_batch: int | None = None
    copies_in_batch: int = 1
    loss_of_members: bool = False
    graph: Any = None
    recurrent_step: RecurrentStep | None = None
    memos: Mapping[int, dict[str, Any]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    prediction: Any = None


_NO_CALL = CallContext()
_context: ContextVar[CallContext] = ContextVar("call_context", default=_NO_CALL)


def current_call() -> CallContext:
    """Returns the context of the call that runs."""
    return _context.get()


@contextlib.contextmanager
def call_with(**changes: Any) -> Iterator[None]:
    """Changes attributes of the current `CallContext` within a `with` block."""
    token = _context.set(replace(_context.get(), **changes))
    try:
        yield
    finally:
        _context.reset(token)
