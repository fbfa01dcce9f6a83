"""The epistemic uncertainty of a trained model about rows that it did not see."""

from dataclasses import replace

import numpy as np

from tfbbb.base.types import Structure
from tfbbb.export.epistemic_reference import EpistemicReference
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction.from_outputs import predictive_from_outputs
from tfbbb.prediction.result import Predictive
from tfbbb.training.cross_fitting import MemberRows

# As many as those behind the prediction of rows left out.
_DRAWS = 10


def epistemic_reference(
    model: BayesianModel,
    members: MemberRows,
    inputs: Structure,
    left_out: Predictive | None = None,
) -> EpistemicReference | None:
    """Returns the reference of a trained model; None if it has none.

    If members left out folds of the rows, each row was seen by all members but a few,
    and members that saw a row agree about its number more than about that of a new row.
    How much more is measured: the median variance of the means of the members that left
    a row out is divided by that of as many members that saw it, and the variance of all
    members is multiplied by this ratio. With one member that left out a row, nothing
    can be measured. The mutual information of classes stays as it is: it is bounded,
    and that of new rows was no greater in the sets that were tried.
    """
    factor = 1.0
    if members.folds is not None and model.likelihood.task == "regression":
        if len(members.folds) == 1:
            return None
        assert left_out is not None
        seen = _prediction_by_others(model, members, inputs)
        factor = max(_median_variance(left_out) / _median_variance(seen), 1.0)
    # The method by which files draw by default: see `EpistemicReference`.
    prediction = model.predictive(inputs, method="local")
    return EpistemicReference.of(prediction, factor=factor)


def _prediction_by_others(
    model: BayesianModel, members: MemberRows, inputs: Structure
) -> Predictive:
    """Returns the prediction of rows by the members that left out the next fold."""
    assert members.folds is not None
    others = (members.folds + 1) % members.num_folds
    shifted = replace(members, temperatures=(1.0,), folds=others)
    num_rows = others.shape[1]
    (outputs,) = shifted.out_of_sample_outputs(model, inputs, num_rows, _DRAWS)
    return predictive_from_outputs(model.likelihood, outputs)


def _median_variance(prediction: Predictive) -> float:
    # A network that never varies has the variance 0.
    return max(float(np.median(prediction.epistemic)), float(np.finfo(np.float32).tiny))
