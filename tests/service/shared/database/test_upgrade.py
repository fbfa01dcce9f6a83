import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import select

import service.shared.database
from service.shared.database import Base, Database, upgrade
from service.shared.database.tables import Key, Label, RecordedRow
from service.shared.database.upgrade import (
    NewerDatabaseError,
    _exclusive_lock,
    revision,
    revisions,
)

MIGRATIONS = Path(service.shared.database.__file__).parent / "migrations"


def migrate(database: Database, to: str) -> None:
    """Makes the tables of an older revision."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    if database.path is not None:
        database.path.touch()
    with database.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, to)


def test_migrations_make_the_tables_that_the_code_declares(
    database_url: str, tmp_path: Path
) -> None:
    database = Database(database_url)
    upgrade(database, tmp_path / "copies")
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Base.metadata) == []
    database.close()


def test_labels_and_recorded_rows_keep_their_values_in_the_upgrade(
    database_url: str, tmp_path: Path
) -> None:
    database = Database(database_url)
    migrate(database, "0002")
    with database.engine.begin() as connection:
        for statement in (
            "insert into model_versions (name, number, digest, lineage, created_at) "
            "values ('wine', 1, 'd', '{}', 1.0)",
            "insert into labels (name, label, number, moved_at) "
            "values ('wine', 'champion', 1, 2.5)",
            'insert into recorded_rows (prediction_id, "row", name, number, "values", '
            "created_at) values ('p', 1, 'wine', 1, '[1.5]', 3.0)",
        ):
            connection.exec_driver_sql(statement)
    upgrade(database, tmp_path / "copies")
    with database.reading() as session:
        label = session.get_one(Label, ("wine", "champion"))
        assert (label.number, label.moved_at) == (1, 2.5)
        (row,) = session.scalars(select(RecordedRow))
        assert (row.prediction_id, row.values) == ("p", [1.5])
    database.close()


def test_files_of_migrations_are_named_by_their_revisions_in_order() -> None:
    walked = ScriptDirectory(str(MIGRATIONS)).walk_revisions()
    assert revisions() == [script.revision for script in walked][::-1]


def test_processes_that_start_at_once_upgrade_once(
    database_url: str, tmp_path: Path
) -> None:
    problems = []

    def start() -> None:
        database = Database(database_url)
        try:
            upgrade(database, tmp_path / "copies")
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


def test_an_older_program_refuses_a_newer_database(
    database_url: str, tmp_path: Path
) -> None:
    database = Database(database_url)
    upgrade(database, tmp_path / "copies")
    with database.engine.begin() as connection:
        for change in (
            "update alembic_version set version_num='from later'",
            "update installation set oldest_program='from later'",
        ):
            connection.exec_driver_sql(change)
    with pytest.raises(NewerDatabaseError, match="Received: revision from later"):
        upgrade(database, tmp_path / "copies")
    assert revision(database) == "from later"
    # The next process does not wait for one that was refused.
    with _exclusive_lock(Database(database_url)):
        database.close()


def test_what_a_writer_has_read_stays_true_until_it_commits(tmp_path: Path) -> None:
    path = tmp_path / "tfbbb.sqlite3"
    database = Database(f"sqlite:///{path}")
    upgrade(database, tmp_path / "copies")
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


def test_upgrade_says_what_it_does(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "service")
    database = Database(database_url)
    migrate(database, "0007")
    upgrade(database, tmp_path / "copies")
    begin, copied, *_, end = caplog.messages
    assert begin.startswith(
        f"upgrading the database {database.name} from revision 0007: "
        "0008 adapted intervals, 0009 "
    )
    if database.is_sqlite:
        (copy,) = (tmp_path / "copies").iterdir()
        assert copied == f"copied the database to {copy}"
    else:
        assert copied == "made no copy of PostgreSQL, of which `pg_dump` makes one"
    assert end == f"the database has revision {revisions()[-1]}"
    database.close()


def test_name_of_a_database_has_no_password() -> None:
    database = Database("postgresql://a:secret@b/c")
    assert database.name == "postgresql://a:***@b/c"


def test_an_older_program_uses_a_later_database_without_breaking_migration(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(database_url)
    upgrade(database, tmp_path / "copies")
    with database.engine.begin() as connection:
        later = "update alembic_version set version_num='from later'"
        connection.exec_driver_sql(later)
    upgrade(database, tmp_path / "copies")
    assert revision(database) == "from later"
    module = sys.modules["service.shared.database.upgrade"]
    # A program that does not know the last breaking migration is refused.
    monkeypatch.setattr(module, "revisions", lambda: ["0001"])
    with pytest.raises(NewerDatabaseError):
        upgrade(database, tmp_path / "copies")
    database.close()
