"""What posteriors, priors and estimators have in common: names and configs."""

import importlib
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Self

import keras

from tfbbb.base.documented_arguments import document_inherited_arguments
from tfbbb.base.texts import snake_case
from tfbbb.base.types import Config, Options


class Strategy:
    """A small immutable object, equal to any other with the same class and config."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        document_inherited_arguments(cls)

    def get_config(self) -> Config:
        """Returns the keyword arguments that make an equal object.

        By default, the arguments of its declaration in `tfbbb.families`.
        """
        return {
            name: getattr(self, name)
            for base in type(self).__mro__
            if not issubclass(base, Strategy)
            for name in inspect.get_annotations(base)
        }

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """Makes the object that `config` (from `get_config`) describes."""
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.get_config() == other.get_config()

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))

    def __repr__(self) -> str:
        arguments = ", ".join(f"{k}={v!r}" for k, v in self.get_config().items())
        return f"{type(self).__name__}({arguments})"


class DeclaredClasses(Mapping[str, type]):
    """The classes of the families that a table of `tfbbb.families` declares, by name.

    The name `rank_1` is the class `Rank1` in the module `rank_1` of the package. A
    family that is added to the table later is found too.

    Args:
        declarations: The table: declarations by name.
        package: The package of the modules, such as `"tfbbb.bayes.posteriors"`.
    """

    def __init__(self, declarations: Mapping[str, type], package: str):
        self._declarations = declarations
        self._package = package

    def __getitem__(self, name: str) -> type:
        if name not in self._declarations:
            raise KeyError(name)
        module = importlib.import_module(f"{self._package}.{name}")
        found: type = getattr(module, name.title().replace("_", ""))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._declarations)

    def __len__(self) -> int:
        return len(self._declarations)


class Registry:
    """Resolves one kind of strategy by string name, config or object.

    Args:
        base: The base class of the kind.
        classes: The classes by name.
    """

    def __init__(self, base: type, classes: Mapping[str, type]):
        self._kind = snake_case(base.__name__)
        self._base = base
        self._classes = classes

    def names(self) -> list[str]:
        """Returns all names, sorted."""
        return sorted(self._classes)

    def make(self, name: str, **options: Any) -> Any:
        """Makes the object of a name with these arguments.

        Raises:
            ValueError: If the kind has no such name, or an argument is out of range.
        """
        if name not in self._classes:
            raise ValueError(self._unknown(name))
        return self._classes[name](**options)

    def get(self, identifier: Any) -> Any:
        """Resolves `identifier`.

        Args:
            identifier: A string name, a config from `serialize`, or an object of the
                kind, which is returned unchanged.

        Raises:
            ValueError: If the kind has no such name; the message lists the names.
        """
        if isinstance(identifier, self._base):
            return identifier
        if isinstance(identifier, dict):
            return self.deserialize(identifier)
        if isinstance(identifier, str):
            return self.make(identifier)
        raise ValueError(self._unknown(identifier))

    def _unknown(self, identifier: object) -> str:
        names = ", ".join(f"'{name}'" for name in self.names())
        return (
            f"Unknown {self._kind}. Pass one of {names}, or an instance of "
            f"`{self._base.__name__}`. Received: {self._kind}={identifier!r}"
        )

    def serialize(self, strategy: object) -> Options:
        """Returns a config, ready for JSON, from which `deserialize` makes an equal."""
        return keras.saving.serialize_keras_object(strategy)

    def deserialize(self, config: Config) -> Any:
        """Makes the object that `config` (from `serialize`) describes."""
        strategy = keras.saving.deserialize_keras_object(config)
        if not isinstance(strategy, self._base):
            raise ValueError(
                f"The config describes no {self._kind}. Received: config={config!r}"
            )
        return strategy
