"""The store: where all machines keep datasets, checkpoints and versions of models."""

from service.shared.settings import Settings
from service.shared.store.store import STAGING, Store, StoreError, StoreOutageError

__all__ = ["STAGING", "Store", "StoreError", "StoreOutageError", "open_store"]


def open_store(settings: Settings) -> Store:
    """Returns the store that the settings name; does not connect to it yet."""
    if settings.store is None:
        return Store(settings)
    # Imported late: a store of directories needs no s3fs.
    from service.shared.store.s3_store import S3Store

    return S3Store(settings)
