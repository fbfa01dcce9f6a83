import os
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import OperationalError

from service.shared.database import Database, DatabaseFileError, upgrade
from service.shared.database.tables import Key
from service.shared.database.upgrade import copy_sqlite


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a directory" / "tfbbb.sqlite3"


@pytest.fixture
def database(path: Path, tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{path}")
    upgrade(database)
    add_key(database)
    yield database
    database.close()


def add_key(database: Database) -> None:
    with database.writing() as session:
        session.add(
            Key(
                name="a",
                prefix=secrets.token_hex(4),
                secret_sha256="0" * 64,
                scopes=["admin"],
                created_at=1.0,
            )
        )


def count_keys(database: Database) -> int:
    with database.reading() as session:
        return len(session.scalars(select(Key)).all())


def another_database(directory: Path) -> Path:
    path = directory / "another.sqlite3"
    database = Database(f"sqlite:///{path}")
    upgrade(database)
    database.close()
    return path


def delete(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    another_database(path.parent.parent).replace(path)


def overwrite(path: Path) -> None:
    shutil.copyfile(another_database(path.parent.parent), path)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def garble(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 1000)


def delete_the_log(path: Path) -> None:
    path.with_name("tfbbb.sqlite3-wal").unlink()


FAULTS: dict[Callable[[Path], None], str] = {
    delete: "tfbbb.sqlite3 was deleted or moved",
    replace: "tfbbb.sqlite3 was replaced by another file",
    overwrite: "tfbbb.sqlite3 was overwritten with another database",
    empty: "tfbbb.sqlite3 was truncated",
    garble: "tfbbb.sqlite3 is no longer an SQLite database",
    delete_the_log: "tfbbb.sqlite3-wal was deleted or moved",
}


def checkpoint(database: Database) -> None:
    assert database.path is not None
    with closing(sqlite3.connect(database.path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


@pytest.mark.parametrize(("fault", "message"), FAULTS.items())
def test_nothing_is_written_once_the_file_is_another(
    database: Database, path: Path, fault: Callable[[Path], None], message: str
) -> None:
    checkpoint(database)
    database.check()
    fault(path)
    with pytest.raises(DatabaseFileError, match=message):
        database.check()
    with pytest.raises(DatabaseFileError, match="start the service again"):
        add_key(database)
    if fault is delete:
        assert not path.exists(), "an empty file would hide the loss"


def test_a_lost_file_is_still_read_where_it_is_open(
    database: Database, path: Path
) -> None:
    path.unlink()
    assert count_keys(database) == 1
    with database.engine.connect(), pytest.raises(DatabaseFileError):
        # The one that is open is in use: this needs another.
        count_keys(database)


def test_what_sqlite_and_operators_do_is_no_fault(
    database: Database, path: Path, tmp_path: Path
) -> None:
    other = Database(f"sqlite:///{path}")
    for _ in range(3):
        add_key(other)
        checkpoint(database)
        add_key(database)
        copy_sqlite(path, tmp_path / f"{secrets.token_hex(4)}.sqlite3")
        upgrade(other)
        other.close()
    with database.writing() as session:
        session.execute(text("create table wide (x)"))
        session.execute(text("insert into wide values (zeroblob(1000000))"))
    checkpoint(database)
    database.check()
    with database.writing() as session:
        session.execute(text("drop table wide"))
    size = path.stat().st_size
    with closing(sqlite3.connect(path)) as shell:
        shell.execute("VACUUM")
    checkpoint(database)
    assert path.stat().st_size < size
    add_key(database)
    # The last connection removes the log: the next one makes another.
    database.engine.dispose()
    assert not path.with_name("tfbbb.sqlite3-wal").exists()
    add_key(database)


def test_a_damaged_page_is_named_from_then_on(database: Database, path: Path) -> None:
    checkpoint(database)
    database.engine.dispose()
    pages = path.read_bytes()
    path.write_bytes(pages[:4096] + b"\xff" * (len(pages) - 4096))
    for _ in range(2):
        with pytest.raises(DatabaseFileError, match="is damaged"):
            count_keys(database)
    with pytest.raises(DatabaseFileError, match="is damaged"):
        database.check()


def test_a_database_is_made_by_upgrades_alone(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/tfbbb.sqlite3")
    with pytest.raises(OperationalError, match="unable to open"):
        count_keys(database)
    assert list(tmp_path.iterdir()) == []


def test_every_commit_is_flushed_to_the_disk(database: Database) -> None:
    with database.writing() as session:
        connection = session.connection()
        # 2 is FULL.
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
