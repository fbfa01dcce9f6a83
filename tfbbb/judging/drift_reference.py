"""The scores of held-out rows, with which the service compares rows of feedback."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tfbbb.base.types import Config

# In `assets.extra` of a SavedModel.
REFERENCE_FILE = "drift_reference.json"
_FORMAT = 1
_MOST_ROWS = 10_000


@dataclass(frozen=True)
class DriftReference:
    """The drift scores of rows that a model was not trained on.

    Example:

    >>> reference = DriftReference(drift_scores(np.array([-1.0]), np.array([[0.5]])))
    >>> reference.to_json()
    b'{"format": 1, "scores": [[1.0, 0.5]]}'
    """

    scores: np.ndarray

    def to_json(self) -> bytes:
        """Returns the reference as JSON; of many rows a random choice of 10 000."""
        scores = self.scores
        if len(scores) > _MOST_ROWS:
            generator = np.random.default_rng(0)
            scores = scores[generator.choice(len(scores), _MOST_ROWS, replace=False)]
        return json.dumps({"format": _FORMAT, "scores": scores.tolist()}).encode()

    @classmethod
    def read(cls, version: Path) -> "DriftReference | None":
        """Reads the reference of an exported model; None if it has none.

        Models that a table did not train have none, nor have those whose members leave
        out folds: the held-out predictions of some members are worse than those of all.
        """
        path = Path(version) / "assets.extra" / REFERENCE_FILE
        try:
            values: Config = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        if values.get("format") != _FORMAT:
            return None
        return cls(np.asarray(values["scores"], np.float64))


def drift_scores(log_prob: np.ndarray, pit: np.ndarray | None) -> np.ndarray:
    """Returns the scores of rows for `tfbbb.drift.DriftTest`, [n, m].

    The negative log likelihood grows when predictions become worse. The probability
    integral transform, which classes lack, shows a shift of the targets sooner.
    """
    scores = [-np.asarray(log_prob)]
    if pit is not None:
        scores.append(np.mean(pit, axis=1))
    return np.stack(scores, axis=1)
