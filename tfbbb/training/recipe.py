"""What a training chose for itself, and why, as plain JSON values."""

from math import isfinite

import numpy as np

from tfbbb.base.types import Config
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.left_out_error import Trial
from tfbbb.training.preparation import remark_on_choice
from tfbbb.training.run import Run


def describe_recipe(run: Run) -> Config:
    """Returns the choices of a training and the figures behind them."""
    plan, prepared, best = run.plan, run.prepared, run.best
    model, outcome = best.network, best.outcome
    units, likelihood = model.hidden_units, model.likelihood
    chosen: Config = {
        "network": best.name,
        "hidden_units": None if units is None else list(units),
        "numeric_encoding": model.numeric_encoding,
        "likelihood": likelihood and likelihood.model_dump(),
        "members": plan.group_size,
        "batch_size": plan.batch_size,
    }
    if best.choice is not None:
        chosen["temperature"] = plan.temperature * best.choice.best.temperature
    tried = []
    for candidate in run.candidates:
        if candidate.choice is not None:
            for trial in candidate.choice.trials:
                kept = candidate is best and trial is candidate.choice.best
                tried.append((candidate.name, trial, kept))
    diverged = set(plan.networks) - {each.name for each in run.candidates}
    for name in plan.networks:
        if name in diverged:
            failed = [Trial(t, -np.inf, 1.0, np.inf) for t in plan.temperatures]
            tried += [(name, trial, False) for trial in failed]
    recipe: Config = {
        "chosen": chosen,
        "tried": [
            {
                "network": name,
                "temperature": plan.temperature * trial.temperature,
                "log_likelihood": _finite(trial.log_likelihood),
                "relative_error": _finite(trial.relative_error),
                "factor": trial.factor,
                "kept": kept,
            }
            for name, trial, kept in tried
        ],
        "likelihoods": [
            {
                "likelihood": trial.likelihood.label,
                "log_likelihood": trial.log_likelihood,
                "gain": trial.gain,
                "standard_error": trial.standard_error,
                "kept": trial.likelihood == likelihood,
                "outcome": run.outcomes.get(trial.likelihood.label),
            }
            for trial in (run.likelihoods.trials if run.likelihoods else ())
        ],
        "gain": 1.0 if best.choice is None else best.choice.gain,
        "split": dict(prepared.split),
        "metrics_from": _metrics_from(
            run.members, len(run.targets), prepared.split, bool(run.steps_on_more_rows)
        ),
        "remarks": [
            *prepared.schema.column_warnings,
            *remark_on_choice(prepared.schema),
        ],
        "epochs": outcome.epoch,
        "steps": outcome.step,
        "steps_on_more_rows": run.steps_on_more_rows,
        "out_of_time": run.out_of_time,
        "rows_without_target": prepared.rows_without_target,
        "beyond": run.extrapolation and run.extrapolation.trial,
    }
    if run.spec.training.max_seconds is not None:
        recipe["seconds"] = run.clock.elapsed
    return recipe


def _finite(figure: float) -> float | None:
    return figure if isfinite(figure) else None


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
