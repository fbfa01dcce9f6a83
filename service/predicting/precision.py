"""How many draws a prediction needs for the standard error that is asked for."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from service.shared.errors import RequestTooLarge
from service.shared.prediction_parameters import DrawParameters
from tfbbb.export.inputs import Tensors
from tfbbb.prediction.adaptive import count_needed_draws

if TYPE_CHECKING:
    from tfbbb.export.exported_model import ExportedModel

_OTHER_SEED = 0x5EED
# Fewer draws of a pilot tell so little of the error that many more are made for safety.
_LEAST_PILOT = 100


def find_num_samples(
    model: "ExportedModel",
    tensors: Tensors,
    parameters: DrawParameters,
    num_samples: int,
    most: int,
) -> int:
    """Returns the number of draws whose mean has the standard error asked for.

    A pilot estimates it, as for `tfbbb.predictive`. Its seed is not that of the answer.
    """
    bound = parameters.max_standard_error
    assert bound is not None
    seed = model.manifest.default_seed if parameters.seed is None else parameters.seed
    pilot = max(num_samples, min(_LEAST_PILOT, most))
    answers = model.predict(tensors, pilot, seed ^ _OTHER_SEED)
    needed_by_row = count_needed_draws(
        answers["mean_standard_error"].astype(np.float64),
        _deviations(answers),
        pilot,
        bound,
        parameters.relative_error,
    )
    needed = max(float(num_samples), float(np.ceil(needed_by_row.max())))
    if needed > most:
        raise RequestTooLarge(
            "`parameters.max_standard_error` needs more draws than the limit of "
            "work (TFBBB_MAX_WORK) allows; send fewer rows "
            f"at a time or allow a larger error. Received: {bound:g}, which needs "
            f"about {needed:.2g} draws of at most {most}"
        )
    return int(needed)


def _deviations(answers: dict[str, npt.NDArray[np.float32]]) -> npt.NDArray[np.float64]:
    """Returns the predictive standard deviation of numbers, or of one-hot classes."""
    if "probabilities" in answers:
        p = answers["probabilities"].astype(np.float64)
        return np.sqrt(np.maximum(p * (1 - p), np.finfo(np.float32).tiny))
    return np.sqrt(answers["variance"].astype(np.float64))
