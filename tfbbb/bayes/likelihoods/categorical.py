"""The likelihood of classes."""

from __future__ import annotations

from tfbbb.base import array_ops as ops
from tfbbb.base.lazy import tf
from tfbbb.base.types import Tensor
from tfbbb.bayes.likelihoods.classification import Classification
from tfbbb.bayes.likelihoods.likelihood import register


@register("categorical", "One of several classes: the default of a classification.")
class Categorical(Classification):
    """One of C classes: `p(y = c | f) = softmax(f)_c`; the network gives C logits.

    Targets are class indices, [n] or [n, 1], or one-hot rows, [n, C]. The mean of the
    one-hot targets is the class probabilities. `Categorical(ignore_class=255)` leaves
    out targets of a void class.

    Example:

    >>> import tfbbb
    >>> likelihood = tfbbb.likelihoods.Categorical()
    >>> likelihood.mean([[0.0, 0.0]]).numpy().tolist()
    [[0.5, 0.5]]
    """

    def num_outputs(self, num_targets: int) -> int:
        """Returns how many outputs the network needs for `num_targets` classes."""
        return num_targets

    def build(self, output_shape: tuple[int | None, ...]) -> None:
        if output_shape[-1] is None or output_shape[-1] < 2:
            raise ValueError(
                "Categorical needs one output per class, and at least two classes. "
                f"Received: output_shape={output_shape}"
            )
        super().build(output_shape)
        self.num_classes = output_shape[-1]

    def parameters(self, outputs: Tensor) -> dict[str, Tensor]:
        logits = self.at_least_float32(outputs)
        return {"logits": logits, "probs": self.probabilities(outputs)}

    def log_probabilities(self, outputs: Tensor) -> Tensor:
        return ops.log_softmax(self.at_least_float32(outputs))

    def probabilities(self, outputs: Tensor) -> Tensor:
        # For a few rows, TensorFlow's softmax takes eight times as long.
        return ops.exp(self.log_probabilities(outputs))

    def _log_prob(self, targets: Tensor, outputs: Tensor) -> Tensor:
        logits = self.at_least_float32(outputs)
        if not ops.is_tensor(logits):
            return super()._log_prob(targets, logits)
        return -tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
