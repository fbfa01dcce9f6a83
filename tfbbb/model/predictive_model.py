"""The base class of Keras models that predict distributions."""

import json
import os
import warnings
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import keras
import numpy as np

from tfbbb.base.clones import Clonable, arguments_in_config, mark_outputs
from tfbbb.base.layer_state import copy_state
from tfbbb.base.private_apis import is_h5_of_whole_models, sublayers
from tfbbb.base.types import ArrayLike, Options, Structure
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.layers import VariationalLayer
from tfbbb.layers.variational import not_rematerialized
from tfbbb.model.inference_result import InferenceResult
from tfbbb.model.layer_posterior import variational_layers, variational_weights
from tfbbb.prediction import Predictive, PredictiveOptions, predictive
from tfbbb.prediction import recalibration as recalibrations
from tfbbb.prediction.extrapolation import Extrapolation
from tfbbb.prediction.familiarity import Familiarity
from tfbbb.prediction.recalibration import Recalibration

if TYPE_CHECKING:
    from tfbbb.model.conversion_table import Conversion

_NO_H5 = (
    "Keras' former format `.h5` lacks the likelihood of a model, with its shift and "
    "scale of the targets. Use `.keras` for models, and `.weights.h5` for weights."
)
# What a weights file has beside variables, as JSON in bytes.
_FITTED = "fitted"
_FORMATS_OF_KERAS = {"tf_saved_model": "saved_model", "onnx": "onnx"}


class PredictiveModel(keras.Model, metaclass=Clonable):
    """A Keras model with a likelihood: it predicts, is recalibrated and exported.

    The config of a model describes an untrained model: layers, likelihood and number of
    members. What was fitted is saved with the weights, in `.keras` and `.weights.h5`:
    shift and scale of the targets, recalibration, familiarity, extrapolation and
    `InferenceResult`.

    Attributes:
        likelihood: p(y | outputs).
        inference: How the posterior was found; None for a model that is not the result
            of `tfbbb.inference`.
    """

    likelihood: Likelihood
    inference: InferenceResult | None = None
    _familiarity: Familiarity | None = None
    # What `tfbbb.convert` did, if it made the model.
    conversion: "Conversion | None" = None
    _extrapolation: Extrapolation | None = None

    @property
    def variational_layers(self) -> list[VariationalLayer]:
        """The layers whose weights have a posterior, nested ones too."""
        return variational_layers(self)

    @property
    def variational_weights(self) -> list[VariationalWeight]:
        """The weight tensors of these layers, in their order."""
        return variational_weights(self)

    @property
    def recalibration(self) -> Recalibration | None:
        """The recalibration of the predictions, or None.

        A recalibration is valid only for the weights that it was fitted to, so `fit`
        and `set_weights` remove it. Losses and metrics of `fit` and `evaluate` do not
        use it.
        """
        return self._recalibration

    @recalibration.setter
    def recalibration(self, given: Any) -> None:
        if given is not None:
            given = recalibrations.get(given)
            given.check(self.likelihood)
        self._recalibration = given

    @property
    def familiarity(self) -> Familiarity | None:
        """The familiarity of rows that predictions have, or None.

        It compares rows with training rows, whatever the weights, so `fit` keeps it.
        Set another one after training on other rows. It removes an extrapolation that
        was fitted to other rows, with a warning.
        """
        return self._familiarity

    @familiarity.setter
    def familiarity(self, given: Familiarity | None) -> None:
        if not isinstance(given, Familiarity | None):
            raise ValueError(
                "`familiarity` must be a `tfbbb.Familiarity`, as its `fit` returns it, "
                f"or None. Received: {given!r:.100}"
            )
        own = None if given is None else given.of_model(self)
        fitted = self._extrapolation
        self._familiarity, self._extrapolation = own, None
        if fitted is None:
            return
        if own is not None and own.is_of_same_rows(fitted.familiarity):
            self._extrapolation = fitted.of_familiarity(own)
            return
        warnings.warn(
            f"Another familiarity removes {fitted!r}, which was fitted to the rows of "
            "the one before. Predictions of rows beyond the training rows are not "
            "widened any more. Fit a `tfbbb.Extrapolation` to the new one. "
            f"Received: familiarity={own!r}",
            # Three frames of Keras and TensorFlow set attributes.
            stacklevel=5,
        )

    @property
    def extrapolation(self) -> Extrapolation | None:
        """What widens the predictions of rows beyond the training rows, or None."""
        return self._extrapolation

    @extrapolation.setter
    def extrapolation(self, given: Extrapolation | None) -> None:
        if not isinstance(given, Extrapolation | None):
            raise ValueError(
                "`extrapolation` must be a `tfbbb.Extrapolation`, as its `fit` returns "
                f"it, or None. Received: {given!r:.100}"
            )
        if given is None:
            self._extrapolation = None
            return
        own = self._familiarity
        if own is None or not own.is_of_same_rows(given.familiarity):
            raise ValueError(
                "Set `familiarity` first: the extrapolation must be fitted to it. "
                f"Received: {given!r} for familiarity={own!r}"
            )
        if any(len(output.shape) > 2 for output in self.outputs):
            raise ValueError(
                "The extrapolation is of one place in each row. "
                f"Received: model={self.name!r} with outputs {self.outputs}"
            )
        self._extrapolation = given.of_familiarity(own)

    def compare_rows_as(self, model: "PredictiveModel") -> None:
        """Takes the familiarity and extrapolation of a model of the same rows."""
        self.familiarity = model.familiarity
        self.extrapolation = model.extrapolation

    def predictive(
        self,
        x: ArrayLike,
        num_samples: int = 100,
        method: str = "auto",
        seed: int = 0,
        **options: Unpack[PredictiveOptions],
    ) -> Predictive:
        """Computes the posterior predictive distribution p(y | x, data)."""
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

    def rematerialized_call(self, layer_call: Any, *args: Any, **kwargs: Any) -> Any:
        """Raises ValueError if a `keras.RematScope` would compute the model again."""
        call = super().rematerialized_call(layer_call, *args, **kwargs)
        return not_rematerialized(self, layer_call, call)

    def quantize(self, *args: Any, filters: Any = None, **kwargs: Any) -> None:
        """Quantizes the layers that `filters` chooses, as `keras.Model.quantize`."""
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
        """
        from tfbbb.export import write_mlflow, write_onnx, write_saved_model

        writers: dict[str, Callable[..., None]] = {
            "saved_model": write_saved_model,
            "onnx": write_onnx,
            "mlflow": write_mlflow,
        }
        if format not in writers:
            known = ", ".join(f"'{name}'" for name in writers)
            raise ValueError(
                f"`format` must be one of {known}. Received: format={format!r}"
            )
        writers[format](self, path, **options)

    def export(
        self,
        filepath: str | os.PathLike[str],
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: Structure = None,
        **options: Any,
    ) -> None:
        """Exports the posterior predictive, as `export_predictive` does.

        Keras would export the call of the model, which is one random draw.
        """
        if format not in _FORMATS_OF_KERAS:
            raise ValueError(
                "Keras' `export` writes the predictive distribution as "
                f"{', '.join(map(repr, _FORMATS_OF_KERAS))}; `export_predictive` has "
                f"further formats. Received: format={format!r}"
            )
        if input_signature is not None:
            raise ValueError(
                "The predictive distribution takes the inputs of the model. Leave "
                f"`input_signature` out. Received: input_signature={input_signature!r}"
            )
        self.export_predictive(filepath, format=_FORMATS_OF_KERAS[format], **options)

    def set_weights(self, weights: Sequence[ArrayLike]) -> None:
        """Sets the values of all variables, as `keras.Model.set_weights`.

        Discards any recalibration, with a warning: it was fitted to the old weights.
        """
        super().set_weights(weights)
        self._discard_recalibration("New weights discard")

    def _discard_recalibration(self, reason: str, stacklevel: int = 3) -> None:
        if self._recalibration is not None:
            warnings.warn(
                f"{reason} the recalibration {self._recalibration!r}, which "
                "was fitted to the old weights. Predictions are not recalibrated any "
                "more. Call `recalibrate` again.",
                stacklevel=stacklevel,
            )
            self._recalibration = None

    def save_own_variables(self, store: MutableMapping[str, Any]) -> None:
        """Saves the model's own variables, its recalibration and inference."""
        super().save_own_variables(store)
        fitted = {
            "recalibration": self._recalibration,
            "inference": self.inference and self.inference.get_config(),
            "familiarity": self._familiarity,
            "extrapolation": self._extrapolation and self._extrapolation.get_config(),
            "conversion": self.conversion and self.conversion.get_config(),
        }
        text = json.dumps(keras.saving.serialize_keras_object(fitted))
        store[_FITTED] = np.frombuffer(text.encode(), np.uint8)

    def load_own_variables(self, store: Mapping[str, Any]) -> None:
        """Loads what `save_own_variables` saved.

        Older files have the recalibration in the config of the model.
        """
        # Keras' files have keys, but cannot be iterated.
        own = {key: store[key] for key in store.keys()}  # noqa: SIM118
        text = own.pop(_FITTED, None)
        super().load_own_variables(own)
        if text is not None:
            fitted = keras.saving.deserialize_keras_object(
                json.loads(np.asarray(text, np.uint8).tobytes())
            )
            found = fitted["inference"]
            self.recalibration = fitted["recalibration"]
            # Files of older versions lack them.
            self._extrapolation = None
            self.familiarity = fitted.get("familiarity")
            if (
                fitted.get("extrapolation") is not None
                and self._familiarity is not None
            ):
                self._extrapolation = Extrapolation.from_config(
                    fitted["extrapolation"], self._familiarity
                )
            self.inference = found and InferenceResult.from_config(found)
            self.conversion = None
            if (converted := fitted.get("conversion")) is not None:
                from tfbbb.model.conversion_table import Conversion

                self.conversion = Conversion.from_config(converted)

    def load_weights(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """Loads the weights, as `keras.Model.load_weights`."""
        if str(filepath).endswith((".h5", ".hdf5")) and not str(filepath).endswith(
            ".weights.h5"
        ):
            raise ValueError(f"{_NO_H5} Received: filepath={str(filepath)!r}")
        super().load_weights(filepath, *args, **kwargs)

    def save(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """Saves the model as a `.keras` file, as `keras.Model.save`."""
        if str(filepath).endswith((".h5", ".hdf5")):
            raise ValueError(f"{_NO_H5} Received: filepath={str(filepath)!r}")
        super().save(filepath, *args, **kwargs)

    def check_format_of_config(self) -> None:
        """Raises ValueError if Keras handles a config for the former format `.h5`."""
        if is_h5_of_whole_models():
            raise ValueError(f"{_NO_H5} Received: model={self.name!r}")

    def arguments_of_clone(self) -> Options:
        """Returns the arguments that a clone by Keras gets beside its layers."""
        arguments = arguments_in_config(self.get_config())
        # Not built, as the outputs may have another shape.
        likelihood = type(self.likelihood).from_config(self.likelihood.get_config())
        return {**arguments, "likelihood": likelihood}

    def share_state_with(self, clone: Any) -> None:
        """Gives a clone that has the layers of this model the state of the model.

        `clone_model(model, clone_function=lambda layer: layer)` makes such a clone. Any
        other clone has new weights, and nothing fitted.
        """
        own = {id(layer) for layer in sublayers(self)}
        weighted = [layer for layer in clone.layers if layer.weights]
        if not weighted or any(id(layer) not in own for layer in weighted):
            return
        copy_state(self.likelihood, clone.likelihood)
        clone.num_rows = self.num_rows or 0.0
        inputs = keras.layers.InputLayer
        new = [x for x in clone.operations if not isinstance(x, inputs)]
        old = [x for x in self.operations if not isinstance(x, inputs)]
        if [id(x) for x in new] == [id(x) for x in old]:
            clone.recalibration = self.recalibration
            clone.inference = self.inference
            clone.compare_rows_as(self)

    def _run_through_graph(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = super()._run_through_graph(inputs, *args, **kwargs)
        mark_outputs(self, inputs, outputs)
        return outputs
