"""Weights of a mixture of models by their densities of held-out rows (stacking)."""

import numpy as np

from tfbbb.base.types import ArrayLike

# A weight below this share is one that the solver could not tell from 0.
_LEAST_WEIGHT = 1e-6


def stacking_weights(log_densities: ArrayLike) -> np.ndarray:
    """Returns the weights of models that maximise the log score of their mixture.

        max_w  (1/n) sum_i log sum_k w_k p_k(y_i),    w_k >= 0,  sum_k w_k = 1

    with the predictive densities p_k(y_i) of n rows that no model was trained on (Yao,
    Vehtari, Simpson and Gelman 2018, equation 4). The problem is convex. At the optimum
    the mean of `p_k / p` is 1 for every model with a weight, and no more for others.

    Example:

    >>> import numpy as np
    >>> from tfbbb.model.stacking import stacking_weights
    >>> stacking_weights(np.log([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]))
    array([0.70833333, 0.29166667])

    Args:
        log_densities: log p_k(y_i) in nats, [n, models].

    Returns:
        The weights, [models]; models that the mixture does not need have exactly 0.

    Raises:
        ValueError: The array has another shape or no rows, has a NaN, or a row is
            impossible under every model.
    """
    from scipy import optimize

    logs = np.asarray(log_densities, np.float64)
    if logs.ndim != 2 or not logs.size:
        raise ValueError(
            "`log_densities` must be an array of shape [n, models] with n > 0. "
            f"Received: an array of shape {logs.shape}"
        )
    greatest = logs.max(axis=1, keepdims=True)
    if not np.isfinite(greatest).all():
        row = int(np.argmin(np.isfinite(greatest[:, 0])))
        raise ValueError(
            "Each row must have a finite log density under at least one model. "
            f"Received: {logs[row].tolist()} in row {row}"
        )
    # A factor of all densities of a row does not change the optimum.
    densities = np.exp(logs - greatest)
    models = densities.shape[1]
    if models == 1:
        return np.ones(1)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        mixture = np.maximum(densities @ weights, 1e-300)
        gradient = -(densities / mixture[:, np.newaxis]).mean(axis=0)
        return float(-np.log(mixture).mean()), gradient

    found = optimize.minimize(
        loss,
        np.full(models, 1.0 / models),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * models,
        constraints={
            "type": "eq",
            "fun": lambda weights: weights.sum() - 1.0,
            "jac": lambda weights: np.ones(models),
        },
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    weights = np.where(found.x < _LEAST_WEIGHT, 0.0, found.x)
    weights /= weights.sum()
    # Steps that never lower the score (Dempster, Laird and Rubin 1977) finish what the
    # solver leaves. Concavity bounds what is still to gain by max_k mean(p_k / p) - 1.
    for _ in range(10_000):
        ratios = -loss(weights)[1]
        if ratios.max() - 1.0 < 1e-10:
            break
        weights *= ratios
    return np.asarray(weights / weights.sum())
