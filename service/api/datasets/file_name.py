"""The names of uploaded files, which are displayed and never used as paths."""

import re
import unicodedata
from email.message import Message

_LONGEST = 200
_LONGEST_HEADER = 4096


def clean_name(name: str) -> str:
    """Shortens a name to one printable line without directories."""
    last = re.split(r"[/\\]", name[-_LONGEST_HEADER:])[-1]
    shown = "".join(c for c in last if unicodedata.category(c)[0] != "C")
    return unicodedata.normalize("NFC", shown.strip())[:_LONGEST] or "table"


def disposition_file_name(header: bytes) -> str | None:
    """Returns the file name of a `Content-Disposition` header, or None."""
    message = Message()
    message["content-disposition"] = header[:_LONGEST_HEADER].decode(errors="replace")
    try:
        return message.get_filename()
    except ValueError:
        return None  # `filename*=undefined''x`: not a codec of text.
