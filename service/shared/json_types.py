"""The types of JSON documents that the service reads and writes by name."""

from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object: a document, a column of the database, a header of a frame."""

JsonList: TypeAlias = list[Any]
"""A list of JSON values, whose kinds the reader checks."""
