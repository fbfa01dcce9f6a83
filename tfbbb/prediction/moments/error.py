"""What is raised where no rule propagates means and variances."""

from typing import Any


class MomentsError(ValueError):
    """An operation of a model through which means and variances cannot be propagated.

    Attributes:
        operation: Name of the layer or operation.
        kind: Its class.
    """

    def __init__(self, operation: Any, reason: str):
        self.operation: str = operation.name
        self.kind = type(operation).__name__
        super().__init__(
            f"Means and variances cannot be propagated through '{self.operation}': "
            f"{reason}. Predict with `method='local'` or `method='weight'`, or teach "
            "the class by `tfbbb.prediction.moments.register_moments`. "
            f"Received: {self.kind}"
        )
