"""Counting is atomic, on SQLite and PostgreSQL, also when the process is killed."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from service.api.feedback.repository import count, find
from service.predicting.scores import ScoredRows
from service.shared.database.tables import ModelVersion
from service.shared.errors import UnknownModel
from tests.service.recorded import database_with_versions

EACH_DATABASE = True
NO_MODELS = Path("/nonexistent")


@pytest.fixture
def database(database_url):
    with database_with_versions(database_url, "m", 1, 2) as database:
        yield database


def scored(values, version=1):
    ends = [[0.5]] * len(values)
    return ScoredRows(
        version=version,
        num_rows=len(values),
        scores={"log_likelihood": list(values), "pit": ends},
    )


def rows_of(database, version=1):
    row = find(database, "m", version)
    return 0 if row is None else row.num_rows


def test_feedback_of_many_at_once_is_all_counted(database):

    def give():
        count(database, NO_MODELS, "m", scored([1.0, 2.0]))
        count(database, NO_MODELS, "m", scored([5.0], version=2))

    threads = [threading.Thread(target=give) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (rows_of(database), rows_of(database, 2)) == (16, 8)


def test_deleted_version_takes_no_feedback(database):
    with database.writing() as session:
        version = session.get(ModelVersion, ("m", 1))
        version.deleted_at = 1.0
    with pytest.raises(UnknownModel, match="was deleted"):
        count(database, NO_MODELS, "m", scored([1.0]))


def test_killed_process_has_counted_what_it_acknowledged(database):
    program = """
import sys
from pathlib import Path
from service.api.feedback.repository import count
from service.shared.database import Database
from service.predicting.scores import ScoredRows
database = Database(sys.argv[1])
ends = [[0.5]] * 3
scores = {"log_likelihood": [1.0] * 3, "pit": ends}
rows = ScoredRows(version=1, num_rows=3, scores=scores)
while True:
    count(database, Path("/nonexistent"), "m", rows)
    print(flush=True)
"""
    url = database.url.render_as_string(hide_password=False)
    command = [sys.executable, "-c", program, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        lines = [process.stdout.readline() for _ in range(5)]
        process.kill()
        lines += process.stdout.readlines()
    acknowledged = len(lines)
    row = find(database, "m", 1)
    assert row is not None
    # One request may be counted but not acknowledged.
    assert row.num_rows % 3 == 0
    assert acknowledged <= row.num_rows // 3 <= acknowledged + 1
    assert row.figures["log_likelihood"]["count"] == row.num_rows
