"""The names that models and labels may have."""

import re

MODEL_NAME = "[A-Za-z0-9][A-Za-z0-9_.-]{0,127}"
# What databases and TensorFlow Serving hold.
MOST_VERSIONS = 2**63 - 1

_FORM = re.compile(MODEL_NAME)


def is_model_name(text: str) -> bool:
    """Whether a model, or a label, may be called so: it is safe in paths and URLs."""
    return _FORM.fullmatch(text) is not None
