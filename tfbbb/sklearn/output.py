"""Containers of answers with several columns."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np

from tfbbb.base.extras import import_extra
from tfbbb.base.types import ArrayLike

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Columns: TypeAlias = Union[np.ndarray, "pd.DataFrame", "pl.DataFrame"]
"""Answers of several columns, in the container of `set_output`."""

_CONTAINERS = ("default", "pandas", "polars")


def check_container(name: str) -> str:
    """Returns the name of a container.

    Raises:
        ValueError: There is no such container.
        ImportError: pandas is not installed.
    """
    if name not in _CONTAINERS:
        raise ValueError(
            f"`predict` must be one of {', '.join(map(repr, _CONTAINERS))}. "
            f"Received: predict={name!r}"
        )
    if name == "pandas":
        import_extra("pandas", "pandas")
    return name


def in_container(
    container: str, values: np.ndarray, names: Sequence[object], X: ArrayLike
) -> Columns:
    """Returns columns in a container.

    Args:
        container: Name of the container.
        values: The columns, [rows, columns].
        names: Their names.
        X: The rows that were asked about; a pandas frame passes on its index.
    """
    if container == "pandas":
        import pandas as pd

        index = X.index if isinstance(X, pd.DataFrame) else None
        return pd.DataFrame(values, index=index, columns=list(names))
    if container == "polars":
        import polars as pl

        columns = zip(names, np.asarray(values).T, strict=True)
        return pl.DataFrame({str(name): column for name, column in columns})
    return values
