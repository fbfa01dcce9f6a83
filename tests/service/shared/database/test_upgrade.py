import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import select

from service.shared.database import Base, Database, DatabaseVersionError, upgrade
from service.shared.database.tables import Key
from service.shared.database.upgrade import _exclusive_lock, revision


def test_migrations_make_the_tables_that_the_code_declares(
    database_url: str,
) -> None:
    database = Database(database_url)
    upgrade(database)
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Base.metadata) == []
    database.close()


def test_processes_that_start_at_once_upgrade_once(database_url: str) -> None:
    problems = []

    def start() -> None:
        database = Database(database_url)
        try:
            upgrade(database)
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


def test_database_of_another_version_is_refused(database_url: str) -> None:
    database = Database(database_url)
    upgrade(database)
    with database.engine.begin() as connection:
        connection.exec_driver_sql("update alembic_version set version_num='0012'")
    with pytest.raises(
        DatabaseVersionError,
        match=r"name a new data directory .*Received: revision 0012",
    ):
        upgrade(database)
    assert revision(database) == "0012"
    # The next process does not wait for one that was refused.
    with _exclusive_lock(Database(database_url)):
        database.close()


def test_what_a_writer_has_read_stays_true_until_it_commits(tmp_path: Path) -> None:
    path = tmp_path / "tfbbb.sqlite3"
    database = Database(f"sqlite:///{path}")
    upgrade(database)
    with database.writing() as session:
        session.scalars(select(Key)).all()
        with (
            closing(sqlite3.connect(path, timeout=0.05)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("BEGIN IMMEDIATE")
    database.close()


def test_other_databases_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"must be `sqlite.*Received: mysql://a:\*\*\*@b/c"
    ):
        Database("mysql://a:b@b/c")


def test_name_of_a_database_has_no_password() -> None:
    database = Database("postgresql://a:secret@b/c")
    assert database.name == "postgresql://a:***@b/c"
