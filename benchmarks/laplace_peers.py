"""Our Laplace approximations beside those of laplace-torch, with equal weights.

    python benchmarks/laplace_peers.py [--rows 2000] [--repeats 5]

laplace-torch runs in an environment of its own, on one core as ours, with the same
batches. For each structure, subset of the weights and curvature the table has the
largest relative difference of the posterior variances, the difference of the log
evidence in nats, the largest difference of the linearised predictive (of a variance,
relative; of a probability, in standard errors of the draws of both), and the processor
seconds of a fit: of laplace-torch with its faster backend. Cold is the first fit of a
network, and warm the fastest of the others. Our fit returns a new Keras model; the
seconds that making one takes are above each table.
"""

import argparse
import itertools
import json
import os
import time
from pathlib import Path
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
from tfbbb.model.conversion import with_posterior

PEER = Peer("fit_laplace_torch", ("laplace-torch==0.3",))
PRECISION = 2.0
# Widths (inputs, units, outputs), the noise of a regression, and the number of rows.
NETWORKS: dict[str, tuple[tuple[int, ...], float | None, int]] = {
    "regression, 501 weights": ((8, 50, 1), 0.5, 1000),
    "regression of variance 1/2, 501 weights": ((8, 50, 1), 0.5**0.5, 1000),
    "5 classes, 785 weights": ((20, 30, 5), None, 1000),
    "10 classes, 13 910 weights": ((128, 100, 10), None, 1000),
    # The size of MNIST's digits.
    "10 classes, 79 510 weights": ((784, 100, 10), None, 10_000),
}
# For a regression the peer sums `2 (r J)^T (r J) / noise^2` of residuals r, where the
# gradients of the log likelihood give `(r J)^T (r J) / noise^4`: they are equal for a
# variance of 1/2 alone.
NOISE_OF_EQUAL_FISHER = (None, 0.5**0.5)
# Structures whose matrices fit a network of so many weights.
MOST_WEIGHTS = {"diagonal": 10**6, "kron": 10**6, "full": 1100}
TEST_ROWS = 50
# Draws of the probabilities of classes.
SAMPLES = 1000


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
    """Returns what our approximation gives, and the seconds of its fits."""
    method = Laplace(
        run["structure"],
        run["subset"],
        curvature=run["curvature"],
        prior_precision=PRECISION,
    )
    seconds = []
    for _ in range(1 + options.repeats):
        start = time.process_time()
        new = method.fit(
            model, data["x"], data["y"], batch_size=options.batch_size, verbose=0
        )
        seconds.append(time.process_time() - start)
    layers = new.variational_layers
    chosen = layers[-1:] if run["subset"] == "last_layer" else layers
    weights = [w for layer in chosen for w in layer.variational_weights]
    found: dict[str, Any] = {
        "log_evidence": new.log_evidence,
        "seconds": min(seconds[1:]),
        "cold": seconds[0],
        "variances": np.concatenate([np.ravel(weight.variance) for weight in weights]),
    }
    if model.likelihood.task == "classification":
        predictive = new.predictive(
            data["x_test"], num_samples=SAMPLES, method="linearised", seed=0
        )
        found["probabilities"] = np.asarray(predictive.probabilities)
    else:
        found["variance"] = linearised_variance(new, chosen, data["x_test"])
    return found


def seconds_of_a_model(model: tfbbb.BayesianModel, repeats: int) -> float:
    """Returns the fewest seconds that a new model of the network takes."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        with_posterior(model, "mean_field_normal")
        seconds.append(time.process_time() - start)
    return min(seconds)


def linearised_variance(
    model: tfbbb.BayesianModel, layers: Any, x: np.ndarray
) -> np.ndarray:
    """Returns the variance of the first output of the linearised network, [rows].

    It is J Cov J^T, with the covariance that the posteriors of the model hold.
    """
    network = NetworkFunction(model)
    means = [value[0] for value in network.split(network.means())]
    rows = RowPass(network, means, layers, x)
    directions = np.zeros((len(x), 1, rows.outputs.shape[-1]), "float32")
    directions[..., 0] = 1.0
    derivatives = rows.derivatives(directions)
    total, joint = np.zeros(len(x)), []
    for layer in layers:
        for weight in layer.variational_weights:
            slopes = derivatives.jacobian(layer, weight)[:, 0]
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
    parser.add_argument("--repeats", type=int, default=5, help="warm fits of each kind")
    parser.add_argument("--batch-size", type=int, default=500)
    parser.add_argument(
        "--network",
        choices=NETWORKS,
        action="append",
        help="only this one, again; the figures of the others stay",
    )
    options = parser.parse_args()
    results: dict[str, Any] = {}
    if options.network:
        results = json.loads(Path(__file__).with_suffix(".json").read_text())
    for name in options.network or NETWORKS:
        sizes, noise, rows = NETWORKS[name]
        data = weights_and_rows(sizes, noise, rows)
        runs = runs_of(sizes, noise)
        settings = {
            "layers": len(sizes) - 1,
            "regression": noise is not None,
            "batch_size": options.batch_size,
            "prior_precision": PRECISION,
            "noise": noise,
            "repeats": options.repeats,
            "samples": SAMPLES,
            "runs": runs,
            "peer": PEER.requirements,
        }
        try:
            peer = PEER.run(settings=json.dumps(settings), **data)
        except SkippedError as error:
            results[name] = {"skipped": str(error)}
            print(f"{name}: {error}")
            continue
        making = seconds_of_a_model(network(data, sizes, noise), options.repeats)
        # A network of its own for each run, whose first fit is the cold one.
        found = [
            compared(peer, ours(network(data, sizes, noise), data, run, options), run)
            for run in runs
        ]
        results[name] = {
            "machine": machine(),
            "settings": {key: settings[key] for key in settings if key != "runs"},
            "rows": rows,
            "making_a_model": making,
            "runs": found,
            "failed": [str(f) for f in peer["failed"]],
        }
        columns = {
            **{key: key for key in ("structure", "subset", "curvature", "variances")},
            **{"evidence": "evidence", "predictive": "predictive"},
            **{"seconds": "ours, s", "theirs": "theirs, s"},
            **{"cold": "ours, cold, s", "theirs_cold": "theirs, cold, s"},
        }
        print_table(
            f"{name}, {rows} rows; making a model takes {making:.2g} s",
            list(columns.values()),
            [[_text(row.get(key)) for key in columns] for row in found],
        )
        write_json(__file__, results)


def runs_of(sizes: tuple[int, ...], noise: float | None) -> list[dict[str, str]]:
    """Returns the structures, curvatures and subsets that are compared."""
    weights = [(width + 1) * units for width, units in itertools.pairwise(sizes)]
    return [
        {"structure": structure, "curvature": curvature, "subset": subset}
        for subset, size in (("all", sum(weights)), ("last_layer", weights[-1]))
        for structure, most in MOST_WEIGHTS.items()
        for curvature in ("ggn", "empirical_fisher")
        if size <= most and (curvature == "ggn" or noise in NOISE_OF_EQUAL_FISHER)
    ]


def compared(peer: Any, own: dict[str, Any], run: dict[str, str]) -> dict[str, Any]:
    """Returns the differences of one run, with the faster backend of the peer."""
    key = "/".join(run.values())
    seconds = {
        backend: float(peer[f"{key}/{backend}/seconds"])
        for backend in ("curvlinops", "backpack")
        if f"{key}/{backend}/seconds" in peer
    }
    row: dict[str, Any] = {**run, "seconds": own["seconds"], "cold": own["cold"]}
    if not seconds:
        return row
    backend = min(seconds, key=seconds.__getitem__)
    theirs = {
        name: peer[f"{key}/{backend}/{name}"]
        for name in ("variances", "variance", "probabilities", "log_evidence", "cold")
        if f"{key}/{backend}/{name}" in peer
    }
    row |= {"theirs": seconds[backend], "backend": backend}
    row["theirs_cold"] = float(theirs["cold"])
    row["variances"] = _difference(own["variances"], theirs["variances"])
    if len(seconds) > 1:
        row["between_backends"] = _difference(
            *(peer[f"{key}/{backend}/variances"] for backend in seconds)
        )
    row["evidence"] = abs(own["log_evidence"] - float(theirs["log_evidence"]))
    if "variance" in theirs:
        row["predictive"] = _difference(own["variance"], np.ravel(theirs["variance"]))
    else:
        shares = theirs["probabilities"]
        # A draw of a share p varies by p (1 - p) at most.
        error = np.sqrt(2.0 * np.maximum(shares * (1.0 - shares), 1e-4) / SAMPLES)
        difference = np.abs(own["probabilities"] - shares)
        row["predictive"] = float(np.max(difference / error))
        row["largest_difference_of_probabilities"] = float(np.max(difference))
    return row


def _difference(own: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.max(np.abs(own / theirs - 1.0)))


def _text(value: Any) -> str:
    return f"{value:.2g}" if isinstance(value, float) else str(value or "")


if __name__ == "__main__":
    main()
