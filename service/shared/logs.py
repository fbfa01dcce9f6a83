"""The lines of the log: text or JSON, each with its time, level and process."""

import logging
import os
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType

import orjson

from tfbbb.base.types import JsonObject

# The logger of requests, whose records have `fields`.
ACCESS = "service.access"
# Of these INFO is shown; of libraries, warnings alone.
_OURS = ("__main__", "service", "tfbbb", "uvicorn")


class _Lines(logging.Formatter):
    """Formats records of one process."""

    def __init__(self, process: str) -> None:
        super().__init__("%(time)s %(levelname)s %(process_name)s: %(message)s")
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        record.time, record.process_name = _time(record), self._process
        return super().format(record)


class _JsonLines(_Lines):
    """Formats records as objects; those of requests have their fields as members."""

    def format(self, record: logging.LogRecord) -> str:
        line: JsonObject = {
            "time": _time(record),
            "level": record.levelname,
            "process": self._process,
        }
        fields = getattr(record, "fields", None)
        line |= {"message": record.getMessage()} if fields is None else fields
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


_FORMATS: Mapping[str, type[_Lines]] = {"text": _Lines, "json": _JsonLines}


def configure_logging(
    process: str, environment: Mapping[str, str] = os.environ
) -> None:
    """Makes a process log as TFBBB_LOG_FORMAT and TFBBB_ACCESS_LOG say.

    Requests are logged on standard output, all else on standard error: also warnings,
    and exceptions that end a thread or the process. Does nothing in a program that has
    configured its logs.
    """
    if logging.getLogger().handlers:
        return
    # Read before the settings, which may warn.
    format = environment.get("TFBBB_LOG_FORMAT", "text")
    of_requests = environment.get("TFBBB_ACCESS_LOG", format)
    logging.basicConfig(level=logging.WARNING, handlers=[_handler(process, format)])
    for name in _OURS:
        logging.getLogger(name).setLevel(logging.INFO)
    access = logging.getLogger(ACCESS)
    access.propagate = False
    if of_requests == "off":
        access.setLevel(logging.CRITICAL)
    else:
        access.addHandler(_handler(process, of_requests, requests=True))
    # The messages of libraries about graphs do not help an operator.
    logging.getLogger("absl").setLevel(logging.ERROR)
    logging.captureWarnings(True)
    sys.excepthook = _log_end_of_process
    threading.excepthook = _log_end_of_thread


def _handler(process: str, format: str, requests: bool = False) -> logging.Handler:
    handler = logging.StreamHandler(sys.stdout if requests else sys.stderr)
    handler.setFormatter(_FORMATS.get(format, _Lines)(process))
    return handler


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _log_end_of_process(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
        return
    logging.critical("the process ends", exc_info=(kind, error, traceback))


def _log_end_of_thread(arguments: threading.ExceptHookArgs) -> None:
    error = arguments.exc_value
    if error is None or isinstance(error, SystemExit):
        return
    name = "unknown" if arguments.thread is None else arguments.thread.name
    logging.error("the thread %s ends", name, exc_info=error)
