"""String names of classes."""

import re


def snake_case(name: str) -> str:
    """Returns the string name of a class: `MeanFieldNormal` is `mean_field_normal`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z0-9])|(?<!^)(?=[A-Z][a-z])", "_", name).lower()
