"""What a training chose for itself, and why, as plain JSON values."""

from typing import Any

from tfbbb.training.choice import Choice
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.loop import Outcome
from tfbbb.training.plan import TrainingPlan


def describe_recipe(
    plan: TrainingPlan,
    members: MemberRows,
    choice: Choice | None,
    outcome: Outcome,
    num_measured: int,
) -> dict[str, Any]:
    """Returns the choices of a training and the figures behind them.

    Args:
        plan: The completed spec.
        members: The members that were trained.
        choice: The chosen temperature; None if there was nothing to choose.
        outcome: How the training ended.
        num_measured: Number of rows that the metrics are of.

    Returns:
        `chosen`, by the names of the spec's fields; `tried`, one entry per temperature
        with the `log_likelihood` of rows left out, the calibration's `factor`, and
        the `gain` by which it changes for the mixture of all members;
        `metrics_from`, a sentence; `epochs` and `steps`; and `out_of_time`, whether
        `max_seconds` ended the training.
    """
    model = plan.model
    chosen: dict[str, Any] = {
        "hidden_units": model.hidden_units and list(model.hidden_units),
        "numeric_encoding": model.numeric_encoding,
        "likelihood": model.likelihood and model.likelihood.model_dump(),
        "members": plan.group_size,
        "batch_size": plan.batch_size,
    }
    if choice is not None:
        chosen["temperature"] = choice.best.temperature
    return {
        "chosen": chosen,
        "tried": [
            {
                "temperature": trial.temperature,
                "log_likelihood": trial.log_likelihood,
                "factor": trial.factor,
                "gain": trial.gain,
            }
            for trial in (choice.trials if choice else ())
        ],
        "metrics_from": _metrics_from(members, num_measured),
        "epochs": outcome.epoch,
        "steps": outcome.epoch * plan.steps_per_epoch,
        "out_of_time": outcome.out_of_time,
    }


def _metrics_from(members: MemberRows, num_rows: int) -> str:
    if members.folds is None:
        return f"{num_rows} rows that no member trained on"
    return (
        f"all {num_rows} rows, each predicted by the {len(members.folds)} of "
        f"{members.group_size} members that did not train on it"
    )
