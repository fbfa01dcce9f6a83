"""Training whose loss leaves the finite numbers."""


class TrainingDivergedError(ValueError):
    """Training came to a loss or to held-out figures that are not finite."""

    def __init__(self, learning_rate: float):
        super().__init__(
            "Training diverged: its loss or held-out figures are not finite; lower "
            f"`learning_rate`. Received: learning_rate={learning_rate:g}"
        )
