"""A version whose posterior is the prior of the next one."""

import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tfbbb.bayes.priors import FromPosterior
from tfbbb.export.manifest import Manifest, ManifestError
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction.recalibration import Recalibration, deserialize
from tfbbb.tables import Schema
from tfbbb.training.network import make_network
from tfbbb.training.record import RECORD_FILE, TrainingRecord, continuation_error
from tfbbb.training.spec import JobSpec
from tfbbb.training.untempering import untemper

# In `assets.extra` of a SavedModel, beside the record.
POSTERIOR_FILE = "posterior.npz"


def continuation_files(
    model: BayesianModel, schema: Schema, spec: JobSpec
) -> dict[str, bytes]:
    """Returns the files, by name, that `ParentVersion.read` needs."""
    archive = io.BytesIO()
    learned = {name: variable.numpy() for name, variable in learned_variables(model)}
    np.savez(archive, allow_pickle=False, **learned)
    return {
        RECORD_FILE: TrainingRecord(spec, schema).to_json(),
        POSTERIOR_FILE: archive.getvalue(),
    }


@dataclass(frozen=True)
class ParentVersion:
    """A version whose posterior becomes the prior of a new version.

    Training continues by Bayes' rule:

        p(w | old rows, new rows) ~ p(new rows | w) p(w | old rows)

    where q(w) of the parent version replaces p(w | old rows), at temperature 1: see
    `tfbbb.training.untempering`. Learned parameters without q, such as those of the
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
                return cls(
                    record, dict(archive), made_recalibration(manifest.recalibration)
                )
        except FileNotFoundError:
            reason = f"it has no file {POSTERIOR_FILE}"
            raise continuation_error(version, reason) from None
        except ManifestError as error:
            raise continuation_error(version, str(error).rstrip(".")) from None

    def model(self, seed: int) -> BayesianModel:
        """Builds the model of the version, with its answers."""
        model = self._learned_model(seed)
        model.recalibration = self.recalibration
        return model

    def network(self, seed: int) -> BayesianModel:
        """Builds a network whose prior and initial values are the learned posterior."""
        schema, network = self.record.schema, self.record.spec.model
        parent = self._learned_model(seed)
        temperature = self.record.spec.training.temperature
        if temperature != 1.0:
            untemper(parent, temperature)
        child = make_network(schema, network, seed=seed, prior=FromPosterior(parent))
        values = dict(learned_variables(parent))
        for name, variable in learned_variables(child):
            variable.assign(values[name])
        return child

    def _learned_model(self, seed: int) -> BayesianModel:
        model = make_network(self.record.schema, self.record.spec.model, seed=seed)
        for name, variable in learned_variables(model):
            variable.assign(self.learned[name])
        return model


def made_recalibration(described: Mapping[str, Any] | None) -> Recalibration | None:
    """Makes the recalibration that a manifest describes; None for None."""
    if described is None:
        return None
    # A manifest has the class without its package.
    name = f"tfbbb.recalibration>{described['class_name']}"
    found: Recalibration = deserialize({**described, "registered_name": name})
    return found


def learned_variables(model: BayesianModel) -> Iterator[tuple[str, keras.Variable]]:
    """Yields the variables of the posteriors and of the likelihood, by name."""
    for layer in model.variational_layers:
        for weight in layer.variational_weights:
            for name, variable in weight.variables.items():
                yield f"{layer.name}/{weight.name}/{name}", variable
    for variable in model.likelihood.variables:
        yield f"likelihood/{variable.name}", variable
