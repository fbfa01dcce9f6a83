"""Adds two families, and trains and exports a network of them.

    python -m tests.bayes.families.added.train DIRECTORY

A program of its own, because other tests must not see the families. It writes what it
finds to `answers.json` in the directory.
"""

import json
import sys
from pathlib import Path

import tests.bayes.families.added.laplace
import tests.bayes.families.added.logistic  # noqa: F401  (the two add their families)
import tfbbb
from tfbbb.training.spec import JobSpec

# Specs are built from the families, without TensorFlow.
assert not {"keras", "tensorflow"} & set(sys.modules)


def train(directory: Path) -> dict[str, object]:
    """Trains and exports a network, and returns what its families answer."""
    from tfbbb import likelihoods, posteriors

    first = likelihoods.Normal(scale=2.0)
    import keras
    import numpy as np
    import pyarrow as pa

    from tfbbb.training import train_table

    x = np.linspace(-1.0, 1.0, 20)
    table = {"x": x.tolist(), "y": (2.0 * x).tolist()}
    spec = JobSpec.model_validate(
        {
            "target": "y",
            "model": {
                "posterior": {"name": "laplace", "initial_scale": 0.2},
                "likelihood": "logistic",
                "hidden_units": [3],
                "members": 1,
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
        "first_is_layer": isinstance(first, keras.Layer),
        "first": first.get_config(),
        "schema": JobSpec.model_json_schema(),
        "names": posteriors.names() + likelihoods.names(),
        "posterior": repr(posteriors.get(posteriors.serialize(kernel.posterior))),
        "likelihood": trained.model.likelihood.get_config(),
        "parameters": spec.model.posterior.make().num_parameters(tuple(kernel.shape)),
        "variables": sum(int(np.size(v)) for v in kernel.variables.values()),
        "live": trained.model.predictive(inputs, num_samples=8).mean.tolist(),
        "loaded": loaded.predictive(inputs, num_samples=8).mean.tolist(),
        "support": loaded.manifest.targets.support.description,
    }


if __name__ == "__main__":
    target = Path(sys.argv[1])
    (target / "answers.json").write_text(json.dumps(train(target)))
