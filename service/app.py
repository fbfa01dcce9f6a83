"""The public entry of the API: `uvicorn --factory service.app:create_app`."""

from service.api.app import create_app

__all__ = ["create_app"]
