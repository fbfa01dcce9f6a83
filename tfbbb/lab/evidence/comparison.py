"""Tables that compare models by their evidence."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfbbb.base.extras import import_extra
from tfbbb.base.texts import aligned
from tfbbb.base.types import ArrayLike
from tfbbb.lab.evidence.elbo import elbo
from tfbbb.lab.evidence.estimate import EvidenceEstimate
from tfbbb.lab.evidence.importance_weighted_bound import importance_weighted_bound
from tfbbb.model.bayesian_model import BayesianModel

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class ModelEvidence:
    """The figures of one model.

    Attributes:
        name: Name of the model.
        log_evidence: `log_evidence` of the model, in nats, if a method of
            `tfbbb.inference` gave it.
        elbo: The evidence lower bound; None for a model without a posterior density.
        importance_weighted: The importance-weighted bound; None as `elbo`.
    """

    name: str
    log_evidence: float | None
    elbo: EvidenceEstimate | None
    importance_weighted: EvidenceEstimate | None

    @property
    def best_estimate(self) -> float:
        """`log_evidence`, else the tightest bound, in nats."""
        if self.log_evidence is not None:
            return self.log_evidence
        assert self.importance_weighted is not None
        return self.importance_weighted.value

    @property
    def description_length(self) -> float | None:
        """Bits of a code of the weights and the targets: the negative ELBO."""
        return None if self.elbo is None else -self.elbo.bits


@dataclass(frozen=True)
class Comparison:
    """Models beside each other, with a table by `print`.

    Attributes:
        models: The figures of each model, in the order given.
    """

    models: tuple[ModelEvidence, ...]

    @property
    def best(self) -> ModelEvidence:
        """The model of the greatest log evidence, or of the greatest bound of it."""
        return max(self.models, key=lambda model: model.best_estimate)

    @property
    def probabilities(self) -> np.ndarray:
        """Posterior probabilities of the models, equal a priori, [models]."""
        logs = np.array([model.best_estimate for model in self.models])
        shares = np.exp(logs - logs.max())
        return np.asarray(shares / shares.sum())

    def columns(self) -> dict[str, list[float | str]]:
        """Returns the figures by column; figures that a model lacks are NaN."""
        found: dict[str, list[float | str]] = {"model": [m.name for m in self.models]}
        nan = math.nan
        found["log evidence (nats)"] = [
            nan if m.log_evidence is None else m.log_evidence for m in self.models
        ]
        found["ELBO (nats)"] = [
            nan if m.elbo is None else m.elbo.value for m in self.models
        ]
        found["+-"] = [
            nan if m.elbo is None else m.elbo.standard_error for m in self.models
        ]
        found["importance-weighted (nats)"] = [
            nan if m.importance_weighted is None else m.importance_weighted.value
            for m in self.models
        ]
        found["description length (bits)"] = [
            nan if m.description_length is None else m.description_length
            for m in self.models
        ]
        best = self.best.best_estimate
        found["behind the best (bits)"] = [
            (best - m.best_estimate) / math.log(2.0) for m in self.models
        ]
        found["probability"] = self.probabilities.tolist()
        return found

    def to_pandas(self) -> "pandas.DataFrame":
        """Returns the table as a data frame with one line per model.

        Needs `pip install 'tfbbb[pandas]'`.
        """
        (pandas,) = import_extra("pandas", "pandas")
        return pandas.DataFrame(self.columns())

    def __str__(self) -> str:
        columns = []
        for title, values in self.columns().items():
            if all(isinstance(v, float) and math.isnan(v) for v in values):
                continue
            columns.append([title, *(_cell(title, value) for value in values)])
        rows = list(zip(*columns, strict=True))
        return "\n".join(aligned(rows, right=range(1, len(columns))))


def compare(
    models: Mapping[str, BayesianModel],
    x: ArrayLike,
    y: ArrayLike,
    *,
    num_samples: int = 200,
    importance_samples: int = 50,
    seed: int = 0,
) -> Comparison:
    """Compares models of the same rows by evidence, bounds and description length.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> def line(scale):
    ...     inputs = keras.Input((1,))
    ...     prior = tfbbb.priors.Normal(scale)
    ...     layer = tfbbb.layers.DenseVariational(
    ...         1, prior=prior, kernel_initializer="ones"
    ...     )
    ...     outputs = layer(inputs)
    ...     return tfbbb.BayesianModel(inputs, outputs)
    >>> rows = np.array([[1.0], [2.0]])
    >>> table = tfbbb.lab.evidence.compare(
    ...     {"narrow": line(1.0), "wide": line(1000.0)}, rows, rows
    ... )
    >>> table.best.name
    'narrow'

    Args:
        models: Models with one member by name, trained on these rows.
        x: Inputs of the training rows.
        y: Targets of these rows, in raw units.
        num_samples: Number of draws behind each bound.
        importance_samples: Number of draws in the importance-weighted bound.
        seed: Seed of the draws.

    Returns:
        A `Comparison`; `print` writes it as a table.

    Raises:
        ValueError: There is no model, or a model has neither a `log_evidence` nor a
            posterior with a density.
    """
    if not models:
        raise ValueError("There must be a model to compare. Received: models={}")
    found = []
    for name, model in models.items():
        bounds: tuple[EvidenceEstimate | None, EvidenceEstimate | None] = (None, None)
        try:
            bounds = (
                elbo(model, x, y, num_samples=num_samples, seed=seed),
                importance_weighted_bound(
                    model,
                    x,
                    y,
                    importance_samples=importance_samples,
                    repetitions=max(2, num_samples // importance_samples),
                    seed=seed,
                ),
            )
        except ValueError:
            if getattr(model, "log_evidence", None) is None:
                raise
        found.append(ModelEvidence(name, model.log_evidence, *bounds))
    return Comparison(tuple(found))


def _cell(title: str, value: float | str) -> str:
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "-"
    return f"{value:.3f}" if title == "probability" else f"{value:.2f}"
