"""The file formats of tables."""

from typing import Literal

Format = Literal["csv", "csv.gz", "parquet", "arrow"]
