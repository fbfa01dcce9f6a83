"""What posteriors, priors and estimators have in common: names and configs."""

import inspect
from collections.abc import Iterable
from typing import Any, Self

import keras

from tfbbb.snake_case import snake_case


class Strategy:
    """A small immutable object, equal to any other with the same class and config."""

    def get_config(self) -> dict[str, Any]:
        """Returns the keyword arguments that make an equal object.

        They are those of its declaration in `tfbbb.families`, if it has one.
        """
        return {
            name: getattr(self, name)
            for base in type(self).__mro__
            if not issubclass(base, Strategy)
            for name in inspect.get_annotations(base)
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Makes the object that `config` (from `get_config`) describes."""
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.get_config() == other.get_config()

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))

    def __repr__(self) -> str:
        arguments = ", ".join(f"{k}={v!r}" for k, v in self.get_config().items())
        return f"{type(self).__name__}({arguments})"


class Registry:
    """Resolves one kind of strategy by string name, config or object."""

    def __init__(self, kind: str, base: type, classes: Iterable[type]):
        self._kind = kind
        self._base = base
        self._classes = {snake_case(cls.__name__): cls for cls in classes}

    def names(self) -> list[str]:
        """Returns the string names of all that are registered."""
        return sorted(self._classes)

    def make(self, name: str, **options: Any) -> Any:
        """Makes the strategy of a string name with options of its own.

        Raises:
            ValueError: Where no such strategy exists, or an option is out of range.
        """
        if name not in self._classes:
            self.get(name)
        return self._classes[name](**options)

    def get(self, identifier: Any) -> Any:
        """Resolves `identifier`.

        Args:
            identifier: A string name, a config from `serialize`, or an object of the
                kind, which is returned as it is.

        Raises:
            ValueError: Where no such strategy exists; the message lists the names.
        """
        if isinstance(identifier, self._base):
            return identifier
        if isinstance(identifier, str) and identifier in self._classes:
            return self._classes[identifier]()
        if isinstance(identifier, dict):
            return self.deserialize(identifier)
        names = ", ".join(f"'{name}'" for name in self.names())
        raise ValueError(
            f"Unknown {self._kind}. Pass one of {names}, or an instance of "
            f"`{self._base.__name__}`. Received: {self._kind}={identifier!r}"
        )

    def serialize(self, strategy: Any) -> dict[str, Any]:
        """Returns a config, ready for JSON, that `deserialize` makes an equal of."""
        return keras.saving.serialize_keras_object(strategy)

    def deserialize(self, config: dict[str, Any]) -> Any:
        """Makes the object that `config` (from `serialize`) describes."""
        strategy = keras.saving.deserialize_keras_object(config)
        if not isinstance(strategy, self._base):
            raise ValueError(
                f"The config describes no {self._kind}. Received: config={config!r}"
            )
        return strategy
