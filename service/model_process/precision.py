"""How many draws a prediction needs for the standard error that is asked for."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from service.shared.errors import InvalidRequest, RequestTooLarge
from service.shared.prediction_parameters import DrawParameters
from tfbbb.export.inputs import Tensors

if TYPE_CHECKING:
    from tfbbb.export.exported_model import ExportedModel

# More draws than the estimate, whose own error would else miss the bound every other
# time.
_RESERVE = 1.2
_OTHER_SEED = 0x5EED


def find_num_samples(
    model: "ExportedModel",
    tensors: Tensors,
    parameters: DrawParameters,
    num_samples: int,
    most: int,
    most_in_time: int | None = None,
) -> tuple[int, bool]:
    """Returns the number of draws whose mean has the standard error asked for.

    Also returns whether they are fewer, because more would be too late.

    Passes of more and more draws estimate the error s / sqrt(n) of each row. Their seed
    is not that of the answer, which is made of fresh draws: an estimate that stops on
    its own draws stops where these happen to lie close together (Stein 1945).

    Args:
        model: The model.
        tensors: The table.
        parameters: The parameters of the request, with `max_standard_error`.
        num_samples: Draws of the first pass, and the least to return.
        most: The most draws of each row.
        most_in_time: The most draws that are in time; None for any number.

    Raises:
        InputError: If the table does not fit the model; names the row.
        InvalidRequest: If the method makes no draws.
        RequestTooLarge: If a row needs more draws than `most`.
    """
    bound = parameters.max_standard_error
    assert bound is not None
    if parameters.method == "moments":
        raise InvalidRequest(
            "`parameters.max_standard_error` is about draws, and the method `moments` "
            "makes none: leave one of them out."
        )
    seed = model.manifest.default_seed if parameters.seed is None else parameters.seed
    while True:
        answers = model.predict(tensors, num_samples, seed ^ _OTHER_SEED)
        errors = answers["mean_standard_error"].astype(np.float64)
        if parameters.relative_error:
            errors /= _deviations(answers)
        excess = float(np.max(errors, initial=0.0)) / bound
        if excess <= 1.0:
            return num_samples, False
        needed = float(np.ceil(_RESERVE * num_samples * excess**2))
        if most_in_time is not None and needed > most_in_time:
            return max(num_samples, min(most, most_in_time)), True
        if needed > most:
            raise RequestTooLarge(
                "`parameters.max_standard_error` needs more draws than the limit of "
                "work (TFBBB_MAX_WORK) allows; send fewer rows "
                f"at a time or allow a larger error. Received: {bound:g}, which needs "
                f"about {needed:.2g} draws of at most {most}"
            )
        num_samples = int(needed)


def _deviations(answers: dict[str, npt.NDArray[np.float32]]) -> npt.NDArray[np.float64]:
    """Returns the predictive standard deviation of numbers, or of one-hot classes."""
    if "probabilities" in answers:
        p = answers["probabilities"].astype(np.float64)
        return np.sqrt(np.maximum(p * (1 - p), np.finfo(np.float32).tiny))
    return np.sqrt(answers["variance"].astype(np.float64))
