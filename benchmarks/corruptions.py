"""Fifteen corruptions of small grey images at five levels, after MNIST-C.

The kinds and, where the paper's program has levels, their sizes are those of Mu and
Gilmer 2019. Stripes, lines and edges have one level there: here stripes grow wider,
lines become more, and edges replace more of the image.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import ndimage

LEVELS = 5
# Thresholds of Canny's detector, for the gradient of images from 0 to 1.
_WEAK, _STRONG = 0.1, 0.2
# Distance in pixels at which a drawn line has faded to 0.
_LINE_RADIUS = 2.3 * (1.0 - math.exp(-1.0))
_MUD = 63.0 / 255.0
_UNMOVED = np.zeros((1, 2))


def corrupted(images: np.ndarray, name: str, level: int, seed: int = 0) -> np.ndarray:
    """Returns corrupted images."""
    corrupt, sizes = CORRUPTIONS[name]
    size = sizes[level - 1]
    parts = size if isinstance(size, tuple) else (size,)
    changed = corrupt(images, np.random.default_rng([seed, level]), *parts)
    return np.clip(changed, 0.0, 1.0).astype("float32")


def _shot_noise(x: np.ndarray, generator: Any, photons: float) -> np.ndarray:
    return generator.poisson(x * photons) / photons


def _impulse_noise(x: np.ndarray, generator: Any, share: float) -> np.ndarray:
    noise = generator.random(x.shape)
    return np.where(noise < share, (noise < share / 2).astype(x.dtype), x)


def _glass_blur(
    x: np.ndarray, generator: Any, sigma: float, reach: int, passes: int
) -> np.ndarray:
    """Swaps each pixel with a near one, in half of the images, between two blurs."""
    x = ndimage.gaussian_filter(x, (0.0, sigma, sigma))
    every = np.arange(len(x))
    inner = range(x.shape[1] - reach - 1, reach - 1, -1)
    for row, column in [(r, c) for _ in range(passes) for r in inner for c in inner]:
        which = every[generator.random(len(x)) < 0.5]
        moves = generator.integers(-reach, reach, size=(2, len(which)))
        place, other = (which, row, column), (which, row + moves[0], column + moves[1])
        x[place], x[other] = x[other], x[place]
    return ndimage.gaussian_filter(x, (0.0, sigma, sigma))


def _motion_blur(
    x: np.ndarray, generator: Any, radius: int, sigma: float
) -> np.ndarray:
    angle = generator.uniform(-math.pi / 4, math.pi / 4, len(x))
    steps = np.arange(radius + 1)
    weights = np.exp(-0.5 * (steps / sigma) ** 2)
    blurred = np.zeros_like(x)
    for step, weight in zip(steps, weights / weights.sum(), strict=True):
        shift = step * np.stack([np.sin(angle), np.cos(angle)], axis=-1)
        blurred += weight * _warped(x, np.eye(2), shift)
    return blurred


def _shear(x: np.ndarray, generator: Any, angle: float) -> np.ndarray:
    angles = angle * _signs(generator, len(x))
    return _warped(x, _matrices(np.cos(angles), 0.0, -np.sin(angles), 1.0))


def _scale(x: np.ndarray, generator: Any, factor: float) -> np.ndarray:
    return _warped(x, np.eye(2) / factor)


def _rotate(x: np.ndarray, generator: Any, angle: float) -> np.ndarray:
    angles = angle * _signs(generator, len(x))
    cosine, sine = np.cos(angles), np.sin(angles)
    return _warped(x, _matrices(cosine, sine, -sine, cosine))


def _translate(x: np.ndarray, generator: Any, pixels: float) -> np.ndarray:
    return _warped(x, np.eye(2), pixels * _signs(generator, (len(x), 2)))


def _brightness(x: np.ndarray, generator: Any, more: float) -> np.ndarray:
    return x + more


def _stripe(x: np.ndarray, generator: Any, width: int) -> np.ndarray:
    """Inverts a stripe at the left and one at the right."""
    inverted = 1.0 - x
    inverted[:, :, width:-width] = x[:, :, width:-width]
    return inverted


def _fog(x: np.ndarray, generator: Any, density: float, decay: float) -> np.ndarray:
    """Adds noise of ever smaller cells, whose amplitude falls by `decay` squared."""
    side = x.shape[1]
    fog, sum_of_amplitudes = np.zeros_like(x), 0.0
    for octave in range(7):
        cell = 2 ** (7 - octave)
        amplitude = decay ** (-2 * octave)
        places = np.arange(side) / cell
        knots = math.ceil(side / cell) + 1
        grid = generator.uniform(0.0, amplitude, (len(x), knots, knots))
        at = np.meshgrid(np.arange(len(x)), places, places, indexing="ij")
        fog += ndimage.map_coordinates(grid, at, order=1)
        sum_of_amplitudes += amplitude
    brightest = x.max(axis=(1, 2), keepdims=True)
    mixed = x + density * fog / sum_of_amplitudes
    return mixed * brightest / (brightest + density)


def _spatter(
    x: np.ndarray,
    generator: Any,
    mean: float,
    stddev: float,
    blur: float,
    threshold: float,
    edge: float,
) -> np.ndarray:
    liquid = generator.normal(mean, stddev, x.shape)
    drops = ndimage.gaussian_filter(liquid, (0.0, blur, blur)) > threshold
    mud = ndimage.gaussian_filter(drops.astype(float), (0.0, edge, edge))
    mud = np.where(mud < 0.8, 0.0, mud)
    return x * (1.0 - mud) + _MUD * mud


def _dotted_line(x: np.ndarray, generator: Any, lines: int) -> np.ndarray:
    side = x.shape[1]
    columns = np.arange(side)
    for _ in range(lines):
        first, last = generator.integers(0, side - 1, size=(2, len(x), 1))
        curve = first + (last - first) * columns / (side - 1)
        x = _with_curve(x, curve, columns % 4 >= 2)
    return x


def _zigzag(x: np.ndarray, generator: Any, lines: int) -> np.ndarray:
    side = x.shape[1]
    columns = np.arange(side)
    first, last = 2, side - 3
    # A triangle wave of amplitude 2 and period 8.
    wave = 4.0 * np.abs((columns - first + 2) / 8 % 1 - 0.5) * 2.0 - 2.0
    for _ in range(lines):
        start = generator.integers(0, side - 1, size=(len(x), 1))
        rise = generator.integers(-5, 5, size=(len(x), 1))
        curve = start + rise * (columns - first) / (last - first) + wave
        x = _with_curve(x, curve, (columns >= first) & (columns <= last))
    return x


def _canny_edges(x: np.ndarray, generator: Any, share: float) -> np.ndarray:
    """Blends the image with its edges (Canny 1986)."""
    smooth = ndimage.gaussian_filter(x, (0.0, 1.0, 1.0))
    down, right = (ndimage.sobel(smooth, axis=axis) for axis in (1, 2))
    strength = np.hypot(down, right)
    # The two neighbours along the gradient, whose direction is rounded to 45 degrees.
    octant = np.round(4.0 * np.arctan2(down, right) / math.pi).astype(int) % 4
    is_ridge = np.zeros(x.shape, bool)
    for direction, (i, j) in enumerate(((0, 1), (1, 1), (1, 0), (1, -1))):
        ahead, behind = (np.roll(strength, (s * i, s * j), (1, 2)) for s in (1, -1))
        greatest = (strength >= ahead) & (strength > behind)
        is_ridge |= greatest & (octant == direction)
    weak = is_ridge & (strength > _WEAK)
    within = np.zeros((3, 3, 3))
    within[1] = 1.0
    components, _ = ndimage.label(weak, within)
    strong = np.unique(components[weak & (strength > _STRONG)])
    edges = np.isin(components, strong[strong > 0])
    return (1.0 - share) * x + share * edges


def _with_curve(x: np.ndarray, rows: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Returns images with a curve: its row in each column [n, side], where drawn."""
    distance = np.abs(np.arange(x.shape[1])[:, np.newaxis] - rows[:, np.newaxis])
    near = np.minimum(distance, _LINE_RADIUS)
    curve = np.clip(np.log1p(-near / 2.3) + 1.0, 0.0, 1.0)
    return np.clip(x + curve * drawn, 0.0, 1.0)


def _signs(generator: Any, shape: Any) -> np.ndarray:
    return generator.choice([-1.0, 1.0], size=shape)


def _matrices(a: Any, b: Any, c: Any, d: Any) -> np.ndarray:
    """Returns matrices [[a, b], [c, d]] of rows and columns, [n, 2, 2]."""
    entries = np.stack(np.broadcast_arrays(a, b, c, d), axis=-1)
    return entries.reshape(-1, 2, 2)


def _warped(
    x: np.ndarray, matrix: np.ndarray, shift: np.ndarray = _UNMOVED
) -> np.ndarray:
    """Returns images whose pixel p is at `matrix @ (p - centre) + centre + shift`."""
    side = x.shape[1]
    centre = (side - 1) / 2
    grid = np.stack(np.meshgrid(*2 * [np.arange(side)], indexing="ij"), axis=-1)
    moved = np.einsum("...ij,rcj->...rci", matrix, grid - centre) + centre
    moved = moved + shift[:, np.newaxis, np.newaxis]
    which = np.arange(len(x))[:, np.newaxis, np.newaxis]
    places = np.broadcast_arrays(which, moved[..., 0], moved[..., 1])
    return ndimage.map_coordinates(x, places, order=1)


_ANGLES = (0.2, 0.4, 0.6, 0.8, 1.0)
# The function and its arguments at each level.
CORRUPTIONS: dict[str, tuple[Callable[..., np.ndarray], Sequence[Any]]] = {
    "shot noise": (_shot_noise, (60.0, 25.0, 12.0, 5.0, 3.0)),
    "impulse noise": (_impulse_noise, (0.03, 0.06, 0.09, 0.17, 0.27)),
    "glass blur": (
        _glass_blur,
        ((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    ),
    "motion blur": (_motion_blur, ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))),
    "shear": (_shear, _ANGLES),
    "scale": (_scale, (0.9, 0.8, 0.7, 0.6, 0.5)),
    "rotate": (_rotate, _ANGLES),
    "brightness": (_brightness, (0.1, 0.2, 0.3, 0.4, 0.5)),
    "translate": (_translate, (1, 2, 3, 4, 5)),
    "stripe": (_stripe, (3, 4, 5, 6, 7)),
    "fog": (_fog, ((1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4))),
    "spatter": (
        _spatter,
        (
            (0.65, 0.3, 4.0, 0.69, 0.6),
            (0.65, 0.3, 3.0, 0.68, 0.6),
            (0.65, 0.3, 2.0, 0.68, 0.5),
            (0.65, 0.3, 1.0, 0.65, 1.5),
            (0.67, 0.4, 1.0, 0.65, 1.5),
        ),
    ),
    "dotted line": (_dotted_line, (1, 2, 3, 4, 5)),
    "zigzag": (_zigzag, (1, 2, 3, 4, 5)),
    "canny edges": (_canny_edges, (0.2, 0.4, 0.6, 0.8, 1.0)),
}
