import pytest


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    """Tries again at once, and knows no service but the one of the test."""
    monkeypatch.setattr("tfbbb.client.connection._PAUSES", (0.0,) * 5)
    monkeypatch.setattr("tfbbb.client.job._PAUSES", (0.0,) * 3)
    monkeypatch.delenv("TFBBB_URL", raising=False)
    monkeypatch.delenv("TFBBB_KEY", raising=False)
