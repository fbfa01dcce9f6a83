"""Which rule propagates means and variances through which operation."""

from collections.abc import Callable
from typing import Any, NoReturn

import keras

from tfbbb.base.types import Structure, Tensor
from tfbbb.prediction.moments.marginals import Marginals


class MomentsError(ValueError):
    """An operation of a model through which means and variances cannot be propagated.

    Attributes:
        operation: Name of the layer or operation.
        kind: Its class.
    """

    def __init__(self, operation: keras.Operation, reason: str):
        self.operation: str = operation.name
        self.kind = type(operation).__name__
        super().__init__(
            f"Means and variances cannot be propagated through '{self.operation}': "
            f"{reason}. Predict with `method='local'` or `method='weight'`, or teach "
            "the class by `tfbbb.prediction.moments.register_moments`. "
            f"Received: {self.kind}"
        )


class Call:
    """One call of a layer or operation, at least one of whose results is uncertain.

    Attributes:
        operation: The layer or operation.
        args: Its arguments: `Marginals` for random tensors, and tensors or
            plain values elsewhere. The tensors' batches hold each row once for every
            member wherever one of the arguments is random.
        kwargs: Its arguments by name, likewise.
        members: Number of members.
    """

    def __init__(
        self,
        operation: keras.Operation,
        args: tuple[Structure, ...],
        kwargs: dict[str, Structure],
        members: int,
        of_weights: Callable[[keras.Layer, str, Callable[[], Tensor]], Tensor],
    ):
        self.operation = operation
        self.args = args
        self.kwargs = kwargs
        self.members = members
        self.reasons: list[str] = []
        self._of_weights = of_weights

    @property
    def inputs(self) -> Any:
        """The first argument."""
        return self.args[0] if self.args else next(iter(self.kwargs.values()))

    def approximate(self, reason: str) -> None:
        """Notes why means and variances are not exact, in one sentence."""
        if reason not in self.reasons:
            self.reasons.append(reason)

    def refuse(self, reason: str) -> NoReturn:
        """Raises `MomentsError`, which goes on with `reason`, a clause."""
        raise MomentsError(self.operation, reason)

    def of_weights(
        self, name: str, compute: Callable[[], Tensor], layer: keras.Layer = None
    ) -> Tensor:
        """Returns a tensor that depends on a layer's weights alone.

        Args:
            name: Name of the tensor within the layer.
            compute: A function of no arguments that returns it.
            layer: The layer, if it is not the operation itself but a layer within it.
        """
        layer = self.operation if layer is None else layer
        return self._of_weights(layer, name, compute)


Rule = Callable[[Call], Marginals]

_RULES: dict[type, Rule] = {}


def register_moments(*kinds: type) -> Callable[[Rule], Rule]:
    """Registers how means and variances go through layers or operations of a class.

    The rule is a function of a `Call` that returns the `Marginals` of the outputs. It
    calls `call.approximate(why)` if they are not exact, and `call.refuse(why)` if there
    are none. It holds for subclasses that have no rule of their own; a
    later rule takes the place of an earlier one.

    Example:

    >>> import keras
    >>> from tfbbb.prediction.moments import register_moments
    >>> class Doubled(keras.layers.Layer):
    ...     def call(self, inputs):
    ...         return 2.0 * inputs
    >>> @register_moments(Doubled)
    ... def doubled(call):
    ...     x = call.inputs
    ...     return x.replace(mean=2.0 * x.mean, variance=4.0 * x.variance)

    Args:
        kinds: Classes of `keras.Layer` or `keras.Operation`.

    Raises:
        ValueError: For any other object.
    """
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, keras.Operation)):
            raise ValueError(
                "Rules are registered for classes of layers or operations of Keras. "
                f"Received: kinds={kinds!r}"
            )

    def register(rule: Rule) -> Rule:
        for kind in kinds:
            _RULES[kind] = rule
        return rule

    return register


def find_rule(operation: keras.Operation) -> Rule | None:
    """Returns the rule of the operation's class, or of its nearest base that has one.

    Returns None for a subclass of a layer with its own `call`: the rule of the base
    does not hold for it.
    """
    kind = type(operation)
    for base in kind.__mro__:
        if base in _RULES:
            own = getattr(kind, "call", None) is getattr(base, "call", None)
            return _RULES[base] if own else None
    return None
