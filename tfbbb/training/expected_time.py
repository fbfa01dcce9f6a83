"""How long a training takes, estimated before it starts."""

from math import ceil

from tfbbb.training.effort import defaults_for, suits_few_rows, usual_batch_size
from tfbbb.training.spec import JobSpec

# Processor seconds: of every training, of a row, of a cell, and of a step of a member,
# for few rows and for many, without columns and for each one. Those of nine tables with
# 100 to 10 000 rows and 5 to 100 columns were within a fifth.
_EVERY, _PER_ROW, _PER_CELL = 7.0, 1e-3, 3e-5
_STEP, _PER_COLUMN = (5e-4, 2e-3), (1.7e-5, 4e-5)
# Idle cores share the work; on a busy machine it waits.
_LEAST, _MOST = 0.6, 2.5


def expected_seconds(
    num_rows: int, num_columns: int, spec: JobSpec
) -> tuple[float, float]:
    """Returns least and most seconds of a training, from its start to its version.

    The middle of the range is the processor time

        7 + rows * (a + b * columns) + steps * members * tries * (c + d * columns)

    whose constants were measured; `max_seconds` ends the range.
    """
    training = spec.training
    is_large, defaults = not suits_few_rows(num_rows), defaults_for(spec, num_rows)
    steps = training.steps or defaults.steps
    if training.epochs is not None:
        batch_size = training.batch_size or usual_batch_size(num_rows)
        steps = training.epochs * ceil(num_rows / batch_size)
    members = spec.model.members or defaults.group_size
    tries = defaults.trainings if training.kl_schedule is None else 1.0
    step = _STEP[is_large] + _PER_COLUMN[is_large] * num_columns
    seconds = _EVERY + num_rows * (_PER_ROW + _PER_CELL * num_columns)
    seconds += steps * members * tries * step
    limit = training.max_seconds or float("inf")
    least, most = (min(x * seconds, limit) for x in (_LEAST, _MOST))
    return round(least, 1), round(most, 1)
