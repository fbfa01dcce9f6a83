"""What a closed form does to means and variances at one place of a network."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Operation:
    """What happens to means and variances at one place of a model.

    Attributes:
        name: Name of the layer or operation, behind those of the models it is in.
        kind: Its class.
        exact: Whether it adds no error: means and variances of its outputs are those
            of the model where those of its inputs are. A model all of whose operations
            are exact has exact moments.
        why: Why it is not exact, empty where it is.
    """

    name: str
    kind: str
    exact: bool
    why: str = ""
