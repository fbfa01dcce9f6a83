"""The shapes that targets may have, one rule for all likelihoods, without TensorFlow.

A network whose outputs are [rows, places..., P] has targets at every place of a row: at
the row itself if there are no places, at the steps of a sequence, or at the pixels of
an image. Targets are [rows, places..., width], where the width is the number k of
targets, 1 for the index of a class, or C for a one-hot class. A last axis of 1 may be
left out. The number of axes decides, so no shape has two meanings.
"""

from collections.abc import Sequence

# Numbers of rows, places or targets; None is any size.
Sizes = Sequence[int | None]


def target_width(shape: Sizes, places: Sizes, widths: Sequence[int]) -> int | None:
    """Returns the size of the last axis of targets, None if it is left out.

    Example:

    >>> from tfbbb.bayes.target_shape import target_width
    >>> target_width((32, 10, 1), places=(10,), widths=(1,))
    1
    >>> target_width((32, 10), places=(None,), widths=(1, 5)) is None
    True
    """
    if shape and 1 in widths and _fits(shape[1:], places):
        return None
    for width in widths:
        if shape and _fits(shape[1:], [*places, width]):
            return width
    wanted = [_written([*places, width]) for width in widths]
    if 1 in widths:
        wanted.insert(0, _written(places))
    if len(widths) > 1:
        wanted[-1] += " (one-hot)"
    raise ValueError(
        f"The targets must have the shape {' or '.join(wanted)}, as the network has "
        f"outputs of shape {_written([*places, 'P'])}. Received: shape={tuple(shape)}"
    )


def _fits(sizes: Sizes, wanted: Sizes) -> bool:
    return len(sizes) == len(wanted) and all(
        None in (size, other) or size == other
        for size, other in zip(sizes, wanted, strict=True)
    )


def _written(sizes: Sequence[object]) -> str:
    return f"[{', '.join(['rows', *map(str, sizes)])}]"
