"""The base class of Keras models that predict distributions."""

import os
from collections.abc import Callable
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
            x: Inputs of the rows: an array, a list or dictionary of arrays, or a
                dataset that `fit` takes, which is read once.
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
        self, x: ArrayLike, y: ArrayLike = None, method: Any = "auto", **options: Any
    ) -> Recalibration:
        """Calibrates the predictions on rows that the model was not trained on.

        See `tfbbb.recalibrate` for the methods and options.
        """
        return recalibrations.recalibrate(self, x, y, method, **options)

    def quantize(self, *args: Any, filters: Any = None, **kwargs: Any) -> None:
        """Quantizes the layers that `filters` chooses, as `keras.Model.quantize`.

        Raises:
            ValueError: One of them has weights with a posterior, which have no single
                values. Without `filters`, no layer has been quantized then.
        """
        if filters is None:
            for layer in self.variational_layers:
                layer.quantize(*args, **kwargs)
        super().quantize(*args, filters=filters, **kwargs)

    def export_predictive(
        self,
        path: str | os.PathLike[str],
        *,
        format: str = "saved_model",
        **options: Any,
    ) -> None:
        """Writes the posterior predictive at `path`.

        - `"saved_model"`: a directory for TensorFlow and for the service, see
          `tfbbb.export.write_saved_model`;
        - `"onnx"`: one file for the runtimes of ONNX, see `tfbbb.export.write_onnx`;
        - `"mlflow"`: a directory for `mlflow.pyfunc`, around a SavedModel, see
          `tfbbb.export.write_mlflow`.

        Args:
            path: Where to write; nothing may be there yet.
            format: What to write.
            **options: The names of features, target and classes, and other options of
                these functions.

        Raises:
            ValueError: The format is unknown, or as these functions say.
        """
        from tfbbb import export

        writers: dict[str, Callable[..., None]] = {
            "saved_model": export.write_saved_model,
            "onnx": export.write_onnx,
            "mlflow": export.write_mlflow,
        }
        if format not in writers:
            known = ", ".join(f"'{name}'" for name in writers)
            raise ValueError(
                f"`format` must be one of {known}. Received: format={format!r}"
            )
        writers[format](self, path, **options)

    def config_of_recalibration(self) -> dict[str, Any]:
        """Returns the part of `get_config` that tells the recalibration, if any."""
        if self._recalibration is None:
            return {}
        return {"recalibration": recalibrations.serialize(self._recalibration)}
