"""A version whose posterior is the prior of the next one."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np

from tfbbb.data import Schema
from tfbbb.export.manifest import Manifest, ManifestError
from tfbbb.model import BayesianModel
from tfbbb.priors import FromPosterior
from tfbbb.training.network import make_network
from tfbbb.training.record import RECORD_FILE, TrainingRecord, continuation_error
from tfbbb.training.spec import JobSpec

# In `assets.extra` of a SavedModel, beside the record.
POSTERIOR_FILE = "posterior.npz"


def continuation_files(
    model: BayesianModel, schema: Schema, spec: JobSpec
) -> dict[str, bytes]:
    """Returns the files, by name, that `ParentVersion.read` needs of a version."""
    archive = io.BytesIO()
    learned = {name: variable.numpy() for name, variable in learned_variables(model)}
    np.savez(archive, allow_pickle=False, **learned)
    return {
        RECORD_FILE: TrainingRecord(spec, schema).to_json(),
        POSTERIOR_FILE: archive.getvalue(),
    }


@dataclass(frozen=True)
class ParentVersion:
    """What a version has learned, and from what.

    Training goes on by Bayes' rule, rows upon rows:

        p(w | yesterday's rows, today's) ~ p(today's rows | w) p(w | yesterday's rows)

    with yesterday's q(w) in the place of its posterior. What has no q keeps no memory
    of its rows: the learned parameters of the noise are point estimates, from which
    training starts and which today's rows alone then move.

    Attributes:
        record: What was trained, and by what the table was read.
        learned: The values of all that was learned, by name.
    """

    record: TrainingRecord
    learned: Mapping[str, np.ndarray]

    @classmethod
    def read(cls, version: Path) -> "ParentVersion":
        """Reads what a version's directory has of its training.

        Raises:
            SpecError: It has not what is needed, or what is damaged.
        """
        record = TrainingRecord.read(version)
        try:
            Manifest.read(version).verify(version)
            with np.load(
                version / "assets.extra" / POSTERIOR_FILE, allow_pickle=False
            ) as archive:
                return cls(record, dict(archive))
        except FileNotFoundError:
            reason = f"it was written without {POSTERIOR_FILE}"
            raise continuation_error(version, reason) from None
        except ManifestError as error:
            raise continuation_error(version, str(error).rstrip(".")) from None

    def network(self, seed: int) -> BayesianModel:
        """Makes a network that knows what was learned, as its prior and its start.

        Args:
            seed: Seed of the noise.
        """
        schema, network = self.record.schema, self.record.spec.model
        parent = make_network(schema, network, seed=seed)
        self._assign_to(parent)
        child = make_network(schema, network, seed=seed, prior=FromPosterior(parent))
        self._assign_to(child)
        return child

    def _assign_to(self, model: BayesianModel) -> None:
        for name, variable in learned_variables(model):
            variable.assign(self.learned[name])


def learned_variables(model: BayesianModel) -> Iterator[tuple[str, keras.Variable]]:
    """Yields what training changes: posteriors and what the likelihood has learned."""
    for layer in model.variational_layers:
        for weight in layer.variational_weights:
            for name, variable in weight.variables.items():
                yield f"{layer.name}/{weight.name}/{name}", variable
    for variable in model.likelihood.variables:
        yield f"likelihood/{variable.name}", variable
