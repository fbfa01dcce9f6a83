import os
import socket
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import sqlalchemy
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError

import service.shared.database
from service.shared.database import Base, Database, upgrade
from service.shared.database.tables import Key, Label, RecordedRow
from service.shared.database.upgrade import (
    NewerDatabaseError,
    _exclusive_lock,
    copy_sqlite,
    revision,
    revisions,
)

MIGRATIONS = Path(service.shared.database.__file__).parent / "migrations"


def a_key() -> Key:
    return Key(
        name="first", prefix="first", secret_sha256="0" * 64, scopes=["admin"],
        created_at=1.0,
    )  # fmt: skip


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
        assert (label.canary, label.canary_weight, label.shadow) == (None, None, None)
        (row,) = session.scalars(select(RecordedRow))
        assert (row.prediction_id, row.values, row.shadow_of) == ("p", [1.5], None)
    with database.writing() as session:
        label = session.get_one(Label, ("wine", "champion"))
        label.canary, label.canary_weight = 9, 0.1
        with pytest.raises(IntegrityError):
            session.flush()  # There is no such version.
        session.rollback()
    database.close()


def test_services_of_an_older_database_leave_no_table(
    database_url: str, tmp_path: Path
) -> None:
    database = Database(database_url)
    migrate(database, "0006")
    with database.engine.begin() as connection:
        connection.exec_driver_sql(
            "insert into replicas (id, work, seen_at) values ('a', '{}', 1.0)"
        )
    upgrade(database, tmp_path / "copies")
    assert not sqlalchemy.inspect(database.engine).has_table("replicas")
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


def test_a_database_is_copied_while_it_is_in_use(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/tfbbb.sqlite3")
    upgrade(database, tmp_path / "copies")
    with database.writing() as session:
        session.add(a_key())
    assert database.path is not None
    copy_sqlite(database.path, tmp_path / "copy.sqlite3")
    copy = Database(f"sqlite:///{tmp_path}/copy.sqlite3")
    with copy.reading() as session:
        assert session.scalars(select(Key.name)).all() == ["first"]
    database.close()
    copy.close()


def test_copy_before_an_upgrade_gets_its_name_when_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The package has a function of that name.
    module = sys.modules["service.shared.database.upgrade"]
    database = Database(f"sqlite:///{tmp_path}/tfbbb.sqlite3")
    copies = tmp_path / "copies"
    upgrade(database, copies)
    monkeypatch.setattr(module, "revisions", lambda: [*revisions(), "later"])
    monkeypatch.setattr(module, "_migrate", lambda database: None)

    def killed(source: Path, destination: Path) -> None:
        destination.write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "copy_sqlite", killed)
        with pytest.raises(KeyboardInterrupt):
            upgrade(database, copies)
    assert list(copies.glob("before-*")) == []
    upgrade(database, copies)
    (copy,) = copies.iterdir()
    assert copy.name.startswith("before-later-")
    database.close()


def test_an_older_program_refuses_a_newer_database(
    database_url: str, tmp_path: Path
) -> None:
    database = Database(database_url)
    upgrade(database, tmp_path / "copies")
    with database.engine.begin() as connection:
        connection.execute(
            sqlalchemy.text("update alembic_version set version_num='from later'")
        )
    with pytest.raises(NewerDatabaseError, match="Received: revision from later"):
        upgrade(database, tmp_path / "copies")
    assert revision(database) == "from later"
    # The next process does not wait for one that was refused.
    with _exclusive_lock(Database(database_url)):
        database.close()


def test_sqlite_flushes_and_writes_ahead(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/tfbbb.sqlite3")
    upgrade(database, tmp_path / "copies")
    with database.engine.connect() as connection:
        for pragma, value in (("journal_mode", "wal"), ("synchronous", 2)):
            assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() == value
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


def test_a_reader_sees_one_state_of_the_database(
    database_url: str, tmp_path: Path
) -> None:
    database = Database(database_url)
    upgrade(database, tmp_path / "copies")
    with database.reading() as reader:
        assert reader.scalars(select(Key)).all() == []
        with database.writing() as writer:
            writer.add(a_key())
        assert reader.scalars(select(Key)).all() == []
    database.close()


def test_a_writer_on_postgresql_waits_for_nobody_for_ever(postgresql: str) -> None:
    database = Database(f"{postgresql}/postgres")
    limits = ("lock_timeout", "idle_in_transaction_session_timeout")
    with database.writing() as session:
        shown = [session.scalar(text(f"show {limit}")) for limit in limits]
        assert shown == ["30s", "1min"]
        driver = session.connection().connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        with socket.socket(fileno=os.dup(driver.fileno())) as connected:
            option = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            assert option == 10_000
    with database.engine.connect() as connection:
        assert connection.scalar(text(f"show {limits[0]}")) == "0"
    database.close()


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/tfbbb.sqlite3")
    upgrade(database, tmp_path / "copies")

    def fail() -> None:
        with database.writing() as session:
            session.add(a_key())
            session.flush()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with database.reading() as session:
        assert session.scalars(select(Key)).all() == []
    database.close()


def test_other_databases_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"must be `sqlite.*Received: mysql://a:\*\*\*@b/c"
    ):
        Database("mysql://a:b@b/c")
