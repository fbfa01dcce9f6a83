"""How little and how much of a table a model can learn from."""

MIN_ROWS = 10
MAX_CATEGORIES = 1000
