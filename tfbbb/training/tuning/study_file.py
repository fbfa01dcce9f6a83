"""The finished trials of a search, in a file from which the search goes on."""

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tfbbb.base.extras import import_extra
from tfbbb.training.tuning.trial import (
    OPTUNA_STATES,
    Trial,
    quiet_optuna,
)

_NAME = "tfbbb"
_ROWS = ("log_likelihoods", "test")
_STATES = {name: state for state, name in OPTUNA_STATES.items()}


class StudyError(ValueError):
    """A study cannot be used; the message is one sentence."""


class StudyFile:
    """A study of Optuna in an SQLite file, which `optuna-dashboard` shows as well.

    It gets a trial when the trial is finished, so an interrupted search has no trials
    that are half done.

    Args:
        path: The file; created if missing. None for no file.
        identity: What the trials depend on, as plain JSON values by name.

    Raises:
        StudyError: The file is not a study, or one of another table or spec.
        ImportError: Optuna is not installed.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, identity: dict[str, Any]
    ) -> None:
        (optuna,) = import_extra("tune", "optuna")
        self._study: Any = None
        if path is None:
            return
        path = Path(path)
        with quiet_optuna():
            try:
                self._study = optuna.create_study(
                    storage=f"sqlite:///{path.absolute()}",
                    study_name=_NAME,
                    direction="maximize",
                    load_if_exists=True,
                )
            except Exception as error:
                if isinstance(error, ImportError):
                    raise
                raise StudyError(
                    "The file of the study cannot be opened: name another file. "
                    f"Received: {str(path)!r} ({type(error).__name__})"
                ) from error
        # Without a trial, nothing depends on what an earlier call was given.
        if not self._study.get_trials(deepcopy=False):
            for name, value in identity.items():
                self._study.set_user_attr(name, value)
        known = self._study.user_attrs
        other = [name for name in identity if known.get(name) != identity[name]]
        if other:
            raise StudyError(
                f"The study has trials of another {other[0].replace('_', ' ')}: name "
                f"another file, or delete this one. Received: {str(path)!r}"
            )

    def read(self) -> list[Trial]:
        """Returns the finished trials, by number."""
        if self._study is None:
            return []
        found = []
        for trial in self._study.get_trials(deepcopy=False):
            kept = dict(trial.user_attrs)
            rows = {name: _decoded(kept[name]) for name in _ROWS}
            found.append(
                Trial(
                    number=kept["number"],
                    params=trial.params,
                    fields=kept["fields"],
                    state=_STATES[trial.state.name],
                    stages=trial.intermediate_values,
                    seconds=kept["seconds"],
                    distributions=trial.distributions,
                    **rows,
                )
            )
        return sorted(found, key=lambda trial: trial.number)

    def add(self, trial: Trial) -> None:
        """Adds a finished trial."""
        if self._study is None:
            return
        made = trial.to_optuna()
        made.user_attrs = {
            "number": trial.number,
            "fields": dict(trial.fields),
            "seconds": trial.seconds,
            **{name: _encoded(getattr(trial, name)) for name in _ROWS},
        }
        with quiet_optuna():
            self._study.add_trial(made)


def _encoded(values: Sequence[float] | np.ndarray) -> str:
    return base64.b64encode(np.asarray(values, np.float32).tobytes()).decode()


def _decoded(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), np.float32)
