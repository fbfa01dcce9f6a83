"""Event files for TensorBoard."""

import os

import numpy as np
import tensorflow as tf


class EventFile:
    """Writes scalars and histograms to an event file in a directory.

    `tf.summary.scalar` and `tf.summary.histogram` require TensorBoard, which TensorFlow
    does not install. This class does not, so TensorBoard can run on another machine
    than the training.

    Args:
        log_dir: The directory; created if it does not exist.
    """

    def __init__(self, log_dir: str | os.PathLike[str]):
        self._writer = tf.summary.create_file_writer(os.fspath(log_dir))

    def scalar(self, tag: str, value: float, step: int) -> None:
        """Writes one number."""
        self._write(
            tag, np.asarray(value, np.float32), step, "scalars", "DATA_CLASS_SCALAR"
        )

    def histogram(
        self, tag: str, counts: np.ndarray, edges: np.ndarray, step: int
    ) -> None:
        """Writes the histogram of `counts` [n] between `edges` [n + 1]."""
        buckets = np.stack([edges[:-1], edges[1:], counts], axis=1)
        self._write(tag, buckets, step, "histograms", "DATA_CLASS_TENSOR")

    def close(self) -> None:
        """Flushes and closes the file."""
        self._writer.close()

    def _write(
        self, tag: str, value: np.ndarray, step: int, plugin: str, data_class: str
    ) -> None:
        metadata = tf.compat.v1.SummaryMetadata(data_class=data_class)
        metadata.plugin_data.plugin_name = plugin
        with self._writer.as_default():
            tf.summary.write(tag, value, step=step, metadata=metadata)
