"""A digest of everything on which the result of a training depends."""

import hashlib
import json
from typing import Any

import keras
import numpy as np

from tfbbb.bayes import kl_schedules
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.training.training_state import named_variables


def training_fingerprint(model: BayesianModel, held_out: Any, **others: Any) -> str:
    """Returns a digest that differs if the result of a training would differ.

    Args:
        model: A compiled model. The digest covers the shapes of its variables, but not
            the options of its layers: pass their spec in `others`.
        held_out: Inputs and targets of the held-out rows, or None.
        **others: Further dependencies, as plain JSON values.
    """
    optimizer = keras.optimizers.serialize(model.optimizer)
    # Keras adds a number to the name, which depends on the process.
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
