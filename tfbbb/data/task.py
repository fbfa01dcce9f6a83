"""The tasks of a model: regression and classification."""

from typing import Literal

Task = Literal["regression", "classification"]
