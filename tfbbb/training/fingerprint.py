"""What the result of a training depends on, in one digest."""

import hashlib
import json
from typing import Any

import keras
import numpy as np

from tfbbb import kl_schedules
from tfbbb.model import BayesianModel
from tfbbb.training.training_state import named_variables


def training_fingerprint(model: BayesianModel, held_out: Any, **others: Any) -> str:
    """Returns a digest that differs where the result of a training would.

    Args:
        model: A compiled model. Its layers' options are not looked at, only the shapes
            of their variables: what makes them belongs into `others`.
        held_out: Inputs and targets of the held-out rows, or None.
        **others: What else there is, as plain JSON values.
    """
    optimizer = keras.optimizers.serialize(model.optimizer)
    # Keras numbers the optimizers of a process.
    optimizer["config"].pop("name")
    description = {
        "variables": [
            (name, variable.dtype, tuple(variable.shape))
            for name, variable in named_variables(model).items()
        ],
        "optimizer": optimizer,
        "kl_schedule": kl_schedules.serialize(model.kl_schedule),
        "held_out": _digests(held_out),
        **others,
    }
    text = json.dumps(description, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _digests(arrays: Any) -> list[str]:
    return [
        hashlib.sha256(
            "\0".join(array).encode() if array.dtype == object else array.tobytes()
        ).hexdigest()
        for array in map(np.asarray, keras.tree.flatten(arrays))
        if arrays is not None
    ]
