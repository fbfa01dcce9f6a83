"""`tfbbb sample`."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from tfbbb.cli.errors import CommandError
from tfbbb.cli.notes import echo_next
from tfbbb.tables.format import WRITTEN_SUFFIX_LIST


def sample(
    table: Annotated[
        Path, typer.Argument(help=f"File to write: {WRITTEN_SUFFIX_LIST}.")
    ],
    rows: Annotated[int, typer.Option(min=1, max=10**6, help="Number of rows.")] = 800,
    seed: Annotated[
        int, typer.Option(min=0, help="Another seed gives other houses.")
    ] = 0,
) -> None:
    """Write a table to try the commands with: made-up sales of houses.

    Area, rooms, age, district, heating, date and price, with some missing values. The
    same seed gives the same table. A file that holds something else is not replaced.

    Example: tfbbb sample houses.csv
    """
    from tfbbb.tables import samples
    from tfbbb.tables.writing import check_writable, write_table

    check_writable(table)
    houses = samples.houses(rows, seed)
    if table.exists():
        with tempfile.TemporaryDirectory() as directory:
            same = Path(directory) / table.name
            write_table(houses, same)
            if same.read_bytes() != table.read_bytes():
                raise CommandError(f"{table} exists; name another file.")
    else:
        write_table(houses, table)
    *features, target = houses.column_names
    typer.echo(
        f"{table} holds {rows} houses with {', '.join(features)} and the target "
        f"{target}"
    )
    echo_next(f"tfbbb train {table} --target {target} --output saved_models/houses")
