import re
import signal

import matplotlib.image
import pytest

from tfbbb.client import Client


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    train = Client.train

    def briefly(self, *arguments, **spec):
        training = {"steps": 40, "kl_schedule": "constant"}
        model = {"members": 2, "hidden_units": [8], "likelihood": "normal"}
        return train(self, *arguments, training=training, model=model, **spec)

    monkeypatch.setattr(Client, "train", briefly)
    monkeypatch.setenv("TFBBB_WORKERS", "1")


@pytest.mark.parametrize(
    "versions", [[1], pytest.param([1, 2], marks=pytest.mark.slow)]
)
def test_the_demo_runs_repeatedly(run, tmp_path, versions):
    handler = signal.getsignal(signal.SIGTERM)
    for version in versions:
        result = run("demo")
        assert f"published diabetes, version {version}, after" in result.stdout
        assert "% of the targets are in their 90 % interval." in result.stdout
        # Words of a newcomer.
        assert not re.search(r"\b(nats|nll|kl|loss|pit|temperatures)\b", result.output)
        for heading in ("truth", "mean", "epistemic", "aleatoric", "90 % interval"):
            assert f" {heading} " in result.stdout
        assert " of 88 true values are in their interval" in result.stdout
    assert signal.getsignal(signal.SIGTERM) is handler
    height, width, _ = matplotlib.image.imread(tmp_path / "diabetes.png").shape
    assert width > height > 500
    model = tmp_path / "saved_models" / "diabetes" / str(versions[-1])
    assert (model / "saved_model.pb").is_file()
