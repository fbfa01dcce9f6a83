"""What the last call of a layer drew."""

from typing import Any

import tensorflow as tf


class LastDraws:
    """Stores what a layer draws, by name, for those who ask after the call.

    Eager code reads what the last eager call drew. Code inside a traced function reads
    the tensors that the layer's last call in the same trace drew. The graph holds these
    tensors, not the layer, so none is read, or kept in memory, outside of its graph.
    """

    def __init__(self) -> None:
        self._eager: dict[str, Any] = {}

    def update(self, **draws: Any) -> None:
        """Stores the draws of a call in place of those before."""
        if tf.executing_eagerly():
            self._eager.update(draws)
            return
        stored = tf.compat.v1.get_default_graph().get_collection_ref(self)
        stored[:] = [{**(stored[0] if stored else {}), **draws}]

    def get(self, name: str) -> Any:
        """Returns a draw; None before the first call."""
        if not tf.executing_eagerly():
            graph = tf.compat.v1.get_default_graph()
            while graph is not None:
                for stored in graph.get_collection_ref(self):
                    if name in stored:
                        return stored[name]
                graph = getattr(graph, "outer_graph", None)
        return self._eager.get(name)
