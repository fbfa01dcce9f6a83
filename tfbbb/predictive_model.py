"""The base class of Keras models that predict distributions."""

import os
from typing import Any, Unpack

import keras

from tfbbb import recalibration as recalibrations
from tfbbb.layers import VariationalLayer
from tfbbb.likelihoods import Likelihood
from tfbbb.prediction import Predictive, PredictiveOptions, predictive
from tfbbb.private_apis import sublayers
from tfbbb.recalibration import Recalibration
from tfbbb.types import ArrayLike


class PredictiveModel(keras.Model):
    """A Keras model with a likelihood: it predicts, is recalibrated and exported.

    Attributes:
        likelihood: p(y | outputs).
    """

    likelihood: Likelihood

    @property
    def variational_layers(self) -> list[VariationalLayer]:
        """The layers whose weights have a posterior, nested ones too."""
        return [
            layer for layer in sublayers(self) if isinstance(layer, VariationalLayer)
        ]

    @property
    def recalibration(self) -> Recalibration | None:
        """The recalibration of the predictions, or None.

        A recalibration is valid only for the weights that it was fitted to, so `fit`
        removes it. Losses and metrics of `fit` and `evaluate` do not use it.
        """
        return self._recalibration

    @recalibration.setter
    def recalibration(self, given: Any) -> None:
        if given is not None:
            given = recalibrations.get(given)
            given.check(self.likelihood)
        self._recalibration = given

    def predictive(
        self,
        x: ArrayLike,
        num_samples: int = 100,
        method: str = "auto",
        seed: int = 0,
        **options: Unpack[PredictiveOptions],
    ) -> Predictive:
        """Computes the posterior predictive distribution p(y | x, data).

        Args:
            x: Inputs of the rows: an array, or a list or dictionary of arrays.
            num_samples: Number of draws from the posterior, at least two.
            method: `"local"`, `"weight"`, `"linearised"`, `"moments"` or `"auto"`.
            seed: The same seed gives the same answer.
            **options: `max_standard_error`, `deadline_ms` and others: see
                `tfbbb.predictive`.

        Returns:
            A `tfbbb.Predictive`, in raw units.
        """
        return predictive(
            self,
            x,
            likelihood=self.likelihood,
            num_samples=num_samples,
            method=method,
            seed=seed,
            **options,
        )

    def recalibrate(
        self, x: ArrayLike, y: ArrayLike, method: Any = "auto", **options: Any
    ) -> Recalibration:
        """Calibrates the predictions on rows that the model was not trained on.

        See `tfbbb.recalibrate` for the methods and options.
        """
        return recalibrations.recalibrate(self, x, y, method, **options)

    def export_predictive(
        self, path: str | os.PathLike[str], **description: Any
    ) -> None:
        """Writes the posterior predictive as a SavedModel at `path`.

        See `tfbbb.export.write_saved_model` for the signatures, and for the arguments
        that describe the training table.
        """
        from tfbbb.export import write_saved_model

        write_saved_model(self, path, **description)

    def config_of_recalibration(self) -> dict[str, Any]:
        """Returns the part of `get_config` that tells the recalibration, if any."""
        if self._recalibration is None:
            return {}
        return {"recalibration": recalibrations.serialize(self._recalibration)}
