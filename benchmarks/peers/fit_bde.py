"""Bayesian deep ensembles of `sklearn-contrib-bde`, sampled by MILE.

    python fit_bde.py INPUT.npz OUTPUT.npz

The settings are those of the library's own example of regression. Reads `x_train`,
`y_train`, `x_test`, `seed`, `members`, `epochs`, `warmup_steps` and `samples` of each
member; writes `means` and `stddevs` [draws, rows], `seconds` and `versions`.
"""

import os
import sys
import time
from importlib import metadata

import numpy as np

# One device samples all members: version 1.0.2 fails on several with JAX 0.10.
# JAX reads the variable when it is imported.
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=1"

from bde import BdeRegressor
from bde.loss import GaussianNLL

MOST_DRAWS = 400


def main() -> None:
    """Fits and predicts."""
    given = np.load(sys.argv[1])
    start = time.perf_counter()
    x, x_test = standardized(given["x_train"], given["x_test"])
    y = given["y_train"]
    shift, scale = y.mean(), y.std()
    model = BdeRegressor(
        hidden_layers=[16, 16],
        n_members=int(given["members"]),
        seed=int(given["seed"]),
        loss=GaussianNLL(),
        epochs=int(given["epochs"]),
        validation_split=0.15,
        lr=1e-3,
        weight_decay=1e-4,
        warmup_steps=int(given["warmup_steps"]),
        n_samples=int(given["samples"]),
        n_thinning=2,
        patience=10,
    )
    model.fit(x=x, y=((y - shift) / scale).astype("float32"))
    # [members, draws, rows, 2]
    raw = np.asarray(model.predict(x_test, raw=True), dtype="float64")
    raw = raw.reshape(-1, *raw.shape[2:])
    raw = raw[:: max(len(raw) // MOST_DRAWS, 1)]
    # The scale of the library's likelihood.
    stddevs = np.logaddexp(raw[..., 1], 0.0) + 1e-6
    np.savez(
        sys.argv[2],
        means=shift + scale * raw[..., 0],
        stddevs=scale * stddevs,
        seconds=time.perf_counter() - start,
        versions=f"sklearn-contrib-bde {metadata.version('sklearn-contrib-bde')}",
    )


def standardized(train: np.ndarray, *others: np.ndarray) -> list[np.ndarray]:
    """Returns arrays in the units of the first; constant columns become 0."""
    shift, scale = train.mean(axis=0), train.std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    return [((x - shift) / scale).astype("float32") for x in (train, *others)]


if __name__ == "__main__":
    main()
