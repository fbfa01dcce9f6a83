"""All functions of a SavedModel."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from tfbbb.export.answer_functions import answer_functions
from tfbbb.export.description import describe_targets
from tfbbb.export.feature_tensors import input_specs, packing, tensor_specs
from tfbbb.export.manifest import Feature
from tfbbb.export.program_functions import ProgramFunctions
from tfbbb.export.sampler import Sampler
from tfbbb.export.saved_answers import answered_by
from tfbbb.export.shared_variables import SharedVariables
from tfbbb.export.signatures import all_signatures, default_signature
from tfbbb.layers.sharing import sublayers
from tfbbb.prediction.blocks import MAX_FLOATS
from tfbbb.prediction.compiled import traced
from tfbbb.prediction.live_answers import live_answers
from tfbbb.prediction.moments import MomentsError
from tfbbb.prediction.operation import Operation
from tfbbb.prediction.plan import Plan, plan_for
from tfbbb.prediction.program import Program
from tfbbb.prediction.propagated import PropagatedProgram
from tfbbb.prediction.structure import Structure
from tfbbb.recalibration.recalibration import IDENTITY

if TYPE_CHECKING:
    from tfbbb.model import BayesianModel


class ExportedFunctions:
    """All functions of an export, traced.

    Args:
        model: The model.
        features: The features that it reads.
        method: How all signatures but `moments` draw.
        num_samples: Number of samples behind `serving_default`.
        seed: Seed of `serving_default`.

    Attributes:
        root: The object to save: the functions and the variables that they read.
        signatures: The concrete function of each signature, by name.
        passes: The sizes of a pass by each method.
        targets: What the targets of one row are.
        operations: What is propagated where moments are; nothing else.
        without_moments: Why there is no signature `moments`, None where there is.
    """

    def __init__(
        self,
        model: "BayesianModel",
        features: Sequence[Feature],
        method: Literal["local", "weight"],
        num_samples: int,
        seed: int,
    ):
        self._model = model
        self._likelihood = model.likelihood
        self._recalibration = model.recalibration or IDENTITY
        self._inputs = input_specs(model)
        self._pack = packing(model, features)
        self._variables = SharedVariables(model.variables)
        self._features = tensor_specs(model, features)
        self.without_moments: str | None = None
        samplers = self._samplers(method, num_samples)
        programs = {name: sampler.program for name, sampler in samplers.items()}
        self.passes = {name: program.sizes for name, program in programs.items()}
        answers = live_answers(self._likelihood, self._recalibration)
        summary_specs = samplers[method].summary_specs
        mean_shape = summary_specs["mean"].shape[1:]
        self.targets = describe_targets(self._likelihood, mean_shape)
        # Methods share answers unless one of them integrates the mean, whose variance
        # is then beside the outputs.
        of_specs = {
            spec: answer_functions(answers, spec, self.targets, summary_specs)
            for spec in dict.fromkeys(x.outputs_spec for x in programs.values())
        }
        functions = {name: of_specs[x.outputs_spec] for name, x in programs.items()}
        of_methods = {name: answered_by(answers, x) for name, x in functions.items()}
        signatures = all_signatures(
            samplers[method], of_methods[method], self._features, num_samples, seed
        )
        self.operations: tuple[Operation, ...] = ()
        if "moments" in programs:
            self.operations = programs["moments"].operations
            signatures["moments"] = default_signature(
                samplers["moments"], of_methods["moments"], self._features, 2, 0
            )
        self.signatures = {
            name: traced(function, *specs)
            for name, (function, specs) in signatures.items()
        }
        methods = {name: sampler.functions for name, sampler in samplers.items()}
        self.root = self._root(methods, functions)

    def _samplers(self, method: str, num_samples: int) -> dict[str, Sampler]:
        """Returns the samplers of the method, of `weight` and, if any, of `moments`."""
        model, likelihoods = self._model, [self._likelihood]
        structure = Structure.of(model)
        plan = plan_for(structure, method, 1, num_samples, MAX_FLOATS, likelihoods)
        recalibration = self._recalibration
        main = Program(model, likelihoods, plan, self._inputs, recalibration)
        moments = self._variables.of(main.moments())
        samplers = {method: self._sampler(main, moments)}
        if method != "weight":
            drawn = Program(
                model, likelihoods, Plan(), self._inputs, recalibration, moments
            )
            samplers["weight"] = self._sampler(drawn, {})
        try:
            propagated = PropagatedProgram(
                model, likelihoods, Plan(propagated=True), self._inputs, recalibration
            )
        except MomentsError as error:
            self.without_moments = str(error)
        else:
            moments = self._variables.of(propagated.moments())
            samplers["moments"] = self._sampler(propagated, moments)
        return samplers

    def _sampler(self, program: Program, moments: Any) -> Sampler:
        # Without the names of the signatures' inputs.
        features = [tf.TensorSpec(x.shape, x.dtype) for x in self._features]
        functions = ProgramFunctions(program, moments, features, self._pack)
        return Sampler(program, functions)

    def _root(
        self, methods: dict[str, ProgramFunctions], answers: dict[str, tf.Module]
    ) -> tf.Module:
        root = tf.Module()
        root.methods = methods
        root.answers = answers
        modules = [*root.methods.values(), *root.answers.values()]
        functions = [
            *self.signatures.values(),
            *(f for module in modules for f in vars(module).values()),
        ]
        concrete = [f for f in functions if hasattr(f, "captured_inputs")]
        # Only variables that are read: those of posteriors seldom are.
        read = {id(v): v for function in concrete for v in function.variables}
        root.read = list(read.values())
        # Layers with resources that are not variables, such as lookup tables.
        root.tables = [x for x in sublayers(self._model) if not x.variables]
        return root
