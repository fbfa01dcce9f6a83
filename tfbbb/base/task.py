"""The tasks of a model, and limits of the tables that a model can learn from."""

from typing import Literal

Task = Literal["regression", "classification"]

MIN_ROWS = 10
MAX_CATEGORIES = 1000
