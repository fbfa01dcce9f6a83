"""Every argument of a public class is listed where `help` shows it."""

import dataclasses
import importlib
import inspect
import typing

import pytest
from pydantic import BaseModel

import tfbbb
from tfbbb.base.documented_arguments import (
    document_inherited_arguments,
    documented_arguments,
)
from tfbbb.base.strategy import Strategy

LAB = ("acquisition", "compat.tfp_layers", "evidence", "inference")
RINGS = {
    "kit": ["tfbbb", *(path for path in tfbbb.MODULES.values() if path != "tfbbb.lab")],
    "lab": [f"tfbbb.lab.{name}" for name in LAB],
}
each_ring = pytest.mark.parametrize(
    "ring", ["kit", pytest.param("lab", marks=pytest.mark.outer)]
)
# Functions and clients make these objects; users see their attributes.
RESULTS = {"Dataset", "Job", "Model", "Predictive"}


def public_classes(ring):
    for package in map(importlib.import_module, RINGS[ring]):
        for name in getattr(package, "__all__", vars(package)):
            found = getattr(package, name)
            if (
                inspect.isclass(found)
                and found.__module__.startswith("tfbbb.")
                and not name.startswith("_")
                and name not in RESULTS
                and not issubclass(found, BaseModel | Exception | dict | tuple)
                # The fields of a data class are its signature.
                and (issubclass(found, Strategy) or not dataclasses.is_dataclass(found))
            ):
                yield found


def arguments(cls):
    """Returns the names that the constructor takes, those of its options too."""
    for name, parameter in inspect.signature(cls).parameters.items():
        options = typing.get_args(parameter.annotation)
        if parameter.kind is parameter.VAR_KEYWORD and options:
            yield from options[0].__annotations__
        else:
            yield name


@each_ring
def test_docstrings_of_public_classes_list_every_argument(ring):
    missing = {}
    for cls in public_classes(ring):
        if not getattr(cls.__init__, "__module__", "").startswith("tfbbb"):
            continue  # The constructor is that of Keras.
        attributes = inspect.cleandoc(cls.__doc__).partition("\nAttributes:\n")[2]
        listed = documented_arguments(f"\nArgs:\n{attributes}").keys()
        listed |= documented_arguments(cls.__doc__).keys()
        lacking = set(arguments(cls)) - listed
        if lacking:
            missing[f"{cls.__module__}.{cls.__name__}"] = lacking
    assert not missing, "\n".join(map(str, missing.items()))


@each_ring
def test_no_public_constructor_takes_unnamed_positional_arguments(ring):
    kinds = {
        cls: [p.kind for p in inspect.signature(cls).parameters.values()]
        for cls in public_classes(ring)
        # Others have Keras' own.
        if getattr(cls.__init__, "__module__", "").startswith("tfbbb")
    }
    unnamed = inspect.Parameter.VAR_POSITIONAL
    assert not [cls for cls, found in kinds.items() if unnamed in found]


@pytest.mark.parametrize("own", ["", "\n\nArgs:\n    a: Mine.\n\nRaises:\n    E: So."])
def test_inherited_arguments_are_added_before_the_next_section(own):
    class Base:
        """Base.

        Args:
            a: Its a.
            b: Its b,
                in two lines.
            c: Not taken below.
        """

        def __init__(self, a, b, c=1):
            pass

    class Child(Base):
        __doc__ = f"Child.{own}"

        def __init__(self, a, b):
            super().__init__(a, b)

    document_inherited_arguments(Child)
    entries = documented_arguments(Child.__doc__)
    first = "    a: Mine." if own else "    a: Its a."
    assert entries == {"a": first, "b": "    b: Its b,\n        in two lines."}
    assert Child.__doc__.endswith("\n\nRaises:\n    E: So.") == bool(own)
