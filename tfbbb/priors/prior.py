"""The contract of a prior."""

from typing import Any

from tfbbb.strategy import Strategy


class Prior(Strategy):
    """A prior p(w) over one weight tensor `w`."""

    def log_prob(self, weights: Any, fan_in: int) -> Any:
        """Returns log p(weights), summed over the weights: a scalar, in nats.

        Args:
            weights: float32 tensor of the weight's shape.
            fan_in: Number of inputs that one output unit sums over (1 for a bias).
        """
        raise NotImplementedError
