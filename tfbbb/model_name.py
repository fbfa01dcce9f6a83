"""The names of models and labels, and the numbers of versions."""

import re

MODEL_NAME = "[A-Za-z0-9][A-Za-z0-9_.-]{0,127}"
# The largest integer of databases and of TensorFlow Serving.
MOST_VERSIONS = 2**63 - 1

_FORM = re.compile(MODEL_NAME)


def is_model_name(text: str) -> bool:
    """Returns whether a model or label may have a name, which is safe in paths."""
    return _FORM.fullmatch(text) is not None
