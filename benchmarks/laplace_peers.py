"""Our Laplace approximations beside those of laplace-torch, with equal weights.

    python benchmarks/laplace_peers.py [--rows 2000] [--repeats 5]

laplace-torch runs in an environment of its own, on one core as ours. For each structure
and curvature the table has the largest relative differences of the posterior variances
and of the variances of the linearised network, the difference of the log evidence in
nats, and the processor seconds of a fit: of laplace-torch with its faster backend.
"""

import argparse
import itertools
import json
import os
import time
from typing import Any

# One core for each side.
os.environ |= {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1"}
os.environ["TF_NUM_INTEROP_THREADS"] = "1"

import keras
import numpy as np
from environments import Peer
from records import SkippedError
from timing import machine, print_table, write_json

import tfbbb
from tfbbb.inference import Laplace
from tfbbb.inference.network_function import NetworkFunction
from tfbbb.inference.row_derivatives import RowPass

PEER = Peer("fit_laplace_torch", ("laplace-torch==0.3",))
PRECISION = 2.0
# Widths (inputs, units, outputs), and the noise of a regression.
NETWORKS: dict[str, tuple[tuple[int, ...], float | None]] = {
    "regression, 501 weights": ((8, 50, 1), 0.5),
    "regression of variance 1/2, 501 weights": ((8, 50, 1), 0.5**0.5),
    "5 classes, 785 weights": ((20, 30, 5), None),
    "10 classes, 13 910 weights": ((128, 100, 10), None),
}
# For a regression the peer sums `2 (r J)^T (r J) / noise^2` of residuals r, where the
# gradients of the log likelihood give `(r J)^T (r J) / noise^4`: they are equal for a
# variance of 1/2 alone.
NOISE_OF_EQUAL_FISHER = (None, 0.5**0.5)
# Structures whose matrices fit a network of so many weights.
MOST_WEIGHTS = {"diagonal": 10**6, "kron": 10**6, "full": 1000}
TEST_ROWS = 50


def weights_and_rows(sizes: tuple[int, ...], noise: float | None, rows: int) -> Any:
    """Returns weights by name, as of a trained network, and rows that it explains."""
    random = np.random.default_rng(0)
    data: dict[str, np.ndarray] = {}
    x = random.normal(size=(rows + TEST_ROWS, sizes[0])).astype("float32")
    outputs = x
    for i, (width, units) in enumerate(itertools.pairwise(sizes)):
        kernel = random.normal(size=(width, units)) / np.sqrt(width)
        data[f"kernel_{i}"] = kernel.astype("float32")
        data[f"bias_{i}"] = 0.1 * random.normal(size=units).astype("float32")
        outputs = outputs @ data[f"kernel_{i}"] + data[f"bias_{i}"]
        if i < len(sizes) - 2:
            outputs = np.tanh(outputs)
    if noise is not None:
        y = outputs + noise * random.normal(size=outputs.shape)
        data["y"] = y[:rows].astype("float32")
    else:
        y = np.argmax(outputs + random.gumbel(size=outputs.shape), axis=1)
        data["y"] = y[:rows].astype("int32")
    return data | {"x": x[:rows], "x_test": x[rows:]}


def network(
    data: dict[str, np.ndarray], sizes: tuple[int, ...], noise: float | None
) -> tfbbb.BayesianModel:
    """Returns our network with the weights."""
    tensor = inputs = keras.Input((sizes[0],))
    for i, units in enumerate(sizes[1:]):
        activation = "tanh" if i < len(sizes) - 2 else None
        tensor = tfbbb.layers.DenseVariational(
            units, activation, posterior="point", bias_posterior="point"
        )(tensor)
    likelihood: Any = "categorical"
    if noise is not None:
        likelihood = tfbbb.likelihoods.Normal(scale=noise, standardize=False)
    model = tfbbb.BayesianModel(inputs, tensor, likelihood=likelihood)
    for i, layer in enumerate(model.variational_layers):
        layer.kernel.variables["mean"].assign(data[f"kernel_{i}"])
        layer.bias.variables["mean"].assign(data[f"bias_{i}"])
    return model


def ours(
    model: tfbbb.BayesianModel, data: dict[str, np.ndarray], run: Any, options: Any
) -> dict[str, Any]:
    """Returns what our approximation gives, and the fewest seconds of its fit."""
    method = Laplace(
        run["structure"],
        run["subset"],
        curvature=run["curvature"],
        prior_precision=PRECISION,
        noise=None,
    )
    seconds = []
    for _ in range(options.repeats):
        start = time.process_time()
        new = method.fit(
            model, data["x"], data["y"], batch_size=options.batch_size, verbose=0
        )
        seconds.append(time.process_time() - start)
    weights = [w for layer in new.variational_layers for w in layer.variational_weights]
    return {
        "log_evidence": new.log_evidence,
        "seconds": min(seconds),
        "variances": np.concatenate([np.ravel(weight.variance) for weight in weights]),
        "variance": linearised_variance(new, data["x_test"]),
    }


def linearised_variance(model: tfbbb.BayesianModel, x: np.ndarray) -> np.ndarray:
    """Returns the variance of the first output of the linearised network, [rows].

    It is J Cov J^T, with the covariance that the posteriors of the model hold.
    """
    network = NetworkFunction(model)
    means = [value[0] for value in network.split(network.means())]
    rows = RowPass(network, means, model.variational_layers, x)
    directions = np.zeros((len(x), 1, rows.outputs.shape[-1]), "float32")
    directions[..., 0] = 1.0
    derivatives = rows.derivatives(directions)
    total, joint = np.zeros(len(x)), []
    for layer in model.variational_layers:
        for weight in layer.variational_weights:
            slopes = derivatives.jacobian(layer, weight).numpy()[:, 0]
            if weight.posterior.shares_noise:
                joint.append(slopes @ weight.posterior.factor(weight.parameters))
                continue
            values = {k: v.numpy().astype(float) for k, v in weight.variables.items()}
            if "row_basis" not in values:
                total += slopes**2 @ np.ravel(weight.variance)
                continue
            matrices = slopes.reshape(-1, *values["log_scale"].shape)
            along = np.einsum(
                "ri,nrc,cj->nij", values["row_basis"], matrices, values["column_basis"]
            )
            total += np.sum((along * np.exp(values["log_scale"])) ** 2, axis=(1, 2))
    return total + np.sum(np.square(sum(joint)), axis=1) if joint else total


def main() -> None:
    """Measures, prints and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5, help="fits of each kind")
    parser.add_argument("--batch-size", type=int, default=500)
    options = parser.parse_args()
    results: dict[str, Any] = {
        "machine": machine(),
        "settings": vars(options),
        "peer": PEER.requirements,
    }
    for name, (sizes, noise) in NETWORKS.items():
        data = weights_and_rows(sizes, noise, options.rows)
        model = network(data, sizes, noise)
        size = sum(
            w.size for la in model.variational_layers for w in la.variational_weights
        )
        runs = [
            {"structure": structure, "curvature": curvature, "subset": "all"}
            for structure, most in MOST_WEIGHTS.items()
            for curvature in ("ggn", "empirical_fisher")
            if size <= most and (curvature == "ggn" or noise in NOISE_OF_EQUAL_FISHER)
        ]
        settings = {
            "layers": len(sizes) - 1,
            "regression": noise is not None,
            "batch_size": options.batch_size,
            "prior_precision": PRECISION,
            "noise": noise,
            "repeats": options.repeats,
            "runs": runs,
        }
        try:
            peer = PEER.run(settings=json.dumps(settings), **data)
        except SkippedError as error:
            results[name] = {"skipped": str(error)}
            print(f"{name}: {error}")
            continue
        rows = [compared(peer, ours(model, data, run, options), run) for run in runs]
        results[name] = {"runs": rows, "failed": [str(f) for f in peer["failed"]]}
        shown = ["structure", "curvature", "variances", "evidence", "linearised"]
        print_table(
            name,
            [*shown, "ours, s", "theirs, s"],
            [
                [_text(row.get(key)) for key in (*shown, "seconds", "theirs")]
                for row in rows
            ],
        )
    write_json(__file__, results)


def compared(peer: Any, own: dict[str, Any], run: dict[str, str]) -> dict[str, Any]:
    """Returns the differences of one run, with the faster backend of the peer."""
    key = "/".join(run.values())
    seconds = {
        backend: float(peer[f"{key}/{backend}/seconds"])
        for backend in ("curvlinops", "backpack")
        if f"{key}/{backend}/seconds" in peer
    }
    row: dict[str, Any] = {**run, "seconds": own["seconds"]}
    if not seconds:
        return row
    backend = min(seconds, key=seconds.__getitem__)
    theirs = {
        name: peer[f"{key}/{backend}/{name}"]
        for name in ("variances", "variance", "log_evidence")
        if f"{key}/{backend}/{name}" in peer
    }
    row |= {"theirs": seconds[backend], "backend": backend}
    row["variances"] = _difference(own["variances"], theirs["variances"])
    row["evidence"] = abs(own["log_evidence"] - float(theirs["log_evidence"]))
    if "variance" in theirs:
        row["linearised"] = _difference(own["variance"], np.ravel(theirs["variance"]))
    return row


def _difference(own: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.max(np.abs(own / theirs - 1.0)))


def _text(value: Any) -> str:
    return f"{value:.2g}" if isinstance(value, float) else str(value or "")


if __name__ == "__main__":
    main()
