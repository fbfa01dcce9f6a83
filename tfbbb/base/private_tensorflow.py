"""The private names of TensorFlow on which exported models depend.

They are here, and not in `tfbbb.private_apis`, because exported models are loaded
without Keras. `tests/base/test_private_apis.py` tests what each function relies on.
"""

from typing import Any

from tensorflow.python.eager import context


def add_function(definition: Any) -> None:
    """Lets eager operations call a function by its name.

    Args:
        definition: Its `FunctionDef`. TensorFlow sets the attributes that it omits, as
            in a SavedModel, to their defaults.
    """
    context.context().add_function_def(definition)


def remove_function(name: str) -> None:
    """Removes a function that was added.

    TensorFlow keeps the kernels of its calls. To free them would begin the random
    numbers of all other operations of the process anew, and is not safe while other
    threads compute.
    """
    context.context().remove_function(name)
