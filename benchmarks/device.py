"""The device on which TensorFlow computes."""

import platform
import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any


def describe_device() -> dict[str, Any]:
    """Returns kind, name and number of the devices that this process sees."""
    # Another tree's processes, which `against.py` starts, import this module too.
    from tfbbb.base.tensorflow_startup import import_tensorflow

    import_tensorflow()
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        details = tf.config.experimental.get_device_details(gpus[0])
        name = details.get("device_name", gpus[0].name)
        return {"kind": "GPU", "name": name, "number": len(gpus)}
    return {"kind": "CPU", "name": _processor(), "number": 1}


def device_of_processes() -> dict[str, Any]:
    """Returns the device that the processes of a program see.

    A process of its own looks: the program may measure what TensorFlow would disturb.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(describe_device).result()


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    names = re.findall(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return names[0] if names else platform.processor() or platform.machine()
