"""One trial of a search: it trains a spec, and stops early if others did better."""

import base64
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from tfbbb.base.extras import import_extra
from tfbbb.base.tensorflow_startup import import_tensorflow
from tfbbb.base.types import Config

if TYPE_CHECKING:
    import optuna

    from tfbbb.training.trained_table import TrainedTable

# Trials of different length are compared at the same share of their epochs.
_STAGES = 20
# The learning rate decays: the first quarter says little about the end.
_FIRST_STAGE = 5
# Fewer trials have no median worth the name.
_FEWEST_TO_COMPARE = 4

State = Literal["asked", "complete", "stopped", "diverged", "failed"]
# Optuna's names of the states of finished trials.
_STATES: dict[str, State] = {
    "COMPLETE": "complete",
    "PRUNED": "stopped",
    "FAIL": "diverged",
}
_OPTUNA_STATES = {state: name for name, state in _STATES.items()} | {"failed": "FAIL"}
_ROWS = ("log_likelihoods", "test")


@dataclass(frozen=True)
class Trial:
    """A network of the search, and its figures.

    Attributes:
        number: The number of the trial; 0 is the default.
        params: The parameters that it tried, by name; of the default, the values that
            the recipe chooses.
        fields: The fields of the spec that differ from those of the default.
        state: `"complete"`, `"stopped"` early because the median of the trials before
            was better, `"diverged"`, or `"failed"` by another error; `"asked"` before
            it has run.
        log_likelihoods: Log-likelihood of each held-out row, float32 [n] in nats; empty
            unless complete.
        stages: `-val_nll` by the twentieth of the epochs.
        seconds: Time of the trial.
        test: Log-likelihood of each test row, float32 [m]; of the default alone.
        distributions: What the parameters were chosen from, as Optuna describes it.
        error: The error of a trial that failed.
    """

    number: int
    params: Config
    fields: Config
    state: State = "asked"
    log_likelihoods: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    stages: Mapping[int, float] = field(default_factory=dict)
    seconds: float = 0.0
    test: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    distributions: Config = field(default_factory=dict)
    error: str = ""

    @property
    def log_likelihood(self) -> float:
        """Mean log-likelihood per held-out row; -inf unless complete."""
        if self.state != "complete":
            return -np.inf
        return float(np.mean(self.log_likelihoods, dtype=np.float64))

    @property
    def standard_error(self) -> float:
        """The standard error of `log_likelihood`."""
        return standard_error(self.log_likelihoods)

    def gain(self, other: "Trial") -> tuple[float, float]:
        """Returns by how much this trial is better than another, in nats per row.

        With the standard error of the difference, which is that of the differences of
        the rows: both have predicted the same rows.
        """
        differences = self.log_likelihoods - other.log_likelihoods
        return float(np.mean(differences, dtype=np.float64)), standard_error(
            differences
        )

    @classmethod
    def from_optuna(cls, trial: "optuna.trial.FrozenTrial") -> "Trial":
        """Returns the trial of one that `to_optuna(with_rows=True)` has made."""
        kept = dict(trial.user_attrs)
        rows: dict[str, Any] = {
            name: np.frombuffer(base64.b64decode(kept.pop(name)), np.float32)
            for name in _ROWS
        }
        return cls(
            params=trial.params,
            state="failed" if kept.get("error") else _STATES[trial.state.name],
            stages=trial.intermediate_values,
            distributions=trial.distributions,
            **kept,
            **rows,
        )

    def to_optuna(self, *, with_rows: bool = False) -> "optuna.trial.FrozenTrial":
        """Returns the trial as one of Optuna.

        Args:
            with_rows: Whether it has all attributes, and so the figures of the rows.
        """
        (optuna,) = import_extra("tune", "optuna")
        kept: dict[str, Any] = {}
        if with_rows:
            kept = {
                name: base64.b64encode(
                    np.float32(getattr(self, name)).tobytes()
                ).decode()
                for name in _ROWS
            }
            kept |= {"number": self.number, "fields": dict(self.fields)}
            kept |= {"seconds": self.seconds, "error": self.error}
        return optuna.create_trial(
            state=optuna.trial.TrialState[_OPTUNA_STATES[self.state]],
            value=self.log_likelihood if self.state == "complete" else None,
            params=dict(self.params),
            distributions=dict(self.distributions),
            intermediate_values=dict(self.stages),
            user_attrs=kept,
        )


def run_trial(
    table: pa.Table,
    spec: Config,
    earlier: "Sequence[optuna.trial.FrozenTrial]",
    test: pa.Table | None = None,
) -> Config:
    """Trains a spec, unless the median of earlier trials is better on the way."""
    (optuna,) = import_extra("tune", "optuna")
    import_tensorflow()
    from tfbbb.base.diverged_training import TrainingDivergedError
    from tfbbb.training.progress import Interrupted, Progress
    from tfbbb.training.table import train_table

    begin = time.monotonic()
    with quiet_optuna():
        study = optuna.create_study(
            direction="maximize",
            pruner=optuna.pruners.MedianPruner(_FEWEST_TO_COMPARE, _FIRST_STAGE),
        )
        study.add_trials(earlier)
        trial = study.ask()
    stages: dict[int, float] = {}
    stops = False

    def report(at: Progress) -> None:
        nonlocal stops
        stage = _STAGES * at.epoch // at.epochs
        if "val_nll" not in at.figures or stage in stages:
            return
        stages[stage] = -at.figures["val_nll"]
        trial.report(stages[stage], stage)
        stops |= stage < _STAGES and trial.should_prune()

    def ended(state: State, **found: object) -> Config:
        seconds = time.monotonic() - begin
        return {"state": state, "stages": stages, "seconds": seconds, **found}

    try:
        trained = train_table(
            table,
            spec,
            validate_left_out=True,
            report=report,
            should_stop=lambda: stops,
        )
    except Interrupted:
        return ended("stopped")
    except TrainingDivergedError:
        return ended("diverged")
    except Exception as error:
        if test is not None:
            # No other trial could train this table, either.
            raise
        return ended("failed", error=f"{type(error).__name__}: {error}")
    found = {"log_likelihoods": trained.log_likelihoods.astype(np.float32)}
    if test is not None:
        found["test"] = score_rows(trained, test)
    return ended("complete", **found)


def score_rows(trained: "TrainedTable", table: pa.Table) -> np.ndarray:
    """Returns the log-likelihood of each row of a table by a trained model, [n]."""
    prediction = trained.model.predictive(trained.schema.inputs(table))
    found = prediction.log_prob(trained.schema.targets(table))
    return np.asarray(found, np.float32)


def standard_error(values: np.ndarray) -> float:
    """Returns the standard error of a mean of independent values; NaN of one."""
    if len(values) < 2:
        return float("nan")
    return float(np.std(values, ddof=1, dtype=np.float64) / np.sqrt(len(values)))


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Keeps Optuna from logging each study and trial on stderr."""
    (optuna,) = import_extra("tune", "optuna")
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)
