"""The error of a spec that can't be carried out."""


class SpecError(ValueError):
    """A spec asks for what can't be trained, or not on this table.

    The message is one sentence that says what to change.
    """
