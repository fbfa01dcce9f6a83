import asyncio
import logging
from typing import Any

import pytest

from service.api.models import latest_version
from service.api.models.latest_version import LatestVersionBarrier


class LoadingModels:
    """Models of which one version loads for ever."""

    async def load_newest(self, name: str) -> None:
        await asyncio.Event().wait()


def test_success_is_reported_although_its_version_loads_for_long(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(latest_version, "_SECONDS_TO_LOAD", 0.01)
    models: Any = LoadingModels()
    with caplog.at_level(logging.INFO):
        asyncio.run(
            asyncio.wait_for(LatestVersionBarrier(models).wait_for("wine", 3), 10)
        )
    (told,) = [r.message for r in caplog.records if r.name == latest_version.__name__]
    assert told.startswith(
        "version 3 of the model 'wine' does not serve requests yet: loading"
    )
