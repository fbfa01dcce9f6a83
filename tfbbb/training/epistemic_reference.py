"""The epistemic uncertainty of a trained model about rows that it did not see."""

from dataclasses import replace

import numpy as np

from tfbbb.base.types import Structure
from tfbbb.export.epistemic_reference import EpistemicReference
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction.from_outputs import predictive_from_outputs
from tfbbb.training.cross_fitting import MemberRows

_DRAWS = 10


def epistemic_reference(
    model: BayesianModel,
    members: MemberRows,
    inputs: Structure,
    num_rows: int,
    abstain_above: float | None = None,
) -> EpistemicReference | None:
    """Returns the reference of a trained model; None if it has none.

    If members left out folds of the rows, each row was seen by all members but a few,
    and members that saw a row agree about its number more than about that of a new row.
    How much more is measured: the median variance of the means of the members that left
    a row out is divided by that of as many members that saw it, and the variance of all
    members is multiplied by this ratio. With one member that left out a row, nothing
    can be measured. The mutual information of classes stays as it is: it is bounded,
    and that of new rows was no greater in the sets that were tried.

    Args:
        model: The trained model.
        members: The rows of its members.
        inputs: Inputs of the rows that its figures are of: the training rows if members
            left out folds, otherwise rows that the model did not see.
        num_rows: Number of these rows.
        abstain_above: The percentile above which rows get no answer.
    """
    factor = 1.0
    if members.folds is not None and model.likelihood.task == "regression":
        if len(members.folds) == 1:
            return None
        unseen, seen = (
            _median_variance(model, members, shift, inputs, num_rows)
            for shift in (0, 1)
        )
        factor = max(unseen / seen, 1.0)
    return EpistemicReference.of(
        model.predictive(inputs), factor=factor, abstain_above=abstain_above
    )


def _median_variance(
    model: BayesianModel,
    members: MemberRows,
    shift: int,
    inputs: Structure,
    num_rows: int,
) -> float:
    """Returns the median epistemic variance by the members that left out other folds.

    Args:
        model: The trained model.
        members: The rows of its members.
        shift: How many folds on; 0 for the members that left out the row itself.
        inputs: Inputs of the rows.
        num_rows: Number of rows.
    """
    assert members.folds is not None
    others = (members.folds + shift) % members.num_folds
    shifted = replace(members, temperatures=(1.0,), folds=others)
    (outputs,) = shifted.out_of_sample_outputs(model, inputs, num_rows, _DRAWS)
    prediction = predictive_from_outputs(model.likelihood, outputs)
    # A network that never varies has the variance 0.
    return max(float(np.median(prediction.epistemic)), float(np.finfo(np.float32).tiny))
