from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from tfbbb.export.inputs import Inputs, listed, to_tensors
from tfbbb.export.manifest import Manifest, ManifestError
from tfbbb.export.versions import newest_version


def load_exported(path: str | Path, verify: bool = True) -> "ExportedModel":
    """Loads what `BayesianModel.export_predictive` wrote, with TensorFlow alone.

    Neither Keras nor TensorFlow Probability is imported, and no code of the model's
    author runs: the SavedModel holds the whole computation.

    Args:
        path: Directory of the SavedModel.
        verify: Whether to compare every file with its sha256 in the manifest first.

    Returns:
        The model, ready to answer.

    Raises:
        ManifestError: If there is no manifest, it is malformed, or (with `verify`)
            a file is not the one that was exported.
    """
    alone = (Path(path) / "saved_model.pb").exists()
    if not alone and (newest := newest_version(path)) is not None:
        raise ManifestError(
            "This is a directory of versions; load one of them, of which "
            f"{str(newest)!r} is the newest. Received: path={str(path)!r}"
        )
    manifest = Manifest.read(path)
    if verify:
        manifest.verify(path)
    return ExportedModel(tf.saved_model.load(str(path)), manifest)


def read_signatures(path: str | Path) -> dict[str, Any]:
    """Reads the names, types and shapes of a SavedModel's inputs and outputs.

    Args:
        path: Directory of the SavedModel.

    Returns:
        TensorFlow's `SignatureDef` of each signature, as JSON values.
    """
    saved_model = SavedModel.FromString((Path(path) / "saved_model.pb").read_bytes())
    return {
        name: MessageToDict(
            signature,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
        )
        for name, signature in saved_model.meta_graphs[0].signature_def.items()
        if not name.startswith("__")
    }


class ExportedModel:
    """A posterior predictive distribution that needs nothing but TensorFlow.

    Every method is a pure function of its arguments, the seed among them, so that
    threads may share one model. Inputs and answers are in the units of the training
    table.

    Args:
        saved_model: What `tf.saved_model.load` returned.
        manifest: The manifest beside it.
    """

    def __init__(self, saved_model: Any, manifest: Manifest) -> None:
        self.manifest = manifest
        # The variables live as long as this object.
        self._saved_model = saved_model
        self._signatures = {
            name: _Signature(function)
            for name, function in saved_model.signatures.items()
        }

    def __repr__(self) -> str:
        manifest = self.manifest
        num_rows = manifest.num_rows
        return (
            f"<ExportedModel target={manifest.target!r}, "
            f"features=[{listed(manifest.features)}], method={manifest.method!r}, "
            f"num_rows={num_rows if num_rows is None else format(num_rows, '.15g')}>"
        )

    def predict(
        self, inputs: Inputs, num_samples: int | None = None, seed: int | None = None
    ) -> dict[str, np.ndarray]:
        """Computes the moments of p(y | x) from S draws of the weights.

        Args:
            inputs: Array of shape `[n, d]`, or mapping from column names to arrays
                of shape `[n]`, or data frame; see `tfbbb.export.inputs.to_tensors`.
            num_samples: S, at least 2; the manifest's by default.
            seed: Seed of the draws; the manifest's by default.

        Returns:
            `mean`, `variance`, `epistemic`, `aleatoric` and `mean_standard_error`,
            each of shape `[n, k]`; for classes `probabilities` and
            `mean_standard_error` of shape `[n, c]`, `entropy` and
            `mutual_information` (both in nats) of shape `[n]`.

        Raises:
            InputError: If the inputs do not fit the model.
            ValueError: If `num_samples` or `seed` is not such a number.
        """
        return self._call("predict", inputs, num_samples, seed)

    def quantiles(
        self,
        inputs: Inputs,
        levels: Sequence[float],
        num_samples: int | None = None,
        seed: int | None = None,
    ) -> np.ndarray:
        """Computes the quantiles of p(y | x) at `levels`.

        Args:
            inputs: As for `predict`.
            levels: Probabilities between 0 and 1, q of them.
            num_samples: As for `predict`.
            seed: As for `predict`.

        Returns:
            Array of shape `[n, q, k]`.

        Raises:
            InputError: If the inputs do not fit the model.
            ValueError: If the model predicts classes, which have no order, or
                another argument is not as described.
        """
        if "quantiles" not in self._signatures:
            raise ValueError(
                "Classes have no order and thus no quantiles; use `predict`. "
                f"Received: levels={levels!r}"
            )
        probabilities = np.asarray(levels, dtype=np.float32)
        inside = (probabilities > 0) & (probabilities < 1)
        if probabilities.ndim != 1 or not probabilities.size or not inside.all():
            raise ValueError(
                "`levels` must be a list of probabilities between 0 and 1. "
                f"Received: levels={levels!r}"
            )
        answer = self._call("quantiles", inputs, num_samples, seed, probabilities)
        return answer["quantiles"]

    def sample(
        self, inputs: Inputs, num_samples: int | None = None, seed: int | None = None
    ) -> np.ndarray:
        """Draws from p(y | x), one value per draw of the weights.

        Args:
            inputs: As for `predict`.
            num_samples: As for `predict`.
            seed: As for `predict`.

        Returns:
            Array of shape `[s, n, k]`; for classes their indices, `[s, n]`.

        Raises:
            InputError: If the inputs do not fit the model.
            ValueError: If `num_samples` or `seed` is not such a number.
        """
        return self._call("sample", inputs, num_samples, seed)["samples"]

    def _call(
        self,
        signature: str,
        inputs: Inputs,
        num_samples: int | None,
        seed: int | None,
        levels: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        if num_samples is None:
            num_samples = self.manifest.default_num_samples
        if seed is None:
            seed = self.manifest.default_seed
        _check_int32("num_samples", num_samples, least=2)
        _check_int32("seed", seed, least=-(2**31))
        tensors: dict[str, Any] = dict(to_tensors(inputs, self.manifest))
        tensors |= {"num_samples": num_samples, "seed": seed, "levels": levels}
        return self._signatures[signature](tensors)


class _Signature:
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


def _check_int32(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"`{name}` must be an integer. Received: {name}={value!r}")
    if not least <= value < 2**31:
        raise ValueError(
            f"`{name}` must be at least {least} and below 2**31. "
            f"Received: {name}={value!r}"
        )
