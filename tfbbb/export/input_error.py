class InputError(ValueError):
    """Inputs do not fit the model; the message names the row, counted from 1."""
