import httpx
import matplotlib.image
import pytest

from tfbbb.cli.errors import CommandError


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    monkeypatch.setattr("tfbbb.training.plan._STEPS", 120)


def test_the_demonstration_runs_through_twice(tfbbb, tmp_path):
    for version in ("1", "2"):
        result = tfbbb("demo")
        assert result.exit_code == 0, result.output
        assert f"exported to saved_models/diabetes/{version}\n" in result.stdout
        for word in ("root mean squared error", "log-likelihood", "coverage of 90 %"):
            assert word in result.stdout
        for heading in ("truth", "mean", "epistemic", "aleatoric", "90 % interval"):
            assert f" {heading} " in result.stdout
        assert " of 88 true values are in their interval" in result.stdout
    height, width, _ = matplotlib.image.imread(tmp_path / "diabetes.png").shape
    assert width > height > 500


def test_the_service_is_stopped_when_something_fails(tfbbb, monkeypatch):
    urls = []

    def ask(url, version, instances):
        assert httpx.get(f"{url}/health/live").status_code == 200
        urls.append(url)
        raise CommandError("The service answered nonsense.")

    monkeypatch.setattr("tfbbb.cli.demo._ask", ask)
    result = tfbbb("demo")
    assert result.exit_code == 1
    assert result.stderr.endswith("Error: The service answered nonsense.\n")
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{urls[0]}/health/live")
