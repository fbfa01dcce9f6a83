"""Laplace approximations of a dense network with laplace-torch.

`benchmarks/laplace_peers.py` runs `python fit_laplace_torch.py INPUT.npz OUTPUT.npz`.
The input has the weights of a network of `tanh` layers, data, prior precision, noise
and the runs; the output the posterior variances, the log evidence, the linearised
predictive and the processor seconds of the first and of the fastest fit of each run.
"""

import json
import signal
import sys
import time

import numpy as np
import torch
from laplace import Laplace
from laplace.curvature import BackPackEF, BackPackGGN, CurvlinopsEF, CurvlinopsGGN
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, TensorDataset

BACKENDS = {
    ("curvlinops", "ggn"): CurvlinopsGGN,
    ("curvlinops", "empirical_fisher"): CurvlinopsEF,
    ("backpack", "ggn"): BackPackGGN,
    ("backpack", "empirical_fisher"): BackPackEF,
}
# Seconds after which a fit is given up: another backend is faster.
MOST_SECONDS = 20.0
STRUCTURES = {"diagonal": "diag", "kron": "kron", "full": "full"}


def network(data, layers):
    """Returns the network with the given weights."""
    modules = []
    for i in range(layers):
        kernel, bias = data[f"kernel_{i}"], data[f"bias_{i}"]
        linear = torch.nn.Linear(*kernel.shape)
        linear.weight.data = torch.tensor(np.ascontiguousarray(kernel.T))
        linear.bias.data = torch.tensor(bias)
        modules.append(linear)
        if i < layers - 1:
            modules.append(torch.nn.Tanh())
    return torch.nn.Sequential(*modules)


def batches(x, y, batch_size):
    """Returns a loader that slices a batch at a time, which is the fastest one."""
    rows = TensorDataset(x, y)
    sampler = BatchSampler(SequentialSampler(rows), batch_size, drop_last=False)
    return DataLoader(rows, sampler=sampler, batch_size=None)


def in_order_of_keras(values, data, layers):
    """Returns a vector of weights with kernels [in, out], as Keras has them."""
    parts, first = [], 0
    for i in layers:
        inputs, outputs = data[f"kernel_{i}"].shape
        kernel = values[first : first + inputs * outputs].reshape(outputs, inputs)
        first += inputs * outputs
        parts += [kernel.T.ravel(), values[first : first + outputs]]
        first += outputs
    return np.concatenate(parts)


def give_up(*_):
    """Ends a fit."""
    raise TimeoutError(f"a fit takes more than {MOST_SECONDS:g} s")


def main(given, answer):
    """Fits all runs of the input with every backend that can."""
    with np.load(given, allow_pickle=False) as arrays:
        data = dict(arrays)
    settings = json.loads(str(data["settings"]))
    torch.set_num_threads(1)
    # A timer of processor time would make the clock of processor time coarse.
    signal.signal(signal.SIGALRM, give_up)
    layers, regression = settings["layers"], settings["regression"]
    x = torch.tensor(data["x"])
    y = torch.tensor(data["y"]) if regression else torch.tensor(data["y"]).long()
    loader = batches(x, y, settings["batch_size"])
    found, failed = {}, []
    for run in settings["runs"]:
        for backend in ("curvlinops", "backpack"):
            name = "/".join([*run.values(), backend])
            try:
                # A backend changes the modules that it extends.
                model = network(data, layers)
                result = fitted(model, loader, run, backend, settings, data)
            except Exception as error:  # a backend may not support a structure
                signal.setitimer(signal.ITIMER_REAL, 0.0)
                failed.append(f"{name}: {type(error).__name__}: {error}"[:200])
                continue
            found |= {f"{name}/{key}": value for key, value in result.items()}
    np.savez(answer, failed=np.array(failed), **found)


def fitted(model, loader, run, backend, settings, data):
    """Returns what one approximation gives, and the fewest seconds of its fit."""
    regression = settings["regression"]
    options = {
        "likelihood": "regression" if regression else "classification",
        "subset_of_weights": run["subset"],
        "hessian_structure": STRUCTURES[run["structure"]],
        "prior_precision": settings["prior_precision"],
        "backend": BACKENDS[backend, run["curvature"]],
    }
    if regression:
        options["sigma_noise"] = settings["noise"]
    seconds = []
    # The first fit is the cold one.
    for _ in range(1 + settings["repeats"]):
        laplace = Laplace(model, **options)
        start = time.process_time()
        signal.setitimer(signal.ITIMER_REAL, MOST_SECONDS)
        laplace.fit(loader)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        if run["structure"] == "full":
            _ = laplace.posterior_scale
        seconds.append(time.process_time() - start)
    if run["structure"] == "kron":
        variances = laplace.posterior_precision.diag(exponent=-1).detach().numpy()
    elif run["structure"] == "diagonal":
        variances = laplace.posterior_variance.detach().numpy()
    else:
        variances = np.diag(laplace.posterior_covariance.detach().numpy())
    last = settings["layers"] - 1
    layers = range(last if run["subset"] == "last_layer" else 0, last + 1)
    result = {
        "log_evidence": float(laplace.log_marginal_likelihood()),
        "seconds": min(seconds[1:]),
        "cold": seconds[0],
        "variances": in_order_of_keras(variances, data, layers),
    }
    x_test = torch.tensor(data["x_test"])
    if regression:
        mean, covariance = laplace(x_test)
        result["mean"] = mean.detach().numpy()
        result["variance"] = covariance.detach().numpy()
    else:
        torch.manual_seed(0)
        # Draws of the linearised network, as ours.
        shares = laplace(x_test, link_approx="mc", n_samples=settings["samples"])
        result["probabilities"] = shares.detach().numpy()
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
