"""The signal that a file must be read again from its beginning."""


class StartOver(Exception):
    """Later rows show that the rows so far were misread.

    A column type may be too narrow, or the encoding or the decimal mark another one.
    """
