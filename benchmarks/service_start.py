"""Start-up time of the service, and its resources while idle.

    python benchmarks/service_start.py

Start-up is the time from the start of `tfbbb serve` to the first response of
/health/live and of /health/ready; idle is the processor time of the whole tree of
processes over a minute, on a service without models and jobs.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import psutil
from timing import machine, print_table, write_json

from service.api.keys.credential import Credential

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Measures, prints and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--idle-seconds", type=float, default=60.0)
    options = parser.parse_args()
    live, ready, idle, memory = [], [], float("nan"), 0
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "models").mkdir()
        for number in range(options.starts):
            process, url = start(Path(directory))
            try:
                began = process.create_time()
                live.append(seconds_until(f"{url}/health/live", began))
                ready.append(seconds_until(f"{url}/health/ready", began))
                if number == options.starts - 1:
                    time.sleep(5)
                    idle = idle_share(process, options.idle_seconds)
                    memory = sum(p.memory_info().rss for p in tree(process))
            finally:
                process.terminate()
                process.wait()
    results = {
        "machine": machine(),
        "starts": options.starts,
        "seconds_to_live": {"median": statistics.median(live), "worst": max(live)},
        "seconds_to_ready": {"median": statistics.median(ready), "worst": max(ready)},
        "idle_percent_of_a_core": 100 * idle,
        "idle_seconds": options.idle_seconds,
        "resident_bytes": memory,
    }
    print_table(
        "tfbbb serve",
        ["", "median", "worst"],
        [
            ["seconds to live", *map(round2, results["seconds_to_live"].values())],
            ["seconds to ready", *map(round2, results["seconds_to_ready"].values())],
            ["idle, % of a core", round2(100 * idle), ""],
        ],
    )
    write_json(__file__, results)


def round2(value: float) -> str:
    """Formats a number with two decimals."""
    return f"{value:.2f}"


def start(directory: Path) -> tuple[psutil.Popen, str]:
    """Starts a service on a free port; returns its process and URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = psutil.Popen(
        [sys.executable, "-m", "tfbbb", "serve", "--port", str(port)],
        cwd=directory,
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT),
            "TFBBB_MODELS": str(directory / "models"),
            "TFBBB_DATA_DIR": str(directory / "data"),
            "TFBBB_ADMIN_KEY": Credential.generate().text,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return process, f"http://127.0.0.1:{port}"


def seconds_until(url: str, began: float) -> float:
    """Returns the time from `began` to the first successful response."""
    while True:
        try:
            if httpx.get(url, timeout=60).status_code == 200:
                return time.time() - began
        except httpx.TransportError:
            pass
        time.sleep(0.02)


def tree(process: psutil.Process) -> list[psutil.Process]:
    """Returns a process and all its descendants."""
    return [process, *process.children(recursive=True)]


def idle_share(process: psutil.Process, seconds: float) -> float:
    """Returns processor time per wall-clock time, of the whole tree."""

    def used() -> float:
        return sum(sum(p.cpu_times()[:2]) for p in tree(process))

    before, began = used(), time.monotonic()
    time.sleep(seconds)
    return (used() - before) / (time.monotonic() - began)


if __name__ == "__main__":
    main()
