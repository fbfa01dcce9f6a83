"""Our NUTS: whether chains agree on five UCI sets, and draws beside those of others.

    tfbbb benchmark nuts_peers --data DIR [--sets yacht] [--methods NUTS]

The network has 50 units between standardised inputs and standardised targets, and the
rows are those of the first split of `uci`. The methods are

- `NUTS`: tanh units, priors N(0, 1 / fan-in), a learned noise;
- `NUTS with known noise`: the same with a noise of a tenth of the targets' deviation;
- `NUTS on the same model` and `sklearn-contrib-bde`: the posterior of that library,
  with units `silu`, priors N(0, 1) and a noise for each row. The library trains its
  members and samples by microcanonical Langevin dynamics (MCLMC), which has no test of
  acceptance; the settings are those of its own example of regression, with four
  members.

All quantities are functions of the draws, computed by the same code for all methods:
the outputs for 64 training rows and the learned noise, and the log density of the
posterior. Seconds are processor seconds of all threads, the time on one core.
"""

import argparse
import functools
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from environments import Peer
from program import (
    Comparison,
    add_table_options,
    argument_parser,
    markdown_table,
    run,
    skipped_lines,
)
from records import RecordFile
from standard_splits import Split, find_tables

PEER = Peer("sample_bde", ("sklearn-contrib-bde==1.0.2",))
THEIRS = "sklearn-contrib-bde"
SAME_MODEL = "NUTS on the same model"
KNOWN_NOISE = "NUTS with known noise"
METHODS = ("NUTS", KNOWN_NOISE, SAME_MODEL, THEIRS)
UNITS = 50
CHAINS = 4
_NOISE = 0.1
_LENGTHS = {"num_warmup": 500, "num_draws": 500, "max_tree_depth": 8}
_SMOKE_LENGTHS = {
    "num_warmup": 10,
    "num_draws": 10,
    "map_steps": 20,
    "max_tree_depth": 3,
    "jit_compile": False,
}
_PEER_LENGTHS = {"epochs": 200, "warmup": 5000, "draws": 10000}
_SMOKE_PEER_LENGTHS = {"epochs": 2, "warmup": 50, "draws": 100}

_R_HATS = ("r_hat", "r_hat_median", "r_hat_density")
_SIZES = {
    "ess_min": "smallest",
    "ess_median": "median",
    "ess_density": "density's",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Samples each posterior, prints the tables and writes the records."""
    parser = argument_parser(__doc__)
    add_table_options(parser, METHODS, splits=1)
    options = parser.parse_args(arguments)
    run(__file__, options, lambda measured: measure(measured, options), report)


def measure(measured: RecordFile, options: argparse.Namespace) -> None:
    """Adds one record per set and method."""
    for table in find_tables(options.data, options.sets):
        for method in options.methods:
            lengths = settings(method, smoke=options.smoke)
            measured.measure(
                {"set": table.name, "method": method},
                functools.partial(
                    sample, method, table.split(0, smoke=options.smoke), lengths
                ),
                settings={**lengths, "data": table.digest},
            )


def settings(method: str, *, smoke: bool) -> dict[str, Any]:
    """Returns the lengths of a method's chains."""
    if method == THEIRS:
        return _SMOKE_PEER_LENGTHS if smoke else _PEER_LENGTHS
    return _SMOKE_LENGTHS if smoke else _LENGTHS


def sample(method: str, split: Split, lengths: dict[str, Any]) -> dict[str, Any]:
    """Returns R-hat, effective sample sizes and seconds of one method."""
    from tfbbb.inference import NUTS

    x, y = standardized(split)
    target = posterior(method, x, y)
    if method == THEIRS:
        found = PEER.run(x=x, y=y, units=UNITS, chains=CHAINS, seed=0, **lengths)
        draws = found["states"]
        figures = {
            "seconds": float(found["seconds"]),
            "warmup_seconds": float(found["warmup_seconds"]),
            "density_difference": density_difference(target, found),
            "versions": str(found["versions"]),
        }
    else:
        nuts = NUTS(num_chains=CHAINS, members=1, **lengths)
        begin = time.process_time()
        draws, run_figures = nuts.sample(target)
        seconds = run_figures["sampling_processor_seconds"]
        figures = {
            "seconds": seconds,
            "warmup_seconds": time.process_time() - begin - seconds,
            **{
                name: run_figures[name]
                for name in ("divergences", "gradients_per_draw", "acceptance")
            },
        }
    return figures | agreement(target, draws)


def standardized(split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Returns inputs [rows, columns] and targets [rows] of mean 0 and deviation 1."""
    x, y = split.x_train, split.y_train
    scale = x.std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    x = (x - x.mean(axis=0)) / scale
    return x.astype("float32"), ((y - y.mean()) / y.std()).astype("float32")


def posterior(method: str, x: np.ndarray, y: np.ndarray) -> Any:
    """Returns the `LogPosterior` that a method samples."""
    import keras

    import tfbbb
    from tfbbb.inference.log_posterior import LogPosterior

    same_model = method in (SAME_MODEL, THEIRS)
    prior: Any = tfbbb.priors.Normal(scale=1.0) if same_model else "normal"
    layer = {
        "posterior": "point",
        "bias_posterior": "point",
        "prior": prior,
        "bias_prior": prior,
    }
    likelihood = tfbbb.likelihoods.Normal(
        heteroscedastic=same_model,
        scale=_NOISE if method == KNOWN_NOISE else None,
        standardize=False,
    )
    keras.utils.set_random_seed(0)
    inputs = keras.Input((x.shape[1],))
    units = tfbbb.layers.DenseVariational(
        UNITS, activation="silu" if same_model else "tanh", **layer
    )(inputs)
    outputs = tfbbb.layers.DenseVariational(likelihood.num_outputs(1), **layer)(units)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    return LogPosterior(model, x, y[:, np.newaxis])


def density_difference(target: Any, found: dict[str, np.ndarray]) -> float:
    """Returns how far our log density of the last draws is from the library's."""
    own = target(np.asarray(found["states"][-1], "float32")).numpy()
    return float(np.abs(own - found["log_prob"]).max())


def agreement(target: Any, draws: np.ndarray) -> dict[str, float]:
    """Returns R-hat and bulk effective sample sizes of draws [draws, chains, D]."""
    from tfbbb.inference.chain_diagnostics import (
        bulk_effective_size,
        function_values,
        in_blocks,
        r_hat,
    )

    values = function_values(target, draws)
    density = in_blocks(target, draws.reshape(-1, draws.shape[-1]))
    density = density.reshape(*draws.shape[:2], 1)
    sizes = bulk_effective_size(values)
    return {
        "r_hat": float(np.nanmax(r_hat(values))),
        "r_hat_median": float(np.nanmedian(r_hat(values))),
        "r_hat_density": float(r_hat(density)[0]),
        "ess_min": float(np.nanmin(sizes)),
        "ess_median": float(np.nanmedian(sizes)),
        "ess_density": float(bulk_effective_size(density)[0]),
        "log_density": float(density.mean()),
    }


def per_second(record: dict[str, Any], name: str) -> float:
    """Returns an effective sample size per processor second of the draws.

    NaN if no quantity of the draws varies.
    """
    size = record[name]
    return math.nan if size is None else float(size / record["seconds"])


def _text(value: float | None, form: str) -> str:
    return "" if value is None or math.isnan(value) else format(value, form)


def report(measured: RecordFile) -> str:
    """Returns one table of all sets and methods."""
    rows = [
        [
            f"{record['set']}, {record['method']}",
            *(_text(record[name], ".3f") for name in _R_HATS),
            *(_text(per_second(record, name), ".3g") for name in _SIZES),
            _text(record["warmup_seconds"], ".0f"),
            _text(record["seconds"], ".0f"),
        ]
        for record in measured.records
    ]
    header = [
        "set and method",
        "largest R-hat",
        "median R-hat",
        "R-hat of the density",
        "smallest ESS per second",
        "median ESS per second",
        "ESS of the density per second",
        "warm-up, s",
        "draws, s",
    ]
    return "\n\n".join([markdown_table(header, rows), *skipped_lines(measured)])


def compare(measured: RecordFile) -> list[Comparison]:
    """Returns effective samples per second beside those of the other library."""
    found = []
    for ours in measured.select(method=SAME_MODEL):
        for theirs in measured.select(method=THEIRS, set=ours["set"]):
            found += [
                Comparison(
                    f"{ours['set']} {what} ESS per second",
                    per_second(ours, name),
                    per_second(theirs, name),
                    THEIRS,
                )
                for name, what in _SIZES.items()
            ]
    return found


if __name__ == "__main__":
    main()
