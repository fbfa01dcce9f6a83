"""The metadata of models, as the Open Inference Protocol has them."""

import json
from collections.abc import Iterable

from service.api.open_inference.schemas import ModelMetadata, TensorMetadata
from service.shared.json_types import JsonObject
from service.shared.model_messages import Metadata
from service.shared.open_inference import Datatype

# The datatypes of features, and of TensorFlow's outputs.
_OF_KIND: dict[str, Datatype] = {
    "numeric": "FP32",
    "categorical": "BYTES",
    "date": "INT64",
}
_OF_DTYPE: dict[str, Datatype] = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "float64": "FP64",
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
    """Describes the inputs of a version, and the outputs that every answer has."""
    manifest = metadata.metadata["manifest"]
    classes = manifest["classes"]
    outputs = _outputs(metadata.metadata["signature_def"]["signature_def"]["predict"])
    outputs += [
        output.model_copy(update={"name": "std"})
        for output in outputs
        if output.name == "variance"
    ]
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


def _inputs(manifest: JsonObject) -> list[TensorMetadata]:
    features = manifest["features"]
    if manifest["inputs"] == "matrix":
        shape = [-1, *(manifest.get("row_shape") or [len(features)])]
        datatype = _datatype(features[0])
        return [TensorMetadata(name="inputs", datatype=datatype, shape=shape)]
    return [
        TensorMetadata(name=feature["name"], datatype=_datatype(feature), shape=[-1])
        for feature in features
    ]


def _datatype(feature: JsonObject) -> Datatype:
    dtype = feature.get("dtype")
    return _OF_DTYPE[dtype] if dtype else _OF_KIND[feature["kind"]]


def _outputs(signature: JsonObject) -> list[TensorMetadata]:
    return [
        TensorMetadata(
            name=name,
            datatype=_OF_TENSORFLOW[output["dtype"]],
            shape=[int(axis["size"]) for axis in output["tensor_shape"]["dim"]],
        )
        for name, output in sorted(signature["outputs"].items())
    ]
