"""Pruning by signal-to-noise, smaller networks and description lengths."""

import tfbbb.backend  # noqa: F401  (refuses other backends first)
from tfbbb.compression.signal_to_noise import signal_to_noise

__all__ = ["signal_to_noise"]
