"""Does one task on a file: `python -m service.sandbox NAME`.

A hostile file may exhaust the memory or time of its reader, or crash it: therefore a
process of its own reads it, under limits. The task is JSON on standard input. Each line
on standard output is JSON: `progress`, as often as there is some, and at last `result`
or `error`.
"""

import os
import sys

import orjson
import pyarrow as pa

from service.sandbox.functions import run
from service.sandbox.limits import hide_pandas
from tfbbb.base.types import JsonObject


def main() -> None:
    """Does the task of standard input."""
    hide_pandas()
    # What a library prints must not get among the lines.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def send(line: JsonObject) -> None:
        output.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        output.flush()

    task = sys.stdin.buffer.read()
    try:
        send(run(sys.argv[1], task, lambda progress: send({"progress": progress})))
    except (MemoryError, pa.ArrowMemoryError):
        sys.exit("out of memory")


if __name__ == "__main__":
    main()
    # Readers leave threads behind, for which an ordinary exit may wait for ever.
    os._exit(0)
