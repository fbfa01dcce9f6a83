"""The types of public signatures.

TensorFlow and Keras carry no types of their own, so a type checker takes tensors,
layers and distributions for `Any`; the aliases tell readers what is meant. Importing
this module imports neither TensorFlow nor NumPy.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Union

if TYPE_CHECKING:
    import keras
    import numpy.typing as npt
    import pandas
    import pyarrow
    import tensorflow as tf
    import tensorflow_probability as tfp

Tensor: TypeAlias = Union["tf.Tensor", "keras.KerasTensor"]
"""A tensor: eager, of a traced graph, or symbolic while Keras builds a model."""

ArrayLike: TypeAlias = Union["tf.Tensor", Any]
"""Numbers that NumPy and TensorFlow convert: a tensor, an array, a table, lists."""

Shape: TypeAlias = Union[Sequence[int | None], "tf.TensorShape", "tf.Tensor"]
"""The sizes of the axes; None where a size is not known yet."""

DType: TypeAlias = Union[str, "tf.DType", None]
"""A dtype or its name."""

Distribution: TypeAlias = Union["tfp.distributions.Distribution"]
"""A distribution of TensorFlow Probability."""

Activation: TypeAlias = str | Callable[[Tensor], Tensor] | None
"""What `keras.activations.get` resolves."""

Initializer: TypeAlias = str | Mapping[str, Any] | Callable[..., Tensor] | None
"""What `keras.initializers.get` resolves."""

Regularizer: TypeAlias = str | Mapping[str, Any] | Callable[[Tensor], Tensor] | None
"""What `keras.regularizers.get` resolves."""

Constraint: TypeAlias = str | Mapping[str, Any] | Callable[[Tensor], Tensor] | None
"""What `keras.constraints.get` resolves."""

TableLike: TypeAlias = Union[
    "pandas.DataFrame", "pyarrow.Table", Mapping[str, Any], Sequence[Mapping[str, Any]]
]
"""A table of pandas, polars or pyarrow, columns by name, or rows as mappings."""

Array: TypeAlias = "npt.NDArray[Any]"
"""An array of NumPy, of any dtype."""

Structure: TypeAlias = (
    Tensor | ArrayLike | Sequence["Structure"] | Mapping[str, "Structure"]
)
"""Tensors nested in lists, tuples and mappings, as Keras takes inputs and targets."""

Config: TypeAlias = dict[str, Any]
"""What `get_config` returns and `from_config` takes: a JSON object by name."""

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object: what `json.loads` reads, with values of any type."""

JsonList: TypeAlias = list[Any]
"""A JSON array, with values of any type."""

Json: TypeAlias = (
    bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
)
"""A value that `json.dumps` writes."""

Options: TypeAlias = dict[str, Any]
"""Keyword arguments by name."""

Identifier: TypeAlias = str | Mapping[str, Any]
"""A strategy, such as a likelihood, by its name or its config."""

Logs: TypeAlias = dict[str, float] | None
"""The figures of an epoch by name, as callbacks of Keras get them."""

LearningRate: TypeAlias = Union[
    float, "keras.optimizers.schedules.LearningRateSchedule", Tensor
]
"""A learning rate, or its schedule."""

TensorFunction: TypeAlias = Callable[[Distribution], Tensor]
"""Converts a distribution to a tensor, such as a draw."""

KernelResults: TypeAlias = "tfp.mcmc.MetropolisHastingsKernelResults"
"""The state of a transition kernel of `tfp.mcmc`, a named tuple."""

TransitionKernel: TypeAlias = "tfp.mcmc.TransitionKernel"
"""A kernel of `tfp.mcmc`, which moves the states of chains."""

"""Returns the log density of states, [chains], of states [chains, D]."""
