"""What posteriors, priors and estimators have in common: names and configs."""

import functools
import inspect
from collections.abc import Callable
from typing import (
    Annotated,
    Any,
    Generic,
    Self,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from tfbbb.base.documented_arguments import document_inherited_arguments
from tfbbb.base.lazy import keras, when_keras_is_loaded
from tfbbb.base.suggestions import did_you_mean
from tfbbb.base.texts import snake_case
from tfbbb.base.types import Config

T = TypeVar("T")
_UNNAMED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Strategy:
    """A small immutable object, equal to any other with the same class and config."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        document_inherited_arguments(cls)

    def get_config(self) -> Config:
        """Returns the keyword arguments that make an equal object.

        By default, the attributes with the names of the arguments.
        """
        # mypy looks for the hash of a class in its instances.
        names = _arguments(type(self))  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in names}

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


@functools.cache
def _arguments(cls: type) -> dict[str, inspect.Parameter]:
    parameters = constructor_signature(cls).parameters.items()
    return {name: p for name, p in parameters if p.kind not in _UNNAMED}


def constructor_signature(
    cls: type, shared_options: type | None = None
) -> inspect.Signature:
    """Returns arguments of a constructor, which Keras' `__new__` hides from `help`.

    Options that it takes as `**options: Unpack[...]`, or without such a type those of
    `shared_options`, are among them by name, with the defaults of the base classes.
    """
    _, *own = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
    names = {p.name for p in own}
    for parameter in [p for p in own if p.kind is p.VAR_KEYWORD]:
        unpacked = get_args(parameter.annotation)
        if unpacked:
            own.remove(parameter)
        options = unpacked[0] if unpacked else shared_options
        defaults = _defaults(cls)
        own += [
            defaults[name].replace(kind=parameter.KEYWORD_ONLY)
            for name in getattr(options, "__annotations__", ())
            if name in defaults and name not in names
        ]
    return inspect.Signature(sorted(own, key=lambda p: p.kind))


def _defaults(cls: type) -> dict[str, inspect.Parameter]:
    """Returns the arguments with defaults of the base classes; the nearest one wins."""
    return {
        p.name: p
        for base in reversed(cls.__mro__[1:])
        for p in inspect.signature(base.__init__).parameters.values()  # type: ignore[misc]
        if p.default is not p.empty
    }


@functools.cache
def options(cls: type) -> dict[str, tuple[object, object]]:
    """Returns type and default of the arguments that a job may give, by name.

    They are the arguments of the constructor whose type is `Annotated` with a
    `pydantic.Field`. The default of a required argument is `...`.
    """
    # Constructors without annotations have no options.
    types = get_type_hints(cls.__init__, include_extras=True)  # type: ignore[misc]
    return {
        name: (types[name], ... if p.default is p.empty else p.default)
        for name, p in _arguments(cls).items()
        if get_origin(types.get(name)) is Annotated
    }


def saved_as(package: str) -> Callable[[type[T]], type[T]]:
    """Registers a class with Keras, as `package>Name` in saved files."""

    def register(cls: type[T]) -> type[T]:
        when_keras_is_loaded(
            lambda: keras.saving.register_keras_serializable(package)(cls)
        )
        return cls

    return register


class Registry(Generic[T]):
    """Resolves one kind of strategy by string name, config or object.

    `classes` are those of the base class by name, and `descriptions` what the class of
    a name is, in a sentence for users of jobs. `package` is that of the classes that
    `register` adds in saved files.
    """

    def __init__(
        self,
        base: type[T],
        classes: dict[str, type[T]] | None = None,
        package: str = "tfbbb",
    ):
        self._kind = snake_case(base.__name__)
        self._base = base
        self._package = package
        self.classes: dict[str, type[T]] = classes or {}
        self.descriptions: dict[str, str] = {}

    def register(
        self, name: str, description: str | None = None
    ) -> Callable[[type[T]], type[T]]:
        """Gives a class a string name in programs and jobs, and tells Keras of it."""

        def add(cls: type[T]) -> type[T]:
            self.classes[name] = cls
            if description is not None:
                self.descriptions[name] = description
            return saved_as(self._package)(cls)

        return add

    def names(self) -> list[str]:
        """Returns all names, sorted."""
        return sorted(self.classes)

    def make(self, name: str, **options: Any) -> T:
        """Makes the object of a name with these arguments."""
        if name not in self.classes:
            raise ValueError(self._unknown(name))
        cls = self.classes[name]
        # mypy looks for the hash of a class in its instances.
        arguments = _arguments(cls)  # type: ignore[arg-type]
        required = [n for n, p in arguments.items() if p.default is p.empty]
        if not options.keys() >= {*required}:
            raise ValueError(
                f"This {self._kind} needs arguments: pass "
                f"`{self._package}.{cls.__name__}({', '.join(required)})`. "
                f"Received: {self._kind}={name!r}"
            )
        return cls(**options)

    def get(self, identifier: Any) -> Any:
        """Resolves `identifier`."""
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
            f"Unknown {self._kind}.{did_you_mean(identifier, self.names())} Pass one "
            f"of {names}, or an instance of "
            f"`{self._base.__name__}`. Received: {self._kind}={identifier!r}"
        )

    def serialize(self, strategy: T) -> Config:
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
