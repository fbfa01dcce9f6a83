"""Comparison of rows with the training rows, in the graphs of an export."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import tensorflow as tf

from tfbbb.base.types import Structure, Tensor
from tfbbb.prediction.compiled import traced
from tfbbb.prediction.familiarity import Extrapolation, Familiarity
from tfbbb.prediction.likelihood_model import LikelihoodModel

Pack = Callable[[Sequence[Tensor]], Structure]
# Takes feature tensors and returns what the sampler takes, and the familiarity of rows.
Compare = Callable[[Sequence[Tensor]], tuple[list[Tensor], tf.Tensor | None]]


@dataclass(frozen=True)
class ComparedRows:
    """What an export computes of rows before it draws.

    The deviations of an extrapolation follow the feature tensors as one more tensor.

    Attributes:
        pack_features: Arranges feature tensors, in order, as the model's inputs.
        familiarity: The familiarity of rows, or None.
        extrapolation: The further variance of rows, or None.
    """

    pack_features: Pack
    familiarity: Familiarity | None = None
    extrapolation: Extrapolation | None = None

    @classmethod
    def of(cls, model: LikelihoodModel, pack: Pack) -> Self:
        """Returns the comparison by a model, with variables to save."""
        if model.familiarity is None:
            return cls(pack)
        familiarity = model.familiarity.in_variables()
        given = model.extrapolation
        extrapolation = given and given.in_variables(familiarity)
        return cls(pack, familiarity, extrapolation)

    @property
    def num_beyond(self) -> int:
        """Number of deviations of a row."""
        return 0 if self.extrapolation is None else len(self.extrapolation.amplitudes)

    @property
    def specs(self) -> list[tf.TensorSpec]:
        """The spec of the tensor that follows the features, if any."""
        return [tf.TensorSpec([None, self.num_beyond])] if self.num_beyond else []

    def pack(self, tensors: Sequence[Tensor]) -> Structure:
        """Returns features, and what follows them, as the inputs of a program."""
        if not self.num_beyond:
            return self.pack_features(tensors)
        *features, deviations = tensors
        return [self.pack_features(features), deviations]

    def comparing(self, specs: Sequence[tf.TensorSpec]) -> Compare:
        """Returns a function that compares feature tensors, traced once.

        It returns the features with what follows them, and the familiarity of the rows,
        [n], or None. The signatures that call it hold no copies of its graph.
        """
        compared = self.extrapolation or self.familiarity
        if compared is None:
            return lambda features: (list(features), None)
        in_parts = traced(lambda x: compared.in_parts(self.pack_features(x)), specs)

        def compare(features: Sequence[Tensor]) -> tuple[list[Tensor], tf.Tensor]:
            found = in_parts(list(features))
            if self.extrapolation is None:
                return list(features), found
            familiarity, deviations = found
            return [*features, deviations], familiarity

        return compare

    def trace(self, features: list[tf.TensorSpec]) -> tf.Module:
        """Returns a module with functions of feature tensors.

        `of_rows` returns the familiarity, [n], or with an extrapolation a list of this
        and the deviations, [n, k]; `differences` what makes rows unlike.
        """
        familiarity, extrapolation = self.familiarity, self.extrapolation
        assert familiarity is not None
        of_rows = familiarity if extrapolation is None else extrapolation.compare
        module = tf.Module()
        module.read = familiarity.variables
        module.of_rows = traced(lambda x: of_rows(self.pack_features(x)), features)
        module.differences = traced(
            lambda x: familiarity.differences(self.pack_features(x)), features
        )
        return module
