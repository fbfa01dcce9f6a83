"""The service under large requests: many numbers in binary, and much to compute."""

import http.client
import json
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import numpy as np
from busy_service import LEAST_DRAWS, post
from load_generator import send_load

WIDTH = 784
_BINARY_ROWS, _BINARY_REQUESTS = 1000, 100
_HEAVY_ROWS, _HEAVY_DRAWS, _HEAVY_DEADLINE = 500, 400, 10.0


def send_heavy(
    port: int, key: str, model: str, clients: int, seconds: float
) -> Mapping[str, Any]:
    """Returns the figures of requests that take long to compute, with a deadline."""
    rows = np.random.default_rng(0).normal(size=(_HEAVY_ROWS, WIDTH)).round(2)
    parameters = {"num_samples": _HEAVY_DRAWS, "deadline_ms": 1e3 * _HEAVY_DEADLINE}
    figures = send_load(
        port,
        f"/v1/models/{model}:predict",
        {"instances": rows.tolist(), "parameters": parameters},
        key,
        connections=clients,
        seconds=seconds,
        deadline=_HEAVY_DEADLINE,
    )
    return figures | {"answered_per_second": figures["answered"] / seconds}


def send_binary(port: int, key: str, model: str) -> Mapping[str, Any]:
    """Returns the figures of 1 000 × 784 numbers by the Open Inference Protocol."""
    generator = np.random.default_rng(0)
    numbers = generator.normal(size=(_BINARY_ROWS, WIDTH)).astype(np.float32)
    tensor = {
        "name": "inputs",
        "shape": [_BINARY_ROWS, WIDTH],
        "datatype": "FP32",
        "parameters": {"binary_data_size": numbers.nbytes},
    }
    parameters = {"binary_data_output": True, "num_samples": LEAST_DRAWS}
    head = json.dumps({"inputs": [tensor], "parameters": parameters}).encode()
    headers = {
        "Content-Type": "application/octet-stream",
        "Inference-Header-Content-Length": str(len(head)),
    }
    body, path = head + numbers.tobytes(), f"/v2/models/{model}/infer"
    seconds = []
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        for _ in range(_BINARY_REQUESTS):
            begin = time.perf_counter()
            post(port, key, path, body, headers, connection)
            seconds.append(time.perf_counter() - begin)
    return {
        "answered_per_second": 1.0 / float(np.mean(seconds)),
        "p50_ms": 1e3 * float(np.median(seconds)),
        "p99_ms": 1e3 * float(np.quantile(seconds, 0.99)),
    }
