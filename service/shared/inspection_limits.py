from pydantic import BaseModel, ConfigDict

from service.shared.settings import Settings


class Limits(BaseModel):
    """What the reading of a table may take.

    Attributes:
        rows: Most rows.
        columns: Most columns.
        decompressed_bytes: Most bytes of the values of all rows.
        memory_bytes: Most address space of the process that reads.
        seconds: Most time that it takes.
    """

    model_config = ConfigDict(frozen=True)

    rows: int
    columns: int
    decompressed_bytes: int
    memory_bytes: int
    seconds: float

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """The limits that the operator chose."""
        return cls(
            rows=settings.max_upload_rows,
            columns=settings.max_upload_columns,
            decompressed_bytes=settings.max_decompressed_bytes,
            memory_bytes=settings.inspection_memory_bytes,
            seconds=settings.inspection_seconds,
        )
