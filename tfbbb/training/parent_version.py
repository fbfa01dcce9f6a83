"""A version whose posterior is the prior of the next one."""

import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np

from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.bayes.priors import FromPosterior, Normal
from tfbbb.bayes.variational_weight import VariationalWeight
from tfbbb.export.manifest import Manifest, ManifestError
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction.recalibration import Recalibration
from tfbbb.tables import Schema
from tfbbb.training.network import make_network
from tfbbb.training.record import RECORD_FILE, TrainingRecord, continuation_error
from tfbbb.training.spec import JobSpec

# In `assets.extra` of a SavedModel, beside the record.
POSTERIOR_FILE = "posterior.npz"


@dataclass(frozen=True)
class ParentVersion:
    """A version whose posterior becomes the prior of a new version.

    Training continues by Bayes' rule:

        p(w | old rows, new rows) ~ p(new rows | w) p(w | old rows)

    where q(w) of the parent version replaces p(w | old rows), at temperature 1: see
    `untemper`. Learned parameters without q, such as those of the
    noise, are point estimates: training starts from their old values, but only the new
    rows determine their new values.
    """

    record: TrainingRecord
    learned: Mapping[str, np.ndarray]
    recalibration: Recalibration | None = None

    @classmethod
    def from_model(
        cls, model: BayesianModel, schema: Schema, spec: JobSpec
    ) -> "ParentVersion":
        """Returns a trained model as a parent version, without writing files."""
        learned = {name: value.numpy() for name, value in learned_variables(model)}
        return cls(TrainingRecord(spec, schema), learned, model.recalibration)

    def files(self) -> dict[str, bytes]:
        """Returns the files, by name, that `read` needs."""
        archive = io.BytesIO()
        np.savez(archive, allow_pickle=False, **self.learned)
        return {RECORD_FILE: self.record.to_json(), POSTERIOR_FILE: archive.getvalue()}

    @property
    def sha256(self) -> str:
        """Digest of the learned values."""
        digest = hashlib.sha256(self.record.to_json())
        for name, value in self.learned.items():
            digest.update(name.encode() + value.tobytes())
        return digest.hexdigest()

    @classmethod
    def read(cls, version: Path) -> "ParentVersion":
        """Reads the parent version from its directory."""
        record = TrainingRecord.read(version)
        try:
            manifest = Manifest.read(version)
            manifest.verify(version)
            with np.load(
                version / "assets.extra" / POSTERIOR_FILE, allow_pickle=False
            ) as archive:
                return cls(record, dict(archive), manifest.read_recalibration())
        except FileNotFoundError:
            reason = f"it has no file {POSTERIOR_FILE}"
            raise continuation_error(version, reason) from None
        except ManifestError as error:
            raise continuation_error(version, str(error).rstrip(".")) from None

    def model(self, seed: int) -> BayesianModel:
        """Builds the model of the version, with its answers."""
        model = make_network(self.record.schema, self.record.spec.model, seed=seed)
        for name, variable in learned_variables(model):
            variable.assign(self.learned[name])
        model.recalibration = self.recalibration
        return model

    def network(self, seed: int) -> BayesianModel:
        """Builds a network whose prior and initial values are the learned posterior."""
        schema, network = self.record.schema, self.record.spec.model
        parent = self.model(seed)
        temperature = self.record.spec.training.temperature
        if temperature != 1.0:
            untemper(parent, temperature)
        child = make_network(schema, network, seed=seed, prior=FromPosterior(parent))
        values = dict(learned_variables(parent))
        for name, variable in learned_variables(child):
            variable.assign(values[name])
        return child


def learned_variables(model: BayesianModel) -> Iterator[tuple[str, keras.Variable]]:
    """Yields the variables of the posteriors and of the likelihood, by name."""
    for layer in model.variational_layers:
        for weight in layer.variational_weights:
            for name, variable in weight.variables.items():
                yield f"{layer.name}/{weight.name}/{name}", variable
    for variable in model.likelihood.variables:
        yield f"likelihood/{variable.name}", variable


def untemper(model: BayesianModel, temperature: float) -> None:
    """Changes a posterior at temperature T into the posterior at temperature 1.

    Training at the temperature T counts each row 1/T times: `q ~ p(w) L(w)^(1/T)`
    with the likelihood L of the rows. So `(q / p)^T` stands for L, and

        q'(w) ~ p(w) (q(w) / p(w))^T

    counts each row once. For a normal q of mean m and precision l, and a normal prior
    of mean 0 and precision l0, q' is normal with

        precision l0 + T (l - l0),   precision * mean = T l m.
    """
    weights = _weights(model)
    for weight in weights:
        if not _is_normal(weight):
            raise ValueError(
                "Only normal posteriors with normal priors can be taken to "
                "temperature 1. Received: "
                f"posterior={weight.posterior!r}, prior={weight.prior!r}"
            )
    for weight in weights:
        _untemper_weight(weight, temperature)


def can_untemper(model: BayesianModel) -> bool:
    """Whether all posteriors and priors of a model are normal, as `untemper` needs."""
    return all(map(_is_normal, _weights(model)))


def _weights(model: BayesianModel) -> list[VariationalWeight]:
    return [
        weight
        for layer in model.variational_layers
        for weight in layer.variational_weights
    ]


def _is_normal(weight: VariationalWeight) -> bool:
    return isinstance(weight.posterior, MeanFieldNormal) and isinstance(
        weight.prior, Normal
    )


def _untemper_weight(weight: VariationalWeight, temperature: float) -> None:
    prior = weight.prior
    assert isinstance(prior, Normal)
    # In float64: a precision may exceed the prior's by many orders.
    log_scale = np.asarray(
        prior.log_scale(weight.prior_parameters, weight.fan_in), np.float64
    )
    mean = np.asarray(weight.mean, np.float64)
    log_scale = log_scale.reshape(
        log_scale.shape + (1,) * (mean.ndim - log_scale.ndim) * (log_scale.ndim > 0)
    )
    of_prior = np.exp(-2.0 * log_scale)
    of_posterior = 1.0 / np.asarray(weight.variance, np.float64)
    precision = of_prior + temperature * (of_posterior - of_prior)
    weight.variables["mean"].assign(temperature * of_posterior * mean / precision)
    weight.variables["log_scale"].assign(-0.5 * np.log(precision))
