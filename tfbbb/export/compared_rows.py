"""Comparison of rows with the training rows, in the graphs of an export."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from tfbbb.base.types import Structure, Tensor
from tfbbb.prediction.compiled import traced
from tfbbb.prediction.likelihood_model import LikelihoodModel

# Takes feature tensors and returns what the sampler takes, and the familiarity of rows.
Compare = Callable[[Sequence[Tensor]], tuple[list[Tensor], tf.Tensor | None]]


class ComparedRows:
    """What an export computes of rows before it draws, with variables to save.

    The deviations of an extrapolation follow the feature tensors as one more tensor.

    Args:
        model: The model.
        pack: Arranges feature tensors, in order, as the model's inputs.
    """

    def __init__(
        self, model: LikelihoodModel, pack: Callable[[Sequence[Tensor]], Structure]
    ) -> None:
        self._pack_features = pack
        self.familiarity = model.familiarity and model.familiarity.in_variables()
        self._extrapolation = None
        self.num_beyond = 0
        if self.familiarity is not None and model.extrapolation is not None:
            self._extrapolation = model.extrapolation.in_variables(self.familiarity)
            self.num_beyond = len(self._extrapolation.amplitudes)

    @property
    def specs(self) -> list[tf.TensorSpec]:
        """The spec of the tensor that follows the features, if any."""
        return [tf.TensorSpec([None, self.num_beyond])] if self.num_beyond else []

    def pack(self, tensors: Sequence[Tensor]) -> Structure:
        """Returns features, and what follows them, as the inputs of a program."""
        if not self.num_beyond:
            return self._pack_features(tensors)
        *features, deviations = tensors
        return [self._pack_features(features), deviations]

    def comparing(self, specs: Sequence[tf.TensorSpec]) -> Compare:
        """Returns a function that compares feature tensors, traced once.

        It returns the features with what follows them, and the familiarity of the rows,
        [n], or None. The signatures that call it hold no copies of its graph.
        """
        compared = self._extrapolation or self.familiarity
        if compared is None:
            return lambda features: (list(features), None)
        in_parts = traced(lambda x: compared.in_parts(self._pack_features(x)), specs)

        def compare(features: Sequence[Tensor]) -> tuple[list[Tensor], tf.Tensor]:
            found = in_parts(list(features))
            if self._extrapolation is None:
                return list(features), found
            familiarity, deviations = found
            return [*features, deviations], familiarity

        return compare

    def trace(self, features: list[tf.TensorSpec]) -> tf.Module:
        """Returns a module with functions of feature tensors.

        `of_rows` returns the familiarity, [n], or with an extrapolation a list of this
        and the deviations, [n, k]; `differences` what makes rows unlike.
        """
        familiarity, extrapolation = self.familiarity, self._extrapolation
        assert familiarity is not None
        of_rows = familiarity if extrapolation is None else extrapolation.compare
        module = tf.Module()
        module.read = familiarity.variables
        module.of_rows = traced(lambda x: of_rows(self._pack_features(x)), features)
        module.differences = traced(
            lambda x: familiarity.differences(self._pack_features(x)), features
        )
        return module
