"""The names of uploaded files. They are shown, and never used as paths."""

import re
import unicodedata
from email.message import Message

_LONGEST = 200
_LONGEST_HEADER = 4096


def clean_name(name: str) -> str:
    """Makes a name fit to be shown: one line, without directories, not too long."""
    last = re.split(r"[/\\]", name[-_LONGEST_HEADER:])[-1]
    shown = "".join(c for c in last if unicodedata.category(c)[0] != "C")
    return unicodedata.normalize("NFC", shown.strip())[:_LONGEST] or "table"


def disposition_file_name(header: bytes) -> str | None:
    """The file name of a `Content-Disposition` header, if it holds a readable one."""
    message = Message()
    message["content-disposition"] = header[:_LONGEST_HEADER].decode(errors="replace")
    try:
        return message.get_filename()
    except ValueError:
        return None  # `filename*=undefined''x`: a codec of Python, but not of any text.
