"""Adds the families to the tables, and trains and exports a network of them.

    python -m tests.bayes.families.added.train DIRECTORY

A program of its own, because the tables of other tests must stay as they are. It writes
what it finds to `answers.json` in the directory.
"""

import json
import sys
from pathlib import Path

from tests.bayes.families.added.declarations import LaplacePosterior, LogisticLikelihood
from tfbbb.bayes.families.likelihoods import LIKELIHOODS
from tfbbb.bayes.families.posteriors import POSTERIORS


def add_families() -> None:
    """Does what the recipes say: one line in a table, one module in a package."""
    POSTERIORS["laplace"] = LaplacePosterior
    LIKELIHOODS["logistic"] = LogisticLikelihood

    # Specs are built from the tables, without TensorFlow.
    import tfbbb.training.spec

    assert "tensorflow" not in sys.modules

    for package in (tfbbb.posteriors, tfbbb.likelihoods):
        folder = Path(__file__).parent / package.__name__.rpartition(".")[2]
        package.__path__.append(str(folder))


def train(directory: Path) -> dict[str, object]:
    """Trains and exports a network, and returns what its families answer."""
    import numpy as np
    import pyarrow as pa

    import tfbbb
    from tfbbb import likelihoods, posteriors
    from tfbbb.training import JobSpec, train_table

    x = np.linspace(-1.0, 1.0, 20)
    table = {"x": x.tolist(), "y": (2.0 * x).tolist()}
    spec = JobSpec.model_validate(
        {
            "target": "y",
            "model": {
                "posterior": {"name": "laplace", "initial_scale": 0.2},
                "likelihood": "logistic",
                "hidden_units": [3],
                "numeric_encoding": "standardized",
            },
            "training": {"epochs": 1, "seed": 1},
        }
    )
    trained = train_table(table, spec)
    trained.export_to(directory / "exported")
    loaded = tfbbb.load(directory / "exported")
    inputs = trained.schema.inputs(pa.table(table))
    kernel = trained.model.variational_layers[0].kernel
    return {
        "schema": JobSpec.model_json_schema(),
        "names": posteriors.names() + likelihoods.names(),
        "posterior": repr(posteriors.get(posteriors.serialize(kernel.posterior))),
        "likelihood": trained.model.likelihood.get_config(),
        "parameters": spec.model.posterior.num_parameters(tuple(kernel.shape)),
        "variables": sum(int(np.size(v)) for v in kernel.variables.values()),
        "live": trained.model.predictive(inputs, num_samples=8).mean.tolist(),
        "loaded": loaded.predictive(inputs, num_samples=8).mean.tolist(),
        "support": loaded.manifest.targets.support.description,
    }


if __name__ == "__main__":
    add_families()
    target = Path(sys.argv[1])
    (target / "answers.json").write_text(json.dumps(train(target)))
