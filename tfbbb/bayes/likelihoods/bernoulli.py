"""The likelihood of two classes."""

from __future__ import annotations

from tfbbb.base import array_ops as ops
from tfbbb.base.types import Tensor
from tfbbb.bayes.likelihoods.classification import Classification
from tfbbb.bayes.likelihoods.likelihood import register


@register("bernoulli", "One of two classes, from one output.")
class Bernoulli(Classification):
    """Class 0 or 1: `p(y = 1 | f) = sigmoid(f)`; the network gives one logit.

    Targets are 0 and 1, [n] or [n, 1], or one-hot rows, [n, 2]. Mean, variance and
    probabilities are of both classes, [n, 2]; `model.predict` returns the probability
    of class 1, [n, 1]. Several labels of a row are places: the network ends in
    [rows, labels, 1] (`keras.layers.Reshape((labels, 1))`), targets are [rows, labels].

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.Bernoulli()
    >>> likelihood.probabilities([[0.0]]).numpy().tolist()
    [[0.5, 0.5]]
    """

    binary = True
    num_classes = 2

    def num_outputs(self, num_targets: int = 2) -> int:
        """Returns 1, the number of outputs that the network needs for two classes."""
        if num_targets != 2:
            raise ValueError(
                "Bernoulli has two classes; use `Categorical` for more. "
                f"Received: num_targets={num_targets}"
            )
        return 1

    def build(self, output_shape: tuple[int | None, ...]) -> None:
        if output_shape[-1] != 1:
            raise ValueError(
                "Bernoulli needs one output, the logit of class 1. For several labels "
                "of a row let the network end in [rows, labels, 1], with "
                "`keras.layers.Reshape((labels, 1))`; for one of several classes use "
                f"`Categorical`. Received: output_shape={output_shape}"
            )
        super().build(output_shape)

    def parameters(self, outputs: Tensor) -> dict[str, Tensor]:
        logits = self.at_least_float32(outputs)
        return {"logits": logits, "probs": ops.sigmoid(logits)}

    def point_prediction(self, outputs: Tensor) -> Tensor:
        return ops.sigmoid(self.at_least_float32(outputs))

    def log_probabilities(self, outputs: Tensor) -> Tensor:
        logits = self.at_least_float32(outputs)
        return ops.log_sigmoid(ops.concat([-logits, logits], axis=-1))
