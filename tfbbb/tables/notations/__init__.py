"""Notations: how the cells of a column are written, one kind per file."""

from tfbbb.tables.notations.inference import (
    infer_marks,
    infer_notation,
    notation_from_dict,
)
from tfbbb.tables.notations.notation import Notation, Parsed
from tfbbb.tables.notations.odd_cells import infer_beside_odd_cells

__all__ = [
    "Notation",
    "Parsed",
    "infer_beside_odd_cells",
    "infer_marks",
    "infer_notation",
    "notation_from_dict",
]
