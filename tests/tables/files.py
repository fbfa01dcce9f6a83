"""Files of tables that tests write."""

import gzip

import pyarrow as pa
from hypothesis import HealthCheck, settings

# For tests whose examples overwrite the same file.
SAME_FILE = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def written(directory, content, name="table.csv"):
    """Writes a file, compressed as its suffix says; returns its path."""
    content = content if isinstance(content, bytes) else content.encode()
    if name.endswith(".gz"):
        content = gzip.compress(content)
    elif name.endswith(".zst"):
        content = pa.compress(content, codec="zstd", asbytes=True)
    path = directory / name
    path.write_bytes(content)
    return path
