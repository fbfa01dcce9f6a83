"""What a training chose for itself, and why, as plain JSON values."""

from collections.abc import Mapping, Sequence
from math import isfinite

from tfbbb.base.types import Config
from tfbbb.training.candidates import Candidate
from tfbbb.training.column_choice import remark_on_choice
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.plan import TrainingPlan
from tfbbb.training.preparation import Prepared
from tfbbb.training.scarce_rows import remarks_on_scarce_rows


def describe_recipe(
    plan: TrainingPlan,
    prepared: Prepared,
    members: MemberRows,
    candidates: Sequence[Candidate],
    best: Candidate,
    num_measured: int,
    outcomes: Mapping[str, str],
    steps_on_more_rows: int | None = None,
) -> Config:
    """Returns the choices of a training and the figures behind them."""
    model, outcome = best.network, best.outcome
    chosen: Config = {
        "network": best.name,
        "hidden_units": None
        if model.hidden_units is None
        else list(model.hidden_units),
        "numeric_encoding": model.numeric_encoding,
        "likelihood": model.likelihood and model.likelihood.model_dump(),
        "members": plan.group_size,
        "batch_size": plan.batch_size,
    }
    if best.choice is not None:
        chosen["temperature"] = plan.temperature * best.choice.best.temperature
    return {
        "chosen": chosen,
        "tried": [
            {
                "network": candidate.name,
                "temperature": plan.temperature * trial.temperature,
                "log_likelihood": trial.log_likelihood
                if isfinite(trial.log_likelihood)
                else None,
                "relative_error": trial.relative_error
                if isfinite(trial.relative_error)
                else None,
                "factor": trial.factor,
                "kept": candidate is best and trial is candidate.choice.best,
            }
            for candidate in candidates
            if candidate.choice is not None
            for trial in candidate.choice.trials
        ]
        + [
            {
                "network": name,
                "temperature": plan.temperature * temperature,
                "log_likelihood": None,
                "relative_error": None,
                "factor": 1.0,
                "kept": False,
            }
            for name in plan.networks
            if name not in {candidate.name for candidate in candidates}
            for temperature in plan.temperatures
        ],
        "likelihoods": [
            {
                "likelihood": trial.likelihood.name,
                "log_likelihood": trial.log_likelihood,
                "gain": trial.gain,
                "standard_error": trial.standard_error,
                "kept": trial.likelihood == model.likelihood,
                "outcome": outcomes.get(trial.likelihood.name),
            }
            for trial in plan.likelihoods
        ],
        "gain": 1.0 if best.choice is None else best.choice.gain,
        "split": dict(prepared.split),
        "metrics_from": _metrics_from(
            members, num_measured, prepared.split, bool(steps_on_more_rows)
        ),
        "remarks": [
            *prepared.schema.column_warnings,
            *remark_on_choice(prepared.schema),
            *remarks_on_scarce_rows(prepared, members),
        ],
        "epochs": outcome.epoch,
        "steps": outcome.step,
        "steps_on_more_rows": steps_on_more_rows,
        "out_of_time": any(each.outcome.out_of_time for each in candidates),
    }


def _metrics_from(
    members: MemberRows, num_rows: int, split: Config, goes_on: bool
) -> str:
    by, column = split.get("by"), split.get("column")
    if members.folds is not None:
        group = f" or on others of its {column!r}" if by == "group" else ""
        before = ", as they were before they went on with more rows" if goes_on else ""
        rows = f"all {num_rows} rows, each"
        seen = f"did not train on it{group}"
        if by == "time":
            rows = f"the last {num_rows} rows by {column!r}, from {split['since']} on,"
            seen = "trained on earlier rows alone"
        return (
            f"{rows} predicted by the {len(members.folds)} of {members.group_size} "
            f"members that {seen}{before}"
        )
    if by == "time":
        return (
            f"the last {num_rows} rows by {column!r}, from {split['since']} on, which "
            "no member trained on"
        )
    whole = f" of whole groups of {column!r}" if by == "group" else ""
    return f"{num_rows} rows{whole} that no member trained on"
