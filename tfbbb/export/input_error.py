"""The error of inputs that do not fit an exported model."""


class InputError(ValueError):
    """Inputs do not fit the model; the message names the row, counted from 1."""
