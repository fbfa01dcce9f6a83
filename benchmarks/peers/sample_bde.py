"""Draws of `sklearn-contrib-bde` from the posterior of one hidden layer.

    python sample_bde.py INPUT.npz OUTPUT.npz

Reads standardised `x` and `y`, `units`, `chains`, `seed`, `epochs`, `warmup` and
`draws` of each chain; every step of a chain is a draw. Writes

- `states` [draws, chains, D], in the order kernel, bias, kernel, bias, and the
  `log_prob` [chains] of the last ones;
- the processor seconds of training and warm-up (`warmup_seconds`, with compilation) and
  of the draws (`seconds`, without);
- `versions`.
"""

import os
import sys
import time
from importlib import metadata

import numpy as np

# JAX reads the variable when it is imported.
os.environ["XLA_FLAGS"] = (
    "--xla_force_host_platform_device_count=1 --xla_cpu_multi_thread_eigen=false"
)

import jax
from bde import BdeRegressor
from bde.loss import GaussianNLL

# Draws of a call that takes hardly longer than its compilation.
_FEW = 10


class TimedRegressor(BdeRegressor):
    """Keeps the processor seconds of its draws, without those of compilation."""

    def _draw_samples(self, log_posterior, *arguments):
        draws = self.n_samples
        self.ready = time.process_time()
        self.n_samples = _FEW
        _, compilation = _timed(super()._draw_samples, log_posterior, *arguments)
        self.n_samples = draws
        states, both = _timed(super()._draw_samples, log_posterior, *arguments)
        self.seconds = (both - compilation) * draws / (draws - _FEW)
        last = jax.tree_util.tree_map(lambda values: values[:, -1], states)
        self.log_prob = jax.vmap(log_posterior)(last)
        return states


def _timed(function, *arguments):
    """Returns a result and the processor seconds until it is there."""
    begin = time.process_time()
    result = jax.block_until_ready(function(*arguments))
    return result, time.process_time() - begin


def main() -> None:
    """Trains and samples."""
    # Before JAX makes its threads: all of them share one core.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    given = np.load(sys.argv[1])
    begin = time.process_time()
    model = TimedRegressor(
        hidden_layers=[int(given["units"])],
        activation="silu",
        n_members=int(given["chains"]),
        seed=int(given["seed"]),
        loss=GaussianNLL(),
        epochs=int(given["epochs"]),
        validation_split=0.15,
        lr=1e-3,
        weight_decay=1e-4,
        patience=10,
        warmup_steps=int(given["warmup"]),
        n_samples=int(given["draws"]),
        n_thinning=1,
    )
    model.fit(x=given["x"], y=given["y"])
    # A list of (kernel, bias), [chains, draws, ...] each.
    leaves = jax.tree_util.tree_leaves(model.positions_eT_)
    flat = [np.asarray(leaf).reshape(*leaf.shape[:2], -1) for leaf in leaves]
    np.savez(
        sys.argv[2],
        states=np.swapaxes(np.concatenate(flat, axis=-1), 0, 1),
        log_prob=np.asarray(model.log_prob),
        warmup_seconds=model.ready - begin,
        seconds=model.seconds,
        versions=f"sklearn-contrib-bde {metadata.version('sklearn-contrib-bde')}",
    )


if __name__ == "__main__":
    main()
