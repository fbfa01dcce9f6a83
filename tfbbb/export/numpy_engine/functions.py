"""Functions that run on NumPy: operations of TensorFlow's graphs, one after another."""

import base64
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson

from tfbbb.base.nested import leaves
from tfbbb.base.types import Structure
from tfbbb.export.manifest import ManifestError
from tfbbb.export.numpy_engine.operations import (
    FLOW,
    OF_ANY_NUMBER,
    OF_SHAPES,
    OPERATIONS,
    Arranged,
    Operation,
    keeps_shape,
)

# Of one operation, such as the places of a sequence that is unpacked.
_MOST_OUTPUTS = 1 << 16
# What functions compute of so few numbers is kept: sizes and places, mostly.
_MOST_KEPT = 64
# For how many shapes of its arguments a function keeps a graph: batches of a service
# have many sizes.
_MOST_SHAPES = 64


class Step(NamedTuple):
    """An operation of a graph, the places of what it takes, and of what it gives."""

    operation: Operation
    sources: tuple[int, ...]
    places: tuple[int, ...]
    name: str = ""


class Graph:
    """Operations on values at numbered places, in the order in which they run.

    The inputs have the first places. Threads may share a graph.
    """

    def __init__(
        self,
        num_inputs: int,
        steps: Sequence[Step],
        outputs: Sequence[int],
        constants: Mapping[int, Any],
        size: int,
    ):
        self.num_inputs = num_inputs
        self._outputs = outputs
        needed, kept = set(outputs), list[Step]()
        for step in reversed(steps):
            if not needed.isdisjoint(step.places):
                needed.update(step.sources)
                kept.append(step)
        self._start: list[Any] = [
            constants.get(n) if n in needed else None for n in range(size)
        ]
        self._known = needed & constants.keys()
        kept = [self._arranged(step) for step in kept]
        self._steps = list(zip(kept[::-1], self._places_freed(kept), strict=True))

    def _arranged(self, step: Step) -> Step:
        """Returns a step without the constants that say how an array is arranged."""
        first, *others = step.sources or (0,)
        if not isinstance(step.operation, Arranged) or not self._known.issuperset(
            others
        ):
            return step
        constants = [self._start[place] for place in others]
        return step._replace(
            operation=step.operation.arrange(*constants), sources=(first,)
        )

    def _places_freed(self, backwards: Sequence[Step]) -> list[tuple[int, ...]]:
        """Returns for each step the places of values that no later step reads."""
        read, freed = {*self._outputs, *self._known}, []
        for step in backwards:
            freed.append(tuple({*step.sources, *step.places} - read))
            read.update(step.sources)
        return freed[::-1]

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        values = self._start.copy()
        values[: len(inputs)] = inputs
        read = values.__getitem__
        for (operation, sources, places, _), freed in self._steps:
            found = operation(*map(read, sources))
            if len(places) == 1:
                values[places[0]] = found
            else:
                for place, value in zip(places, found, strict=True):
                    values[place] = value
            # Their memory, which is in the processor's cache, serves later values.
            for place in freed:
                values[place] = None
        return [values[place] for place in self._outputs]

    def with_known(self, inputs: Mapping[int, Any]) -> "Graph":
        """Returns the graph with some inputs given, and what follows from them.

        The other inputs come first.
        """
        values, known = self._start.copy(), self._known | inputs.keys()
        for place, value in inputs.items():
            values[place] = value
        left = []
        for step, _ in self._steps:
            if known.issuperset(step.sources):
                _run(step, values)
                known.update(step.places)
            else:
                left.append(step)
        return self._with(left, {place: values[place] for place in known})

    def with_shapes(self, inputs: Sequence[Any]) -> "Graph":
        """Returns the graph for inputs of the same shapes, and of the same numbers.

        It has the sizes that follow from them as constants.
        """
        values = self._start.copy()
        values[: len(inputs)] = inputs
        known = self._known.union(n for n, x in enumerate(inputs) if _is_number(x))
        # The places of values whose shapes follow from those of the inputs.
        shaped = known.union(range(len(inputs)))
        left = []
        for step, freed in self._steps:
            _run(step, values)
            given = shaped if step.name in OF_SHAPES else known
            follows = given.issuperset(step.sources)
            found = [values[place] for place in step.places]
            if follows and sum(map(np.size, found)) <= _MOST_KEPT:
                known.update(step.places)
            else:
                left.append(step)
            unknown = [values[n] for n in step.sources if n not in known]
            if follows or (
                shaped.issuperset(step.sources) and keeps_shape(step.name, unknown)
            ):
                shaped.update(step.places)
            for place in set(freed) - known:
                values[place] = None
        return self._with(left, {place: values[place] for place in known})

    def _with(self, steps: Sequence[Step], constants: Mapping[int, Any]) -> "Graph":
        size = len(self._start)
        return Graph(self.num_inputs, steps, self._outputs, constants, size)


def _is_number(value: Any) -> bool:
    """Whether an input is one integer, such as the number of draws."""
    return np.shape(value) == () and np.asarray(value).dtype.kind in "iu"


def _run(step: Step, values: list[Any]) -> None:
    found = step.operation(*[values[place] for place in step.sources])
    if len(step.places) == 1:
        values[step.places[0]] = found
    else:
        for place, value in zip(step.places, found, strict=True):
            values[place] = value


class NumpyFunction:
    """A function of nested arrays."""

    def __init__(
        self,
        graph: Graph,
        captured: Sequence[np.ndarray],
        structured_outputs: Structure,
    ):
        first = graph.num_inputs - len(captured)
        with np.errstate(all="ignore"):
            self._graph = graph.with_known(dict(enumerate(captured, start=first)))
        self.structured_outputs = structured_outputs
        # None for shapes that came once.
        self._of_shapes: dict[tuple[Any, ...], Graph | None] = {}

    def __call__(self, *arguments: Structure) -> Structure:
        given = leaves(arguments)
        # TensorFlow does not warn of divisions by 0 either.
        with np.errstate(all="ignore"):
            found = self._graph_for(given)(given)
        return _packed(self.structured_outputs, iter(found))

    def _graph_for(self, inputs: Sequence[Any]) -> Graph:
        """Returns the graph for the shapes of the inputs, and for their numbers."""
        shapes = tuple([int(x) if _is_number(x) else np.shape(x) for x in inputs])
        if (graph := self._of_shapes.get(shapes)) is not None:
            return graph
        if shapes in self._of_shapes:
            graph = self._of_shapes[shapes] = self._graph.with_shapes(inputs)
            return graph
        for oldest in list(self._of_shapes)[: 1 - _MOST_SHAPES]:
            self._of_shapes.pop(oldest, None)
        self._of_shapes[shapes] = None
        return self._graph


class NumpyObject:
    """An object of the file, whose children are attributes and items."""

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]


def read_functions(content: bytes) -> Any:
    """Reads functions that `numpy_functions` described."""
    try:
        return _Reader(orjson.loads(content)).root()
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        raise ManifestError(
            "The functions for NumPy are malformed; export the model again. "
            f"Received: {type(error).__name__}: {error!s:.200}"
        ) from None


class _Reader:
    def __init__(self, described: Mapping[str, Any]):
        self._root = described["root"]
        self._described = described["graphs"]
        self._arrays = [_array(*array) for array in described["arrays"]]
        self._graphs: dict[str, Graph] = {}

    def root(self) -> Any:
        return self._object(self._root)

    def _object(self, described: Mapping[str, Any]) -> Any:
        if "graph" in described:
            return NumpyFunction(
                self._graph(described["graph"]),
                [self._arrays[number] for number in described["captured"]],
                described["structure"],
            )
        found = NumpyObject()
        for name, child in described.items():
            setattr(found, name, self._object(child))
        return found

    def _graph(self, name: str) -> Graph:
        if name not in self._graphs:
            described = self._described[name]
            numbers = itertools.count(described["inputs"])
            steps: list[Step] = []
            constants = {}
            for operation, sources, num_outputs, attributes in described["nodes"]:
                if not 0 < num_outputs <= _MOST_OUTPUTS:
                    raise ValueError(f"an operation has {num_outputs} outputs")
                places = tuple(itertools.islice(numbers, num_outputs))
                if operation == "Const":
                    constants[places[0]] = self._arrays[attributes["array"]]
                    continue
                if max(sources, default=-1) >= places[0]:
                    raise ValueError("an operation reads a later one")
                run = self._operation(operation, attributes)
                if operation in OF_ANY_NUMBER and num_outputs == 1:
                    run = _only(run)
                steps.append(Step(run, tuple(sources), places, operation))
            self._graphs[name] = Graph(
                described["inputs"],
                steps,
                described["outputs"],
                constants,
                next(numbers),
            )
        return self._graphs[name]

    def _operation(self, name: str, attributes: dict[str, Any]) -> Operation:
        if name not in FLOW:
            return OPERATIONS[name](attributes)
        if name in ("If", "StatelessIf"):
            no, yes = (self._graph(attributes[f"{x}_branch"]) for x in ("else", "then"))
            return lambda chosen, *values: (yes if chosen else no)(values)
        condition, body = (self._graph(attributes[x]) for x in ("cond", "body"))

        def loop(*values: Any) -> Sequence[Any]:
            found: Sequence[Any] = values
            while condition(found)[0]:
                found = body(found)
            return found

        return loop


def _only(operation: Operation) -> Operation:
    return lambda *values: operation(*values)[0]


def _packed(structure: Structure, values: Iterator[Any]) -> Structure:
    if isinstance(structure, dict):
        return {name: _packed(structure[name], values) for name in sorted(structure)}
    if isinstance(structure, list):
        return [_packed(part, values) for part in structure]
    return next(values)


def _array(dtype: str, shape: Sequence[int], content: Any) -> np.ndarray:
    if dtype == "object":
        return texts(
            [text.encode("utf-8", "surrogateescape") for text in content], shape
        )
    return np.frombuffer(base64.b64decode(content), np.dtype(dtype)).reshape(shape)


def texts(values: Sequence[bytes], shape: Sequence[int]) -> np.ndarray:
    """Returns an array of texts in UTF-8, as TensorFlow has them."""
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)
