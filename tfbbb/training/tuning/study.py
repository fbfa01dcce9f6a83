"""The study of Optuna that keeps the finished trials of a search."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tfbbb.base.extras import import_extra
from tfbbb.base.types import Config
from tfbbb.training.tuning.trial import quiet_optuna

if TYPE_CHECKING:
    import optuna

_NAME = "tfbbb"


class StudyError(ValueError):
    """A study cannot be used; the message is one sentence."""


def open_study(path: str | os.PathLike[str] | None, identity: Config) -> "optuna.Study":
    """Returns the study of an SQLite file, which `optuna-dashboard` shows as well."""
    (optuna,) = import_extra("tune", "optuna")
    try:
        with quiet_optuna():
            study = optuna.create_study(
                storage=path and f"sqlite:///{Path(path).absolute()}",
                study_name=_NAME,
                direction="maximize",
                load_if_exists=True,
            )
    except Exception as error:
        raise StudyError(
            "The file of the study cannot be opened: name another file. "
            f"Received: {str(path)!r} ({type(error).__name__})"
        ) from error
    # Without a trial, nothing depends on what an earlier call was given.
    if not study.get_trials(deepcopy=False):
        for name, value in identity.items():
            study.set_user_attr(name, value)
    known = study.user_attrs
    other = [name for name in identity if known.get(name) != identity[name]]
    if other:
        raise StudyError(
            f"The study has trials of another {other[0].replace('_', ' ')}: name "
            f"another file, or delete this one. Received: {str(path)!r}"
        )
    return study
