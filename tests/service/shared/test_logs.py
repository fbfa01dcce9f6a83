"""The lines of the log of one process."""

import json
import os
import re
import subprocess
import sys

_PROGRAM = """
import logging, threading, warnings
from service.shared.logs import ACCESS, configure_logging

configure_logging("trainer")
logging.getLogger("service.x").info("first of %d", 2)
logging.getLogger("library").info("not shown")
logging.getLogger("uvicorn.error").info("started")
warnings.warn("beware")
fields = {"time": "then", "path": "/x", "status": 200}
logging.getLogger(ACCESS).info("GET /x 200", extra={"fields": fields})
thread = threading.Thread(target=lambda: 1 / 0, name="worker")
thread.start()
thread.join()
raise RuntimeError("the end")
"""


def run(**environment):
    """Returns the lines of standard output and of standard error."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    return done.stdout.splitlines(), done.stderr.splitlines()


def test_lines_of_json_have_time_level_and_process():
    out, err = run(TFBBB_LOG_FORMAT="json")
    lines = [json.loads(line) for line in err]
    for line in lines:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", line["time"])
        assert line["process"] == "trainer"
    assert [line["level"] for line in lines] == [
        *("INFO", "INFO", "WARNING", "ERROR", "CRITICAL")
    ]
    said = [line["message"] for line in lines]
    assert (said[0], said[1]) == ("first of 2", "started")
    assert "UserWarning: beware" in said[2]
    assert said[3] == "the thread worker ends"
    assert "ZeroDivisionError" in lines[3]["exception"]
    assert lines[4]["exception"].endswith("RuntimeError: the end")
    (request,) = map(json.loads, out)
    fields = {"time": "then", "path": "/x", "status": 200}
    assert request == {"level": "INFO", "process": "trainer", **fields}


def test_lines_of_text_begin_with_time_level_and_process():
    out, err = run()
    begin = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"
    assert re.fullmatch(rf"{begin} INFO trainer: first of 2", err[0])
    assert re.fullmatch(rf"{begin} INFO trainer: GET /x 200", out[0])
    assert err[-1] == "RuntimeError: the end"


def test_requests_have_a_format_of_their_own():
    assert run(TFBBB_ACCESS_LOG="off")[0] == []
    assert run(TFBBB_ACCESS_LOG="json")[0][0].startswith("{")
