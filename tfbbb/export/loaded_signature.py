from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf


class LoadedSignature:
    """A loaded signature, called without the checks that arguments already passed.

    Binding arguments by name costs a concrete function more than computing a small
    network; the op beneath it takes tensors by position.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        # The function's own arguments and results are in the order of their names.
        # Those of the specs are other ones: TensorFlow writes them in lower case.
        _, inputs = function.structured_input_signature
        self._inputs = [(name, inputs[name].dtype) for name in sorted(inputs)]
        self._outputs = sorted(function.structured_outputs)
        self._dtypes = [function.structured_outputs[n].dtype for n in self._outputs]
        self._captured = list(function.captured_inputs)

    def __call__(self, tensors: Mapping[str, Any]) -> dict[str, np.ndarray]:
        arguments = [tf.constant(tensors[name], dtype) for name, dtype in self._inputs]
        results = tf.raw_ops.StatefulPartitionedCall(
            args=arguments + self._captured, Tout=self._dtypes, f=self._function
        )
        return {
            name: result.numpy()
            for name, result in zip(self._outputs, results, strict=True)
        }
