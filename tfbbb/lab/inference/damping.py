"""How the steps of fixed-point iterations become smaller where changes stay."""

from collections.abc import Sequence

# Steps are not made smaller than this share of the way to the new factor.
SMALLEST_STEP = 0.02
# Passes after which a step that lessens no change becomes smaller.
_PATIENCE = 10


def has_stagnated(changes: Sequence[float]) -> bool:
    """Returns whether the last passes have not lessened the changes."""
    count = len(changes)
    return (
        count % _PATIENCE == 0
        and count > _PATIENCE
        and (min(changes[-_PATIENCE:]) > 0.9 * min(changes[:-_PATIENCE]))
    )
