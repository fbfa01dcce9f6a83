"""Models without TensorFlow: numbers by NumPy, from a file of JSON.

The file is beside the manifest. Its answers are those of `tests/exported_models.py`:
f(x, w) = 2 * sum(x) + 0.1 * w with w ~ N(0, 1) shared by all rows, and y ~ N(f, 0.2^2).
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.exported_manifests import (
    CLASSES,
    COLUMN_FEATURES,
    HALF_PLUS_THREE_FEATURES,
    MATRIX_FEATURES,
    write_manifest,
)
from tfbbb.base.numbers import int32
from tfbbb.export import reader
from tfbbb.export.inputs import Inputs, Tensors, to_tensors
from tfbbb.export.manifest import Feature, Manifest

Array = npt.NDArray[Any]
Outputs = dict[str, Array]

# In the place of the graph, whose name TensorFlow gives.
_FILE = "saved_model.pb"
_MISSING = 100.0
_ALEATORIC = 0.2


@dataclass(frozen=True)
class Behaviour:
    """What a stand-in model does.

    Args:
        scale: The factor of a row's sum.
        bias: What is added to it.
        seconds: How long each prediction takes.
        fault: `"load"` if the model cannot be loaded, and `"predict"` if its
            predictions raise an error.
    """

    scale: float = 2.0
    bias: float = 0.0
    seconds: float = 0.0
    fault: str = ""


def write_regression(
    directory: Path, features: Sequence[Feature] = MATRIX_FEATURES, **behaviour: Any
) -> Path:
    """Reads a matrix `[n, 3]`, or what other features name."""
    return _write(directory, features, None, Behaviour(**behaviour))


def write_half_plus_three(directory: Path) -> Path:
    """Reads a matrix `[n, 1]`; the mean is x / 2 + 3."""
    behaviour = Behaviour(scale=0.5, bias=3.0)
    return _write(directory, HALF_PLUS_THREE_FEATURES, None, behaviour)


def write_columns(directory: Path) -> Path:
    """Reads four columns; a missing number counts 100, a text its length."""
    return _write(directory, COLUMN_FEATURES, None, Behaviour())


def write_classification(directory: Path) -> Path:
    """Reads a matrix `[n, 3]`, the logits of three classes."""
    return _write(directory, MATRIX_FEATURES, CLASSES, Behaviour())


def _write(
    directory: Path,
    features: Sequence[Feature],
    classes: tuple[str, ...] | None,
    behaviour: Behaviour,
) -> Path:
    directory.mkdir(parents=True)
    (directory / _FILE).write_text(json.dumps(asdict(behaviour)))
    write_manifest(directory, features, classes)
    return directory


class StandInModel:
    """Answers as `tfbbb.export.exported_model.ExportedModel` does, by one method."""

    def __init__(self, behaviour: Behaviour, manifest: Manifest) -> None:
        self.manifest = manifest
        self._behaviour = behaviour

    def predict(
        self,
        inputs: Inputs,
        num_samples: int | None = None,
        seed: int | None = None,
        method: str | None = None,
    ) -> Outputs:
        if method not in (None, "auto", self.manifest.method):
            self.predictive(inputs)
        time.sleep(self._behaviour.seconds)
        # It is loaded, and no longer warmed up.
        if self._behaviour.fault == "predict" and num_samples is not None:
            raise RuntimeError("the stand-in fails, as it was told to")
        drawn = self._drawn(inputs, num_samples, seed)
        root = np.sqrt(np.float32(len(drawn)))
        if self.manifest.classes is None:
            epistemic = drawn.var(axis=0)
            aleatoric = np.full_like(epistemic, _ALEATORIC**2)
            return {
                "mean": drawn.mean(axis=0),
                "variance": epistemic + aleatoric,
                "epistemic": epistemic,
                "aleatoric": aleatoric,
                "mean_standard_error": drawn.std(axis=0) / root,
            }
        probabilities = drawn.mean(axis=0)
        entropy = _entropy(probabilities)
        return {
            "probabilities": probabilities,
            "entropy": entropy,
            "mutual_information": entropy - _entropy(drawn).mean(axis=0),
            "mean_standard_error": drawn.std(axis=0) / root,
        }

    def ask(
        self,
        question: str,
        inputs: Inputs,
        levels: Sequence[float] | None = None,
        num_samples: int | None = None,
        seed: int | None = None,
        targets: Any = None,
        method: str | None = None,
    ) -> Array:
        if question == "prediction_sets":
            found = self.predict(inputs, num_samples, seed)["probabilities"]
            before = _more_probable(found.astype(np.float64))[:, np.newaxis]
            return (before < np.array(levels)[:, np.newaxis] - 1e-6) | (before <= 0.0)
        if question == "intervals":
            tails = 0.5 - 0.5 * np.array(levels)
            both = [*tails, *(1.0 - tails)]
            found = self.ask("quantiles", inputs, both, num_samples, seed)
            return np.stack(np.split(found, 2, axis=1), axis=1)
        samples = self._sampled(inputs, num_samples, seed)
        if question == "sample":
            return samples
        ordered = np.sort(samples, axis=0)
        ranks = np.round(np.float32(levels or ()) * (len(ordered) - 1)).astype(int)
        return np.ascontiguousarray(ordered[ranks].transpose(1, 0, 2))

    def predictive(self, *args: Any, **kwargs: Any) -> None:
        raise ValueError("The stand-in has no densities and no other method.")

    def _drawn(
        self, inputs: Inputs, num_samples: int | None, seed: int | None
    ) -> Array:
        """Returns the means [s, n, 1] of draws; of classes probabilities [s, n, c]."""
        tensors = to_tensors(inputs, self.manifest)
        noise = 0.1 * self._noise(num_samples, seed, 0)
        if self.manifest.classes is not None:
            logits = tensors["inputs"] + noise * np.float32([1.0, -1.0, 0.0])
            odds = np.exp(logits - logits.max(axis=2, keepdims=True))
            return odds / odds.sum(axis=2, keepdims=True)
        total = self._behaviour.scale * _summed(tensors) + self._behaviour.bias
        return total.astype(np.float32)[:, np.newaxis] + noise

    def _sampled(
        self, inputs: Inputs, num_samples: int | None, seed: int | None
    ) -> Array:
        """Returns draws of the targets [s, n, 1]; of classes their indices [s, n]."""
        drawn = self._drawn(inputs, num_samples, seed)
        if self.manifest.classes is None:
            shape = drawn.shape[1:]
            return drawn + _ALEATORIC * self._noise(num_samples, seed, 1, *shape)
        gumbel = -np.log(-np.log(_generator(seed, 1).random(drawn.shape)))
        return np.argmax(np.log(drawn) + gumbel, axis=2).astype(np.int32)

    def _noise(
        self, num_samples: int | None, seed: int | None, stream: int, *shape: int
    ) -> Array:
        if num_samples is None:
            num_samples = self.manifest.default_num_samples
        size = int32("num_samples", num_samples, least=2), *(shape or (1, 1))
        return _generator(seed, stream).standard_normal(size, np.float32)


def _generator(seed: int | None, stream: int) -> np.random.Generator:
    return np.random.default_rng([int32("seed", seed or 0) % 2**32, stream])


def _summed(tensors: Tensors) -> Array:
    if (matrix := tensors.get("inputs")) is not None:
        return matrix.sum(axis=1)
    total, factor = np.float32(0.0), 1
    for values in tensors.values():
        if values.dtype.kind == "f":
            total = total + np.where(np.isnan(values), _MISSING, values)
        else:
            lengths = [len(str(text).encode()) for text in values]
            total, factor = total + factor * np.float32(lengths), 10 * factor
    return np.asarray(total)


def _entropy(probabilities: Array) -> Array:
    logs = np.log(np.maximum(probabilities, np.finfo(np.float32).tiny))
    return -(probabilities * logs).sum(axis=-1)


def _more_probable(probabilities: Array) -> Array:
    """Returns the probability of the classes before each, the most probable first."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    ordered = np.take_along_axis(probabilities, order, axis=1)
    before = np.cumsum(ordered, axis=1) - ordered
    return np.take_along_axis(before, np.argsort(order, axis=1), axis=1)


def load(path: Path, engine: str = "tensorflow") -> StandInModel:
    """Loads what a function of this module has written."""
    manifest = Manifest.read(path)
    manifest.verify(path)
    behaviour = Behaviour(**json.loads((path / _FILE).read_text()))
    if behaviour.fault == "load":
        raise RuntimeError("the stand-in cannot be loaded, as it was told to")
    return StandInModel(behaviour, manifest)


def read_signatures(path: Path) -> dict[str, Any]:
    """Describes the signatures as a SavedModel does."""
    manifest = Manifest.read(path)
    kinds = {feature.tensor: feature.kind for feature in manifest.features}
    matrix = manifest.inputs == "matrix"
    inputs = {
        name: _tensor(
            "DT_FLOAT" if kind == "numeric" else "DT_STRING",
            *((-1, len(manifest.features)) if matrix else (-1,)),
        )
        for name, kind in kinds.items()
    }
    draws = {name: _tensor("DT_INT32") for name in ("num_samples", "seed")}
    if manifest.classes is None:
        moments = ("mean", "variance", "epistemic", "aleatoric")
        means = (-1, 1)
    else:
        moments = ("probabilities",)
        means = (-1, len(manifest.classes))
    answers = {name: _tensor("DT_FLOAT", *means) for name in moments}
    if manifest.classes is not None:
        answers |= {
            name: _tensor("DT_FLOAT", -1) for name in ("entropy", "mutual_information")
        }
    error = {"mean_standard_error": _tensor("DT_FLOAT", *means)}
    outputs = {"outputs": _tensor("DT_FLOAT", -1, -1, means[1])}
    return {
        "serving_default": _signature(inputs, answers),
        "predict": _signature(inputs | draws, answers | error),
        "draws": _signature(inputs | draws, outputs),
    }


def _tensor(dtype: str, *sizes: int) -> dict[str, Any]:
    dim = [{"size": str(size), "name": ""} for size in sizes]
    shape = {"dim": dim, "unknown_rank": False}
    return {"name": "tensor:0", "dtype": dtype, "tensor_shape": shape}


def _signature(inputs: Any, outputs: Any) -> dict[str, Any]:
    return {
        "inputs": inputs,
        "outputs": outputs,
        "method_name": "tensorflow/serving/predict",
        "defaults": {},
    }


def install() -> None:
    """Makes this process load the files of this module too, beside SavedModels."""
    real_load, real_signatures = reader.load, reader.read_signatures

    def load_either(path: Path, **options: Any) -> Any:
        return load(path) if _is_stand_in(path) else real_load(path, **options)

    def read_either(path: Path) -> Any:
        return read_signatures(path) if _is_stand_in(path) else real_signatures(path)

    vars(reader).update(load=load_either, read_signatures=read_either)


def _is_stand_in(path: Path) -> bool:
    file = Path(path, _FILE)
    return file.is_file() and file.read_bytes().startswith(b"{")
