"""The private names of TensorFlow on which exported models depend.

They are here, and not in `tfbbb.private_apis`, because exported models are loaded
without Keras. `tests/test_private_apis.py` tests what each function relies on.
"""

import functools
from typing import Any

from tensorflow.python.eager import context
from tensorflow.python.framework import op_def_registry


def add_function(definition: Any) -> None:
    """Lets eager operations call a function by its name.

    Args:
        definition: Its `FunctionDef`, complete with the attributes that have defaults.
    """
    context.context().add_function_def(definition)


def remove_function(name: str) -> None:
    """Removes a function that was added.

    TensorFlow keeps the kernels of its calls. To free them would begin the random
    numbers of all other operations of the process anew, and is not safe while other
    threads compute.
    """
    context.context().remove_function(name)


@functools.cache
def default_attributes(operation: str) -> tuple[tuple[str, Any], ...]:
    """Returns the names and `AttrValue`s of the attributes that have defaults.

    Args:
        operation: Name of an operation of TensorFlow; any other name has none.
    """
    definition = op_def_registry.get(operation)
    return tuple(
        (attribute.name, attribute.default_value)
        for attribute in (definition.attr if definition else ())
        if attribute.HasField("default_value")
    )
