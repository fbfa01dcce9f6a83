import os
import socket
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

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
from tests.service.postgresql import new_database

BEFORE_NEWEST = revisions()[:-1]
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


def tables(database: Database) -> dict[str, Any]:
    """What programs rely on: columns with types and defaults, and constraints."""
    found = sqlalchemy.inspect(database.engine)
    return {
        table: {
            "columns": {
                column["name"]: (
                    str(column["type"]),
                    column["nullable"],
                    column["default"] is not None,
                )
                for column in found.get_columns(table)
            },
            "unique": found.get_unique_constraints(table),
            "primary": found.get_pk_constraint(table),
            "foreign": found.get_foreign_keys(table),
            "checks": found.get_check_constraints(table),
        }
        for table in found.get_table_names()
        if table != "alembic_version"
    }


def missing_for_programs_before(
    before: dict[str, Any], after: dict[str, Any]
) -> list[str]:
    """Returns what a migration takes from programs of the revision before."""
    problems = []
    for table, old in before.items():
        new = after.get(table)
        if new is None:
            problems.append(f"{table} is gone")
            continue
        columns = new["columns"]
        for column, is_now in columns.items():
            _, nullable, default = is_now
            if column not in old["columns"]:
                # Such programs insert rows without it.
                if not (nullable or default):
                    problems.append(f"{table}.{column} needs a value")
            elif is_now != old["columns"][column]:
                problems.append(f"{table}.{column} has changed")
        problems += [
            f"{table}.{gone} is gone" for gone in old["columns"].keys() - columns
        ]
        known = set(old["columns"])
        for kind, of_columns in (
            ("unique", "column_names"),
            ("foreign", "constrained_columns"),
        ):
            # Of new columns that are NULL, a constraint asks nothing.
            problems += [
                f"{table} has a new {kind} constraint"
                for constraint in new[kind]
                if constraint not in old[kind] and known >= set(constraint[of_columns])
            ]
        problems += [
            f"{table} has other constraints"
            for kind in ("primary", "checks")
            if new[kind] != old[kind]
        ]
    return problems


def test_programs_of_the_revision_before_can_go_on_unless_it_says_so(
    postgresql: str,
) -> None:
    database = Database(new_database(postgresql))
    before: dict[str, Any] = {}
    for script in list(ScriptDirectory(str(MIGRATIONS)).walk_revisions())[::-1]:
        migrate(database, script.revision)
        after = tables(database)
        problems = missing_for_programs_before(before, after)
        breaking = getattr(script.module, "breaking", False)
        assert bool(problems) == breaking, (script.revision, problems)
        before = after
    database.close()


def test_constraints_of_programs_before_are_compared() -> None:
    column = ("INTEGER", True, False)
    rest = {"unique": [], "primary": {}, "foreign": [], "checks": []}
    old = {"t": {"columns": {"a": column}, **rest}}

    def problems(**changes: Any) -> list[str]:
        new = {"t": old["t"] | {"columns": {"a": column}} | changes}
        return missing_for_programs_before(old, new)

    assert problems(columns={"a": column, "b": column}) == []
    assert problems(columns={"a": column, "b": ("INTEGER", False, True)}) == []
    needed = ("INTEGER", False, False)
    assert problems(columns={"a": column, "b": needed}) == ["t.b needs a value"]
    assert problems(columns={"a": needed}) == ["t.a has changed"]
    assert problems(columns={}) == ["t.a is gone"]
    assert problems(unique=[{"column_names": ["a"]}]) == [
        "t has a new unique constraint"
    ]
    assert problems(checks=[{"sqltext": "a > 0"}]) == ["t has other constraints"]
    assert missing_for_programs_before(old, {}) == ["t is gone"]


def test_an_older_program_uses_a_later_database_without_breaking_migration(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(database_url)
    upgrade(database, tmp_path / "copies")
    module = sys.modules["service.shared.database.upgrade"]
    monkeypatch.setattr(module, "revisions", lambda: [*BEFORE_NEWEST])
    upgrade(database, tmp_path / "copies")
    assert revision(database) == revisions()[-1]
    # A program that does not know the last breaking migration is refused.
    monkeypatch.setattr(module, "revisions", lambda: ["0001"])
    with pytest.raises(NewerDatabaseError):
        upgrade(database, tmp_path / "copies")
    database.close()


def test_upgrade_waits_briefly_for_locks_and_tries_again(
    postgresql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests of running services would wait behind a migration that waits."""
    module = sys.modules["service.shared.database.upgrade"]
    monkeypatch.setattr(module, "_LOCK_SECONDS", 0.1)
    database = Database(new_database(postgresql))
    migrate(database, "0007")
    other = Database(database.url.render_as_string(hide_password=False))
    with other.engine.connect() as connection:
        # The next migration adds a column to the table.
        connection.exec_driver_sql("lock table feedback in access share mode")
        tried = []

        def sleep(seconds: float) -> None:
            tried.append(seconds)
            if len(tried) == 2:
                connection.rollback()

        monkeypatch.setattr(module.time, "sleep", sleep)
        upgrade(database, tmp_path / "copies")
    assert len(tried) == 2
    assert revision(database) == revisions()[-1]
    database.close()
    other.close()
