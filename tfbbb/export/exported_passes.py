"""The passes of a SavedModel, without Keras."""

from typing import Any

from tfbbb.export.manifest import Manifest
from tfbbb.export.saved_answers import loaded_answers
from tfbbb.prediction.compiled import Compiled
from tfbbb.prediction.kept_draws import KeptDraws
from tfbbb.prediction.operation import Operation
from tfbbb.prediction.passes import Passes
from tfbbb.types import Tensor


class ExportedPasses(Passes):
    """Passes by one method, with the functions of a SavedModel.

    Args:
        saved_model: What `tf.saved_model.load` returned.
        manifest: Its manifest, of schema version 2 or 3.
        method: One of its methods.
    """

    def __init__(self, saved_model: Any, manifest: Manifest, method: str):
        assert manifest.passes is not None
        functions = saved_model.methods[method]
        self._saved_model = saved_model
        self._manifest = manifest
        self._draw = Compiled(functions.draw)
        self._add_up = Compiled(functions.add_up)
        self._merge = Compiled(functions.merge)
        self._summarize = Compiled(functions.summarize)
        self._answer = Compiled(functions.answer)
        self._kept = KeptDraws()
        self.sizes = manifest.passes[method]
        self.answers = [loaded_answers(saved_model.answers[method], manifest)]
        self.operations: tuple[Operation, ...] = ()
        if method == "moments" and manifest.operations is not None:
            self.operations = manifest.operations
        self._is_compiled = False

    @property
    def is_compiled(self) -> bool:
        return self._is_compiled

    def draws(self, key: tuple[int, int], first: int, count: int, keep: bool) -> Any:
        return self._kept.draws(self._draw, key, first, count, keep)

    def summaries(self, inputs: Tensor, draws: Any) -> tuple[list[Any], list[Any]]:
        found = self._answer(inputs, draws)
        self._is_compiled = True
        return [found["summary"]], [found["outputs"]]

    def sums(self, inputs: Tensor, draws: Any) -> tuple[list[Any], list[Any]]:
        found = self._add_up(inputs, draws)
        self._is_compiled = True
        return [found["sums"]], [found["outputs"]]

    def merged(self, one: Any, other: Any) -> Any:
        return self._merge(one, other)

    def summary(self, found: Any) -> Any:
        return self._summarize(found)

    def outputs(self, inputs: Tensor, draws: Any) -> list[Any]:
        return self.sums(inputs, draws)[1]

    def of_functions(self) -> "ExportedPasses":
        return ExportedPasses(self._saved_model, self._manifest, "weight")
