"""Notations: how the cells of a column are written, one kind per file."""

from tfbbb.tables.notations.inference import (
    infer_marks,
    infer_notation,
    notation_from_dict,
)
from tfbbb.tables.notations.notation import Notation, Parsed

__all__ = ["Notation", "Parsed", "infer_marks", "infer_notation", "notation_from_dict"]
