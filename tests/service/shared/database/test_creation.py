import hashlib
import sqlite3
import threading
from contextlib import closing

import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError
from sqlalchemy.schema import CreateTable

from service.shared.database import Base, Database, DatabaseVersionError, create_tables
from service.shared.database.creation import VERSION, _exclusive_lock, tables_version
from service.shared.database.tables import Key

EACH_DATABASE = True


def test_other_tables_have_another_version():
    tables = "".join(map(str, map(CreateTable, Base.metadata.sorted_tables)))
    digest = hashlib.sha256(tables.encode()).hexdigest()
    assert (VERSION, digest[:16]) == ("0014", "20c46daeafe23c6b")


def test_processes_that_start_at_once_create_tables_once(database_url):
    problems = []

    def start():
        database = Database(database_url)
        try:
            create_tables(database)
        except Exception as error:
            problems.append(error)
        finally:
            database.close()

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_database_of_another_version_is_refused(database_url):
    database = Database(database_url)
    create_tables(database)
    with database.engine.begin() as connection:
        connection.exec_driver_sql("update alembic_version set version_num='0012'")
    with pytest.raises(
        DatabaseVersionError,
        match=r"name a new data directory .*Received: version 0012",
    ):
        create_tables(database)
    assert tables_version(database) == "0012"
    # The next process does not wait for one that was refused.
    with _exclusive_lock(Database(database_url)):
        database.close()


def test_what_a_writer_has_read_stays_true_until_it_commits(tmp_path):
    path = tmp_path / "tfbbb.sqlite3"
    database = Database(f"sqlite:///{path}")
    create_tables(database)
    with database.writing() as session:
        session.scalars(select(Key)).all()
        with (
            closing(sqlite3.connect(path, timeout=0.05)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("BEGIN IMMEDIATE")
    database.close()


def test_other_databases_are_refused():
    with pytest.raises(
        ValueError, match=r"must be `sqlite.*Received: mysql://a:\*\*\*@b/c"
    ):
        Database("mysql://a:b@b/c")


def test_name_of_a_database_has_no_password():
    database = Database("postgresql://a:secret@b/c")
    assert database.name == "postgresql://a:***@b/c"


def test_a_database_that_is_gone_is_not_created_anew(tmp_path):
    database = Database(f"sqlite:///{tmp_path}/tfbbb.sqlite3")
    with (
        pytest.raises(OperationalError, match="unable to open"),
        database.reading() as session,
    ):
        session.scalars(select(Key)).all()
    assert list(tmp_path.iterdir()) == []


def test_every_commit_is_flushed_to_the_disk(database):
    with database.writing() as session:
        connection = session.connection()
        # 2 is FULL.
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
