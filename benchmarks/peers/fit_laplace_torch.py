"""Laplace approximations of a dense network with laplace-torch.

Run as `python fit_laplace_torch.py INPUT.npz OUTPUT.npz` by `benchmarks/laplace.py`.
The input has the weights of a network of `tanh` layers, data, prior precision, noise
and the runs; the output the posterior variances, the log evidence, the linearised
predictive and the processor seconds of each run.
"""

import json
import sys
import time

import numpy as np
import torch
from laplace import Laplace
from laplace.curvature import BackPackEF, BackPackGGN, CurvlinopsEF, CurvlinopsGGN
from torch.utils.data import DataLoader, TensorDataset

BACKENDS = {
    ("curvlinops", "ggn"): CurvlinopsGGN,
    ("curvlinops", "empirical_fisher"): CurvlinopsEF,
    ("backpack", "ggn"): BackPackGGN,
    ("backpack", "empirical_fisher"): BackPackEF,
}
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


def in_order_of_keras(values, data, layers):
    """Returns a vector of all weights with kernels [in, out], as Keras has them."""
    parts, first = [], 0
    for i in range(layers):
        inputs, outputs = data[f"kernel_{i}"].shape
        kernel = values[first : first + inputs * outputs].reshape(outputs, inputs)
        first += inputs * outputs
        parts += [kernel.T.ravel(), values[first : first + outputs]]
        first += outputs
    return np.concatenate(parts)


def main(given, answer):
    """Fits all runs of the input with every backend that can."""
    with np.load(given, allow_pickle=False) as arrays:
        data = dict(arrays)
    settings = json.loads(str(data["settings"]))
    torch.set_num_threads(1)
    layers, regression = settings["layers"], settings["regression"]
    x = torch.tensor(data["x"])
    y = torch.tensor(data["y"]) if regression else torch.tensor(data["y"]).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=settings["batch_size"])
    found, failed = {}, []
    for run in settings["runs"]:
        for backend in ("curvlinops", "backpack"):
            name = "/".join([*run.values(), backend])
            try:
                # A backend changes the modules that it extends.
                model = network(data, layers)
                result = fitted(model, loader, run, backend, settings, data)
            except Exception as error:  # a backend may not support a structure
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
    for _ in range(settings["repeats"]):
        laplace = Laplace(model, **options)
        start = time.process_time()
        laplace.fit(loader)
        if run["structure"] == "full":
            _ = laplace.posterior_scale
        seconds.append(time.process_time() - start)
    result = {
        "log_evidence": float(laplace.log_marginal_likelihood()),
        "seconds": min(seconds),
    }
    count = sum(p.numel() for p in model.parameters())
    if run["subset"] == "all":
        if run["structure"] == "kron":
            variances = laplace.posterior_precision.diag(exponent=-1).detach().numpy()
        elif run["structure"] == "diagonal":
            variances = laplace.posterior_variance.detach().numpy()
        else:
            variances = np.diag(laplace.posterior_covariance.detach().numpy())
        assert len(variances) == count
        result["variances"] = in_order_of_keras(variances, data, settings["layers"])
    if "x_test" in data:
        x_test = torch.tensor(data["x_test"])
        if regression:
            mean, covariance = laplace(x_test)
            result["mean"] = mean.detach().numpy()
            result["variance"] = covariance.detach().numpy()
    return result


if __name__ == "__main__":
    main(*sys.argv[1:])
