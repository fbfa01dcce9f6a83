"""The draws of the last call of a layer."""

from typing import TypeAlias

import tensorflow as tf

from tfbbb.base.types import Distribution, Tensor

Draw: TypeAlias = Tensor | Distribution


class LastDraws:
    """Stores the draws of a layer by name, to be read after the call.

    Eager code reads the draws of the last eager call. Code inside a traced function
    reads the tensors of the layer's last call in the same trace. The graph holds these
    tensors, not the layer, so none is read, or kept in memory, outside of its graph.
    """

    def __init__(self) -> None:
        self._eager: dict[str, Draw] = {}

    def update(self, **draws: Draw) -> None:
        """Replaces the stored draws by the draws of a new call."""
        if tf.executing_eagerly():
            self._eager.update(draws)
            return
        stored = tf.compat.v1.get_default_graph().get_collection_ref(self)
        stored[:] = [{**(stored[0] if stored else {}), **draws}]

    def get(self, name: str) -> Draw | None:
        """Returns a draw; None before the first call."""
        if not tf.executing_eagerly():
            graph = tf.compat.v1.get_default_graph()
            while graph is not None:
                for stored in graph.get_collection_ref(self):
                    if name in stored:
                        return stored[name]
                graph = getattr(graph, "outer_graph", None)
        return self._eager.get(name)
