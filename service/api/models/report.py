"""The reports of versions, which training has written."""

from pathlib import Path

from service.shared.errors import UnknownReport
from tfbbb.export.manifest import MANIFEST_PATH, REPORT_FILE


def read_report(models: Path, name: str, version: int) -> bytes:
    """Returns the report of a version that exists, as JSON."""
    manifest = models / name / str(version) / MANIFEST_PATH
    try:
        return manifest.with_name(REPORT_FILE).read_bytes()
    except FileNotFoundError:
        raise UnknownReport(
            "This version has no report: an earlier release trained it, or no table "
            "did. Train the model again for one. "
            f"Received: version {version} of the model {name!r}"
        ) from None
