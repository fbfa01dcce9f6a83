"""Limits of the tables that a model can learn from."""

MIN_ROWS = 10
MAX_CATEGORIES = 1000
