"""The metadata of models, as the Open Inference Protocol has them."""

import json
from collections.abc import Iterable
from typing import Any

from service.api.open_inference.schemas import Datatype, ModelMetadata, TensorMetadata
from service.shared.model_messages import Metadata

# The datatypes of features, and of TensorFlow's outputs.
_OF_KIND: dict[str, Datatype] = {
    "numeric": "FP32",
    "categorical": "BYTES",
    "date": "INT64",
}
_OF_TENSORFLOW: dict[str, Datatype] = {
    "DT_FLOAT": "FP32",
    "DT_DOUBLE": "FP64",
    "DT_INT32": "INT32",
    "DT_INT64": "INT64",
    "DT_BOOL": "BOOL",
    "DT_STRING": "BYTES",
}


def model_metadata(metadata: Metadata, versions: Iterable[str]) -> ModelMetadata:
    """Describes the inputs of a version, and the outputs that every answer has.

    Args:
        metadata: Signatures and manifest of the version.
        versions: The versions of the model.
    """
    manifest = metadata.metadata["manifest"]
    classes = manifest["classes"]
    outputs = _outputs(metadata.metadata["signature_def"]["signature_def"]["predict"])
    if classes is not None:
        outputs.append(TensorMetadata(name="class", datatype="BYTES", shape=[-1]))
    return ModelMetadata(
        name=metadata.model_spec.name,
        versions=list(versions),
        platform="tensorflow_savedmodel",
        inputs=_inputs(manifest),
        outputs=outputs,
        parameters={} if classes is None else {"classes": json.dumps(classes)},
    )


def _inputs(manifest: dict[str, Any]) -> list[TensorMetadata]:
    features = manifest["features"]
    if manifest["inputs"] == "matrix":
        shape = [-1, len(features)]
        return [TensorMetadata(name="inputs", datatype="FP32", shape=shape)]
    return [
        TensorMetadata(
            name=feature["name"], datatype=_OF_KIND[feature["kind"]], shape=[-1]
        )
        for feature in features
    ]


def _outputs(signature: dict[str, Any]) -> list[TensorMetadata]:
    return [
        TensorMetadata(
            name=name,
            datatype=_OF_TENSORFLOW[output["dtype"]],
            shape=[int(axis["size"]) for axis in output["tensor_shape"]["dim"]],
        )
        for name, output in sorted(signature["outputs"].items())
    ]
