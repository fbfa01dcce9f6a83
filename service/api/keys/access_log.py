"""Keeps keys out of the access log."""

import logging
from urllib.parse import parse_qs


def keep_keys_out_of_the_access_log() -> None:
    """Has the server log no key that came in a URL."""
    logging.getLogger("uvicorn.access").addFilter(_without_key)


def _without_key(record: logging.LogRecord) -> bool:
    """Shortens `/?key=...`; the place of the path is uvicorn's."""
    if isinstance(record.args, tuple) and len(record.args) == 5:
        client, method, path, version, status = record.args
        place, _, query = str(path).partition("?")
        if "key" in parse_qs(query, keep_blank_values=True):
            record.args = (client, method, f"{place}?key=...", version, status)
    return True
