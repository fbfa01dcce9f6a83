"""The steps of a training of a table, each a function from a `Run` to a `Run`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.base.types import Config
from tfbbb.judging.evaluation import PredictedRows
from tfbbb.judging.evaluation.judgement import (
    LEARNED_NOTHING,
    beats_constant,
    describe_comparison,
    figures_of,
)
from tfbbb.judging.evaluation.predicted_rows import LEVEL, tells_rows_apart
from tfbbb.judging.types import Inputs
from tfbbb.judging.verdict import FEWEST_ROWS_TO_JUDGE, STANDARD_ERRORS, verdict
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction.extrapolation import Extrapolation
from tfbbb.prediction.familiarity import Familiarity
from tfbbb.prediction.target_scores import in_intervals
from tfbbb.tables import TableError
from tfbbb.tables.memory_rows import MemoryRows
from tfbbb.training.candidates import Candidate, measured_rows, train_candidates
from tfbbb.training.continuation import check_continuation
from tfbbb.training.convergence import describe_convergence
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.familiarity import (
    describe_extrapolation,
    fit_extrapolation,
    fit_familiarity,
)
from tfbbb.training.held_out import LEVELS, drift_reference
from tfbbb.training.job_clock import JobClock
from tfbbb.training.judging import TrainingBaselines
from tfbbb.training.left_out_error import competes, most_likely
from tfbbb.training.likelihood_turns import ProgressOfTurns, train_in_turn
from tfbbb.training.more_rows import train_on_more_rows
from tfbbb.training.network import make_network
from tfbbb.training.parent_version import ParentVersion
from tfbbb.training.plan import (
    TrainingPlan,
    cross_fitting_repeats,
    kl_schedule_at,
)
from tfbbb.training.preparation import Prepared, prepare
from tfbbb.training.progress import Progress
from tfbbb.training.recalibration import Calibrated, calibrate, make_recalibration
from tfbbb.training.recipe import describe_recipe
from tfbbb.training.rounds import seconds_per_step
from tfbbb.training.serving_version import ServingVersion
from tfbbb.training.spec import JobSpec, ModelSpec
from tfbbb.training.spec.families import LikelihoodPart
from tfbbb.training.spec.training import TrainingSpec
from tfbbb.training.target_likelihood import (
    MOST_ROWS,
    LikelihoodChoice,
    bounds_of_targets,
    choose_likelihood,
)
from tfbbb.training.time_limit import TimeLimit
from tfbbb.training.trained_table import TrainedTable
from tfbbb.training.version_report import VersionReport

# The warning about a version that does not become `latest`.
WAITS = (
    "A service does not take the version as `latest` until somebody makes it so, by "
    "the label `latest` or on the page."
)
# Of fields that a later step sets.
_LATER: Any = None


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training of a table on its way through the steps.

    Each step returns a copy with the fields that it sets. The arguments of
    `train_table` come first, as `train_table` describes them.

    Attributes:
        source: The table.
        spec: What to train. With a parent, `prepare_rows` sets the parent's network.
        weights: The weight of each row, [rows]; None if all are 1.
        parent: The version whose posterior is the prior, if there is one.
        name_of_parent: Digest or path of the parent, which a checkpoint must match.
        serving: The version that serves, if there is one.
        strategy: Where the networks are made and trained.
        limit: The time that is left.
        clock: Learns which part of the training begins.
        prepared: By `prepare_rows`: the rows that train and those that are held out.
        likelihoods: The likelihoods that suit a target of numbers, the best first;
            None if the spec names one.
        plan: By `make_plan`: the completed spec.
        networks: The untrained networks of the plan.
        members: The rows that each member leaves out.
        candidates: By `train_networks`: the trained networks.
        outcomes: Whether each tried likelihood trained, diverged or lost.
        inputs: By `compare_baselines`: the rows that measure the model, which no member
            saw that predicts them.
        targets: Their targets.
        row_weights: The weight of each of them in the figures; None if all are 1.
        baselines: The baselines.
        steps_on_more_rows: By `use_more_rows`: Number of steps after the choice, 0 if
            they were of no use; None if they were not tried.
        calibrated: By `calibrate_model`: the predictions of them, recalibrated, with
            their figures.
        scored: The log likelihood and the error of each of them.
        familiarity: By `learn_familiarity`: the familiarity of rows, if there is one.
        extrapolation: What widens rows beyond the training rows, if anything does.
        has_time: Whether there was time for these two.
        judgement: By `judge_model`: the figures beside those of the baselines.
        recipe: What the training chose.
    """

    source: Any
    spec: JobSpec
    weights: np.ndarray | None
    parent: ParentVersion | None
    name_of_parent: str
    strategy: tf.distribute.Strategy
    limit: TimeLimit
    directory: Path | None
    checkpoint_seconds: float
    xla: bool
    validate_left_out: bool
    serving: ServingVersion | None = None
    clock: JobClock = field(default_factory=JobClock)
    report: Callable[[Progress], object]
    should_stop: Callable[[], bool]
    prepared: Prepared = _LATER
    likelihoods: LikelihoodChoice | None = None
    plan: TrainingPlan = _LATER
    networks: Sequence[BayesianModel] = ()
    members: MemberRows = _LATER
    candidates: Sequence[Candidate] = ()
    outcomes: Config = _LATER
    inputs: Inputs = _LATER
    targets: np.ndarray = _LATER
    row_weights: np.ndarray | None = None
    baselines: TrainingBaselines = _LATER
    steps_on_more_rows: int | None = None
    calibrated: Calibrated = _LATER
    scored: PredictedRows = _LATER
    familiarity: Familiarity | None = None
    extrapolation: Extrapolation | None = None
    has_time: bool = True
    judgement: Config = _LATER
    recipe: Config = _LATER

    @property
    def training(self) -> TrainingSpec:
        return self.spec.training

    @property
    def best(self) -> Candidate:
        """The trained network whose rows left out are most likely."""
        return most_likely(self.candidates)

    @property
    def places(self) -> np.ndarray:
        """The places in the table of the rows that measure the model."""
        prepared = self.prepared
        if self.members.folds is None:
            return prepared.held_out_rows
        return prepared.training_rows[self.members.left_out]

    def trained(self) -> TrainedTable:
        """Returns the result of the last step."""
        best, plan, prepared = self.best, self.plan, self.prepared
        best.model.familiarity = self.familiarity
        best.model.extrapolation = self.extrapolation
        network = best.network.model_copy(update={"members": plan.group_size})
        chosen: Config = {
            "learning_rate": plan.learning_rate,
            "kl_schedule": plan.schedule,
        }
        if len(plan.temperatures) > 1 and best.choice is not None:
            temperature = best.choice.best.temperature
            chosen["kl_schedule"] = kl_schedule_at(temperature)
        training = self.training.model_copy(update=chosen)
        return TrainedTable(
            model=best.model,
            schema=prepared.schema,
            spec=self.spec.model_copy(update={"model": network, "training": training}),
            num_training_rows=prepared.rows.num_rows,
            held_out_rows=prepared.held_out_rows,
            metrics=self.calibrated.metrics,
            log_likelihoods=self.scored.log_prob,
            recalibration_choice=self.calibrated.choice,
            recipe=self.recipe,
            judgement=self.judgement,
            clock=self.clock,
            baselines=self.baselines.of_all,
            drift_reference=None
            if self.members.folds is not None
            else drift_reference(
                self.calibrated.prediction, self.targets, self.row_weights
            ),
            report=VersionReport.measure(
                best.model,
                prepared.schema,
                self.source,
                self.baselines.of_all,
                self.calibrated,
                self.recipe,
                self.judgement,
                self.inputs,
                self.targets,
                self.places,
                seconds=self.limit.of_report(),
            ),
        )


def prepare_rows(run: Run) -> Run:
    """Reads the table, divides its rows and finds the likelihoods of its target."""
    spec, schema = run.spec, None
    run.clock.begin("reading")
    if run.parent is not None:
        check_continuation(spec, run.parent.record, run.source.schema.names)
        spec = _continued(spec, run.parent.record.spec.model)
        schema = run.parent.record.schema
    prepared = prepare(run.source, spec, schema, run.directory, run.weights)
    run.clock.know(
        rows=len(prepared.held_out_rows) or prepared.num_rows,
        most_seconds=spec.training.max_seconds,
    )
    run.clock.begin("likelihood")
    likelihoods = None if run.parent else _choose_likelihood(spec, prepared)
    return replace(run, spec=spec, prepared=prepared, likelihoods=likelihoods)


def make_plan(run: Run) -> Run:
    """Completes the spec, makes its networks and draws the rows of each member."""
    prepared, seed = run.prepared, run.training.seed
    run.clock.begin("network")
    plan = _plan(run, run.likelihoods)
    networks = _make_networks(run, plan)
    make_recalibration(run.spec.recalibration, networks[0].likelihood, prepared.schema)
    members = MemberRows.draw(
        prepared.rows.num_rows,
        plan.temperatures,
        plan.group_size,
        plan.repeats,
        seed=seed,
        classes=prepared.rows.targets()
        if prepared.schema.task == "classification"
        else None,
        groups=prepared.groups,
        last=prepared.last,
        row_weights=prepared.weights,
    )
    seconds = plan.steps * sum(
        seconds_per_step(network, plan.batch_size) for network in networks
    )
    run.clock.expect("steps", seconds)
    # The first half as many steps of a third of the members; the other ones quickly.
    run.clock.expect("more rows", 0.2 * seconds + 1.5)
    run.clock.expect("linear network", 0.2 * seconds + 1.0)
    if not plan.simpler:
        run.clock.skip("linear network")
    if not _has_more_rows(members, plan):
        run.clock.skip("more rows")
    return replace(run, plan=plan, networks=networks, members=members)


def train_networks(run: Run) -> Run:
    """Trains the networks, with one likelihood after another."""
    run.clock.begin("first step")
    progress = ProgressOfTurns(run.report)

    def train_with(
        number: int, part: LikelihoodPart | None, limit: TimeLimit
    ) -> list[Candidate]:
        networks, plan, name = run.networks, run.plan, ""
        if number:
            assert run.likelihoods is not None
            assert part is not None
            plan = _plan(run, replace(run.likelihoods, likelihood=part))
            networks = _make_networks(run, plan)
            name = f"likelihood_{number + 1}"
        progress.begin(number, part)
        return _train(run, networks, plan, limit, name, progress)

    turns = train_in_turn(run.likelihoods, train_with, run.limit)
    return replace(run, candidates=turns.candidates, outcomes=turns.outcomes)


def _train(
    run: Run,
    networks: Sequence[BayesianModel],
    plan: TrainingPlan,
    limit: TimeLimit,
    name: str,
    report: Callable[[Progress], object],
    *,
    untempers: bool = False,
) -> list[Candidate]:
    """Trains networks; those with a name have checkpoints of their own."""
    directory = run.directory
    return train_candidates(
        networks,
        plan,
        run.prepared,
        run.members,
        run.training,
        limit,
        directory=directory / name if directory is not None and name else directory,
        checkpoint_seconds=run.checkpoint_seconds,
        fingerprint=f"{run.spec.model_dump_json()} {run.name_of_parent} {name or 0}",
        xla=run.xla,
        validate_left_out=run.validate_left_out,
        reserve=lambda: run.clock.seconds_from("choice"),
        untempers=untempers,
        report=report,
        should_stop=run.should_stop,
    )


def compare_baselines(run: Run) -> Run:
    """Fits the baselines; where a linear one competes, trains a linear network, too.

    A network gains nothing where the target is linear in the columns, or mostly noise;
    there, a Bayesian linear model may be better.
    """
    prepared, best = run.prepared, run.best
    run.clock.begin("baselines")
    inputs, targets, weights = measured_rows(prepared, run.members)
    rows = prepared.rows
    if prepared.weights is not None:
        assert isinstance(rows, MemoryRows)
        rows = rows.weighted(prepared.weights[:, np.newaxis])
    folds = run.members.folds
    if prepared.last is not None:
        assert isinstance(rows, MemoryRows)
        rows, folds = rows.take(np.flatnonzero(~prepared.last)), None
    baselines = TrainingBaselines.fit(
        prepared.schema,
        rows,
        folds,
        inputs,
        targets,
        discrete=best.model.likelihood.discrete,
        weights=weights,
        seconds=run.limit.of_judge(),
    )
    run = replace(
        run, inputs=inputs, targets=targets, row_weights=weights, baselines=baselines
    )
    out_of_time = any(each.outcome.out_of_time for each in run.candidates)
    if not run.plan.simpler or out_of_time or not run.limit.has_time_for_more:
        return run
    if not competes(best, baselines.linear, targets, weights):
        return run
    run.clock.begin("linear network")
    same = {"likelihood": best.network.likelihood}
    networks = {
        name: network.model_copy(update=same)
        for name, network in run.plan.simpler.items()
    }
    plan = replace(run.plan, networks=networks)
    models, limit = _make_networks(run, plan), run.limit.rest()
    progress = ProgressOfTurns(run.report, [each.outcome for each in run.candidates])
    try:
        found = _train(run, models, plan, limit, "linear", progress, untempers=True)
    except TrainingDivergedError:
        return run
    return replace(run, candidates=[*run.candidates, *found])


def use_more_rows(run: Run) -> Run:
    """Goes on training the members of the best network, with rows that they left out.

    Members at the temperature of a spec are trained as it says, and no further.
    """
    best, members = run.best, run.members
    out_of_time = best.outcome.out_of_time or not run.limit.has_time_for_more
    if not _has_more_rows(members, run.plan) or out_of_time:
        return run
    run.clock.begin("more rows")
    better, steps = train_on_more_rows(
        best,
        run.plan,
        run.prepared,
        members,
        run.training,
        max_seconds=run.limit.rest().seconds,
        reserve=lambda: run.clock.seconds_from("calibration"),
        directory=run.directory / "more_rows" if run.directory is not None else None,
        checkpoint_seconds=run.checkpoint_seconds,
        fingerprint=f"{run.spec.model_dump_json()} {run.name_of_parent} {best.name}",
        xla=run.xla,
        report=ProgressOfTurns(run.report, [each.outcome for each in run.candidates]),
        should_stop=run.should_stop,
    )
    candidates = [better if each is best else each for each in run.candidates]
    return replace(run, candidates=candidates, steps_on_more_rows=steps)


def _has_more_rows(members: MemberRows, plan: TrainingPlan) -> bool:
    repeats = 0 if members.folds is None else len(members.folds)
    return repeats > 1 and len(plan.temperatures) > 1


def calibrate_model(run: Run) -> Run:
    """Recalibrates the best network by the rows that it left out, and scores them."""
    best, inputs, targets = run.best, run.inputs, run.targets
    run.clock.begin("calibration")
    calibrated = calibrate(
        best.model,
        run.spec.recalibration,
        run.prepared.schema,
        inputs,
        targets,
        None if run.members.folds is None else best.choice,
        run.row_weights,
        run.prepared.groups,
    )
    if not np.all(np.isfinite(list(calibrated.metrics.values()))):
        raise TrainingDivergedError(run.plan.learning_rate.initial or 0.0)
    weights, covered = run.row_weights, None
    if run.prepared.schema.task == "regression":
        # The levels of the figures, whose quantiles are kept.
        held = np.asarray(in_intervals(calibrated.prediction, targets, LEVELS))
        covered = held[:, LEVELS.index(LEVEL)].mean(axis=1)
    scored = PredictedRows.score(calibrated.prediction, targets, covered)
    apart = tells_rows_apart(calibrated.prediction, targets, scored.log_prob, weights)
    return replace(
        run,
        calibrated=calibrated,
        scored=replace(scored, tells_rows_apart=apart, weights=weights),
    )


def learn_familiarity(run: Run) -> Run:
    """Learns which rows are unlike the training rows, and how wrong models are there.

    What widens predictions of such rows is fitted after the recalibration, which it
    does not change: rows left out are like the training rows.
    """
    rows, seed = run.prepared.rows, run.training.seed
    if run.limit.elapsed + run.clock.seconds_from("familiarity") > run.limit.seconds:
        return replace(run, has_time=False)
    run.clock.begin("familiarity")
    familiarity = fit_familiarity(rows, run.prepared.schema, seed)
    if familiarity is None:
        return run
    extrapolation = fit_extrapolation(familiarity, run.best.model, rows, seed)
    return replace(run, familiarity=familiarity, extrapolation=extrapolation)


def judge_model(run: Run) -> Run:
    """Compares the model with the baselines, and says whether it learned anything."""
    best, targets = run.best, run.targets
    run.clock.begin("judgement")
    judgement = run.baselines.judge(
        run.scored, places=run.places, parent=_scores_of_parent(run)
    )
    convergence = describe_convergence(
        best.outcome.losses,
        np.zeros((0, 2)) if best.choice is None else best.choice.gaps,
        None
        if run.prepared.schema.task == "classification"
        else run.calibrated.uncalibrated.aleatoric,
        targets,
        getattr(best.model.likelihood, "resolution", None),
    )
    judgement["convergence"] = convergence
    recipe = _describe(run)
    ended = []
    if not run.has_time:
        ended.append(
            "`max_seconds` left no time to learn which rows are unlike the training "
            "rows."
        )
    out_of_time = recipe["out_of_time"]
    if out_of_time:
        steps = "1 step" if recipe["steps"] == 1 else f"{recipe['steps']} steps"
        ended.append(
            f"`max_seconds` = {run.training.max_seconds:g} ended the training after "
            f"{steps}: with more time the model may be better."
        )
    # After a few steps, better probabilities may come from the likelihood alone, and a
    # little less error from chance.
    compared = judgement["comparisons"]
    judgement["learned"] &= not out_of_time or beats_constant(compared, STANDARD_ERRORS)
    beaten = _compare_with_serving(run, judgement)
    judgement["verdict"] = verdict(judgement)
    is_off = judgement.get("sums", {}).get("off", False)
    judgement["becomes_latest"] = run.spec.publishes(
        judgement["learned"] and not beaten and not is_off
    )
    useless = [] if judgement["learned"] else [LEARNED_NOTHING]
    waits = [] if judgement["becomes_latest"] else [WAITS]
    judgement["sentences"] += describe_extrapolation(run.extrapolation)
    said = [*beaten, *convergence["warnings"], *useless, *waits, *ended]
    for kind in ("sentences", "warnings"):
        judgement[kind] += said
    return replace(run, judgement=judgement, recipe=recipe)


def _compare_with_serving(run: Run, judgement: Config) -> list[str]:
    """Adds the comparison with the version that serves, if that is clearly better."""
    if run.serving is None or len(run.targets) < FEWEST_ROWS_TO_JUDGE:
        return []
    found = run.serving.clearly_better(
        run.scored, run.inputs, run.targets, run.prepared.schema
    )
    if found is None:
        return []
    comparison, theirs = found
    name = run.serving.name
    judgement["comparisons"][name] = comparison
    judgement["figures"][name] = figures_of(theirs, run.targets)
    return [describe_comparison(name, run.scored, comparison, len(run.targets))[0]]


def _scores_of_parent(run: Run) -> PredictedRows | None:
    """Returns the scores of the parent's predictions of the same rows."""
    if run.parent is None:
        return None
    parent = run.parent.model(run.training.seed)
    return PredictedRows.score(parent.predictive(run.inputs), run.targets)


def _describe(run: Run) -> Config:
    """Returns what the training chose, for records and reports."""
    recipe = describe_recipe(
        run.plan,
        run.prepared,
        run.members,
        run.candidates,
        run.best,
        len(run.targets),
        run.outcomes,
        run.steps_on_more_rows,
    )
    recipe["rows_without_target"] = run.prepared.rows_without_target
    recipe["beyond"] = run.extrapolation and run.extrapolation.trial
    if run.training.max_seconds is not None:
        recipe["seconds"] = run.limit.elapsed
    return recipe


def _plan(run: Run, likelihoods: LikelihoodChoice | None) -> TrainingPlan:
    prepared = run.prepared
    targets = prepared.rows.targets()
    repeats = 0
    if not len(prepared.held_out_rows):
        repeats = cross_fitting_repeats(run.spec, prepared.num_rows)
    return TrainingPlan.from_spec(
        run.spec,
        prepared.schema,
        targets,
        repeats,
        likelihoods,
        num_rows=prepared.num_rows,
    )


def _choose_likelihood(spec: JobSpec, prepared: Prepared) -> LikelihoodChoice | None:
    """Returns the likelihood of a target of numbers, unless the spec names one."""
    if spec.model.likelihood is not None or prepared.schema.task != "regression":
        return None
    rows, seed = prepared.rows, spec.training.seed
    batches = rows.batches(MOST_ROWS, seed=seed).take(1)
    inputs, targets, *_ = batches.as_numpy_iterator().next()
    every = np.concatenate([rows.targets(), prepared.held_out[1]])
    return choose_likelihood(inputs, targets, others=every, seed=seed)


def _continued(spec: JobSpec, network: ModelSpec) -> JobSpec:
    """Returns a spec with the parent's network, at temperature 1."""
    schedule = spec.training.kl_schedule or kl_schedule_at(1.0)
    training = spec.training.model_copy(update={"kl_schedule": schedule})
    return spec.model_copy(update={"model": network, "training": training})


def _make_networks(run: Run, plan: TrainingPlan) -> list[BayesianModel]:
    """Makes the networks of a plan, with the members of all temperatures.

    Their likelihoods are adapted to the training targets.
    """
    prepared, seed = run.prepared, run.training.seed
    with run.strategy.scope():
        if run.parent is not None:
            networks = [run.parent.network(seed)]
        else:
            networks = [
                make_network(
                    prepared.schema,
                    network.model_copy(update={"members": plan.num_members}),
                    seed=seed,
                )
                for network in plan.networks.values()
            ]
    targets = prepared.rows.targets()
    try:
        for network in networks:
            network.likelihood.adapt(targets, double=prepared.schema.target.precise)
            if network.likelihood.unbounded:
                network.likelihood.bounds = bounds_of_targets(targets)
    except ValueError as error:
        name = prepared.schema.target.name
        raise TableError(f"The target {name!r} cannot be learned: {error}") from None
    return networks
