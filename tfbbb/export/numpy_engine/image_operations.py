"""Convolutions and pooling of NumPy arrays, with the channels last."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfbbb.export.numpy_engine.products import row_product

Attributes = dict[str, Any]
# Patches of some rows at a time, in bytes: they fit in a processor's cache.
_PATCHES_AT_A_TIME = 1 << 23


def convolution(attributes: Attributes) -> Callable[..., np.ndarray]:
    """Returns a convolution by kernels [*window, channels of a group, filters]."""
    strides, dilations = _sizes(attributes, "strides"), _sizes(attributes, "dilations")

    def convolved(x: np.ndarray, kernel: np.ndarray) -> np.ndarray:
        window = kernel.shape[:-2]
        x = _padded(x, window, strides, dilations, attributes, 0.0)
        inner, filters = kernel.shape[-2:]
        groups = x.shape[-1] // inner
        flat = kernel.reshape(-1, groups, filters // groups).swapaxes(0, 1)

        def of_rows(rows: np.ndarray) -> np.ndarray:
            # Each group apart, so that patches are copied in long runs.
            apart = np.moveaxis(rows.reshape(*rows.shape[:-1], groups, inner), -2, 0)
            apart = np.ascontiguousarray(apart).reshape(-1, *apart.shape[2:])
            patches = _windows(apart, window, strides, dilations)
            places = patches.shape[1 : 1 + len(window)]
            patches = np.moveaxis(patches, 1 + len(window), -1)
            flat_patches = patches.reshape(groups, len(rows) * math.prod(places), -1)
            product = row_product(flat_patches, flat).swapaxes(0, 1)
            return product.reshape(len(rows), *places, filters)

        per_row = x[:1].nbytes * math.prod(window)
        step = max(1, _PATCHES_AT_A_TIME // max(per_row, 1))
        parts = [of_rows(x[first : first + step]) for first in range(0, len(x), step)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    return convolved


def depthwise_convolution(attributes: Attributes) -> Callable[..., np.ndarray]:
    """Returns a convolution of each channel by kernels of its own.

    They are [*window, channels, filters of a channel].
    """
    strides, dilations = _sizes(attributes, "strides"), _sizes(attributes, "dilations")

    def convolved(x: np.ndarray, kernel: np.ndarray) -> np.ndarray:
        window = kernel.shape[:-2]
        x = _padded(x, window, strides, dilations, attributes, 0.0)
        windows = _windows(x, window, strides, dilations)
        products = (
            windows[(..., *place)][..., np.newaxis] * kernel[place]
            for place in np.ndindex(*window)
        )
        found = functools.reduce(np.ndarray.__iadd__, products)
        return found.reshape(*found.shape[:-2], -1)

    return convolved


def max_pooling(attributes: Attributes) -> Callable[[np.ndarray], np.ndarray]:
    """Returns the greatest number of each window."""
    return _pooling(attributes, np.maximum, -math.inf)


def average_pooling(attributes: Attributes) -> Callable[[np.ndarray], np.ndarray]:
    """Returns the mean of each window, without what padding adds to it."""
    added = _pooling(attributes, np.add, 0.0)
    return lambda x: added(x) / added(np.ones_like(x[:1]))


def _pooling(
    attributes: Attributes, ufunc: np.ufunc, filling: float
) -> Callable[[np.ndarray], np.ndarray]:
    """Returns a reduction of each window; the filling changes none."""
    window, strides = _sizes(attributes, "ksize"), _sizes(attributes, "strides")
    ones = [1] * len(window)

    def pooled(x: np.ndarray) -> np.ndarray:
        x = _padded(x, window, strides, ones, attributes, filling)
        windows = _windows(x, window, strides, ones)
        first, *others = np.ndindex(*window)
        found = windows[(..., *first)].copy()
        for place in others:
            ufunc(found, windows[(..., *place)], out=found)
        return found

    return pooled


def _sizes(attributes: Attributes, name: str) -> list[int]:
    """Returns one number for each axis of a window."""
    given = attributes.get(name) or [1] * len(attributes["strides"])
    if attributes.get("data_format", "NHWC") not in ("NHWC", "NDHWC"):
        raise ValueError("channels first")
    return list(given[1:-1])


def _padded(
    x: np.ndarray,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    attributes: Attributes,
    filling: float,
) -> np.ndarray:
    kind = attributes["padding"]
    if kind == "VALID":
        return x
    if kind == "EXPLICIT":
        flat = attributes["explicit_paddings"]
        pairs = list(zip(flat[::2], flat[1::2], strict=True))
    else:
        pairs = [(0, 0)]
        sizes = zip(x.shape[1:-1], window, strides, dilations, strict=True)
        for size, width, stride, dilation in sizes:
            covered = (-(-size // stride) - 1) * stride + (width - 1) * dilation + 1
            missing = max(0, covered - size)
            pairs.append((missing // 2, missing - missing // 2))
        pairs.append((0, 0))
    if not any(itertools.chain.from_iterable(pairs)):
        return x
    return np.pad(x, pairs, constant_values=filling)


def _windows(
    x: np.ndarray,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> np.ndarray:
    """Returns the windows of an array, [n, *places, channels, *window]."""
    axes = tuple(range(1, 1 + len(window)))
    spans = [(w - 1) * d + 1 for w, d in zip(window, dilations, strict=True)]
    found = np.lib.stride_tricks.sliding_window_view(x, spans, axis=axes)
    places = [slice(None, None, stride) for stride in strides]
    inside = [slice(None, None, dilation) for dilation in dilations]
    return found[(slice(None), *places, slice(None), *inside)]


IMAGE_OPERATIONS = {
    "AvgPool": average_pooling,
    "AvgPool3D": average_pooling,
    "Conv2D": convolution,
    "Conv3D": convolution,
    "DepthwiseConv2dNative": depthwise_convolution,
    "MaxPool": max_pooling,
    "MaxPool3D": max_pooling,
}
