"""The dense layers of a model in a row: what methods in closed form can serve."""

import keras
import numpy as np

from tfbbb.base.private_apis import nodes_by_depth, producer
from tfbbb.inference.batches import Batches
from tfbbb.layers import DenseVariational
from tfbbb.layers.sharing import calls_per_pass
from tfbbb.model.bayesian_model import BayesianModel


class DenseChain:
    """A model whose weights are those of dense layers, each the input of the next.

    Layers without a posterior may come before the first dense layer; their outputs are
    the *features*.
    """

    def __init__(
        self, model: BayesianModel, method: str, *, hidden_layers: bool = False
    ):
        self._method = method
        self._needed = (
            "dense layers one after the other, with the activation ReLU except in the "
            "last"
            if hidden_layers
            else "one dense layer without activation"
        )
        if len(model.members) > 1:
            raise ValueError(
                f"{method} fits one posterior; take one member, `model.members[0]`. "
                f"Received: {len(model.members)} members"
            )
        self.layers = self._chain(model)
        if len(self.layers) > 1 and not hidden_layers:
            raise self._refusal(f"{len(self.layers)} dense layers")
        for layer in self.layers[:-1]:
            if layer.activation is not keras.activations.relu:
                raise self._refusal(
                    f"'{layer.name}' with the activation "
                    f"{keras.activations.serialize(layer.activation)!r}"
                )
        last = self.layers[-1]
        if last.activation is not keras.activations.linear:
            raise self._refusal(
                f"the last layer '{last.name}' with the activation "
                f"{keras.activations.serialize(last.activation)!r}"
            )

    def _chain(self, model: BayesianModel) -> list[DenseVariational]:
        # The inputs of each operation in this graph: a layer may be in others, too.
        inputs = {
            id(node.operation): node.input_tensors
            for nodes in nodes_by_depth(model)
            for node in nodes
        }
        remaining = {id(layer): layer for layer in model.variational_layers}
        if not remaining:
            raise self._refusal("no layer with a posterior")
        tensor, chain = model.outputs[0], []
        while remaining:
            layer = producer(tensor)
            if not isinstance(layer, DenseVariational) or id(layer) not in remaining:
                raise self._refusal(
                    f"'{layer.name}' of type {type(layer).__name__}, called after or "
                    "between layers with a posterior"
                )
            del remaining[id(layer)]
            chain.append(layer)
            if calls_per_pass(model, layer) != 1:
                raise self._refusal(f"'{layer.name}', which is called more than once")
            (tensor,) = inputs[id(layer)]
        # The structure of the inputs, which may be named.
        self._features = keras.Model(model.input, tensor)
        if len(tensor.shape) != 2:
            raise self._refusal(f"features of shape {tuple(tensor.shape)}")
        return chain[::-1]

    def _refusal(self, received: str) -> ValueError:
        return ValueError(
            f"{self._method} needs a network of {self._needed}; use `fit` or another "
            f"method of `tfbbb.inference` for other networks. Received: {received}"
        )

    def rows(self, batches: Batches) -> tuple[np.ndarray, np.ndarray]:
        """Returns features [N, features], float64, and the targets of the same rows.

        Both come from one pass, since a dataset may shuffle its rows in each.
        """
        features, targets = [], []
        for inputs, batch_targets, weights in batches:
            if not np.all(weights.numpy() == 1.0):
                raise ValueError(
                    f"{self._method} takes each row once; repeat rows that count more "
                    "than once, and leave `sample_weight` out. "
                    f"Received: weights up to {weights.numpy().max()}"
                )
            found = self._features(inputs, training=False)
            features.append(np.asarray(found, np.float64))
            targets.append(batch_targets.numpy())
        together = np.concatenate(features)
        finite = np.isfinite(together).all(axis=1)
        if not finite.all():
            row = int(np.argmin(finite))
            raise ValueError(
                "Every feature must be finite; fill or drop the others. "
                f"Received: {together[row].tolist()} in row {row}"
            )
        return together, np.concatenate(targets)


def set_normals(
    layer: DenseVariational, mean: np.ndarray, variance: np.ndarray
) -> None:
    """Sets the factorised normal posteriors of a dense layer.

    Means and variances are [inputs (+ 1), units]: a last row is that of the bias.
    """
    rows = layer.kernel.shape[0]
    places = slice(0, rows), slice(rows, None)
    for weight, place in zip(layer.variational_weights, places, strict=False):
        shape = weight.shape
        weight.variables["mean"].assign(mean[place].reshape(shape))
        log_scale = 0.5 * np.log(variance[place])
        weight.variables["log_scale"].assign(log_scale.reshape(shape))
