"""Memory and disk of a service, by the number of its models.

    python benchmarks/capacity.py

Each model is a copy of one that the default recipe trained on 600 rows. A service gets
one prediction for each model, and is then asked for /metrics.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

import httpx
from commands import exported
from prometheus_client.parser import text_string_to_metric_families
from timing import print_table

from tfbbb.cli.running_service import running_service
from tfbbb.client import Client

NUMBERS = (1, 10, 100)
COLUMNS = 8
FIGURES = (
    "tfbbb_api_resident_memory_bytes",
    "tfbbb_disk_bytes",
)


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--models", type=int, nargs="+", default=NUMBERS, help="numbers of models"
    )
    numbers = parser.parse_args().models
    # Only the memory of what predicts is measured.
    os.environ["TFBBB_JOB_SLOTS"] = "0"
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = exported(folder)["NumPy"]
        for number in numbers:
            print(f"{number} models ...", file=sys.stderr)
            rows.append([f"{number:,}", *measure(folder / "models", model, number)])
    heads = ["models", "API, MB", "disk, MB"]
    print_table("Capacity", heads, rows)


def measure(models: Path, model: Path, number: int) -> list[str]:
    """Returns MB of memory of the API, and MB of disk."""
    for place in range(number):
        shutil.copytree(model, models / f"model{place}")
    with running_service(models) as service:
        row = {f"x{column}": 0.5 for column in range(COLUMNS)}
        with Client(service.url, service.key) as client:
            for place in range(number):
                client.model(f"model{place}").predict([row])
        figures = read_metrics(service.url, service.key)
    shutil.rmtree(models)
    return [f"{figures[name] / 1e6:,.0f}" for name in FIGURES]


def read_metrics(url: str, key: str) -> dict[str, float]:
    """Returns the sums of the metrics of a service; of the disk, that of versions."""
    headers = {"Authorization": f"Bearer {key}"}
    answer = httpx.get(f"{url}/metrics", headers=headers, timeout=60)
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            if sample.labels.get("kind", "versions") == "versions":
                sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
    return sums


if __name__ == "__main__":
    main()
