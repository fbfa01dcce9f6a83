"""The steps of a training of a table, each a function from a `Run` to a `Run`."""

from dataclasses import replace

import numpy as np

from tfbbb.base.diverged_training import TrainingDivergedError
from tfbbb.base.types import Config
from tfbbb.judging.evaluation.judgement import (
    LEARNED_NOTHING,
    beats_constant,
    describe_comparison,
    figures_of,
)
from tfbbb.judging.evaluation.predicted_rows import (
    LEVEL,
    PredictedRows,
    tells_rows_apart,
)
from tfbbb.judging.verdict import FEWEST_ROWS_TO_JUDGE, STANDARD_ERRORS, verdict
from tfbbb.model.bayesian_model import BayesianModel
from tfbbb.prediction.target_scores import in_intervals
from tfbbb.tables import TableError
from tfbbb.tables.column_names import named_targets
from tfbbb.training.candidates import (
    sees_more_rows,
    train_after_trial,
    train_candidates,
    train_in_turn,
)
from tfbbb.training.cross_fitting import MemberRows
from tfbbb.training.familiarity import (
    describe_extrapolation,
    fit_extrapolation,
    fit_familiarity,
)
from tfbbb.training.judging import TrainingBaselines
from tfbbb.training.left_out_error import competes
from tfbbb.training.loop import seconds_per_step
from tfbbb.training.network import make_network
from tfbbb.training.plan import (
    TrainingPlan,
    cross_fitting_repeats,
    kl_schedule_at,
)
from tfbbb.training.preparation import Prepared, prepare
from tfbbb.training.recalibration import (
    LEVELS,
    calibrate,
    drift_reference,
    make_recalibration,
)
from tfbbb.training.recipe import describe_recipe
from tfbbb.training.run import Candidate, Run
from tfbbb.training.spec import JobSpec, ModelSpec
from tfbbb.training.spec.families import LikelihoodPart
from tfbbb.training.target_likelihood import (
    MOST_ROWS,
    SEVERAL_TARGETS,
    LikelihoodChoice,
    bounds_of_targets,
    choose_likelihood,
)
from tfbbb.training.trained_table import TrainedTable, VersionReport

# The warning about a version that does not become `latest`.
WAITS = (
    "A service does not take the version as `latest` until somebody makes it so, by "
    "the label `latest` or on the page."
)

# Of the time of the trial.
_SHARE_TO_GO_ON = 0.1


def prepare_rows(run: Run) -> Run:
    """Reads the table, divides its rows and finds the likelihoods of its target."""
    spec, schema = run.spec, None
    run.clock.begin("reading")
    if run.parent is not None:
        run.parent.record.check_continuation(spec, run.source.schema.names)
        spec = _continued(spec, run.parent.record.spec.model)
        schema = run.parent.record.schema
    prepared = prepare(run.source, spec, schema, run.directory, run.weights)
    run.clock.rows = len(prepared.held_out_rows) or prepared.num_rows
    run.clock.begin("likelihood")
    likelihoods = None if run.parent else _choose_likelihood(spec, prepared)
    return replace(run, spec=spec, prepared=prepared, likelihoods=likelihoods)


def make_plan(run: Run) -> Run:
    """Completes the spec, makes its networks and draws the rows of each member."""
    prepared, seed = run.prepared, run.spec.training.seed
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
    of_step = sum(seconds_per_step(network, plan.batch_size) for network in networks)
    seconds = plan.trial.steps * of_step
    of_members = len(networks) * len(plan.temperatures)
    further = plan.after_trial.steps * of_step / of_members
    run.clock.expect("steps", seconds)
    run.clock.expect("linear network", 0.2 * seconds + 1.0)
    run.clock.expect("after the choice", further + 1.5)
    if plan.linear is None:
        run.clock.skip("linear network")
    if not _goes_on(plan, members):
        run.clock.skip("after the choice")
    return replace(run, plan=plan, networks=networks, members=members)


def train_networks(run: Run) -> Run:
    """Trains the networks, with one likelihood after another."""
    run.clock.begin("first step")

    def train_with(number: int, part: LikelihoodPart | None) -> list[Candidate]:
        if not number:
            return train_candidates(run, run.networks, run.plan)
        assert run.likelihoods is not None
        assert part is not None
        plan = _plan(run, replace(run.likelihoods, likelihood=part))
        return train_candidates(
            run,
            _make_networks(run, plan),
            plan,
            folder=f"likelihood_{number + 1}/",
            stage=f"likelihood {part.label}; ",
        )

    candidates, outcomes = train_in_turn(run.likelihoods, train_with, run.clock)
    return replace(run, candidates=candidates, outcomes=outcomes)


def compare_baselines(run: Run) -> Run:
    """Fits the baselines; where a linear one competes, trains a linear network, too."""
    prepared, best = run.prepared, run.best
    run.clock.begin("baselines")
    inputs, targets, weights = run.measured_rows()
    rows, folds, of_rows = prepared.rows, run.members.folds, prepared.weights
    if prepared.last is not None:
        earlier = np.flatnonzero(~prepared.last)
        rows, folds = rows.take(earlier), None
        of_rows = None if of_rows is None else of_rows[earlier]
    baselines = TrainingBaselines.fit(
        prepared.schema,
        rows,
        folds,
        inputs,
        targets,
        discrete=best.model.likelihood.discrete,
        masses=best.model.likelihood.masses,
        weights=weights,
        training_weights=of_rows,
        seconds=run.clock.seconds_to_judge("calibration"),
    )
    run = replace(
        run, inputs=inputs, targets=targets, row_weights=weights, baselines=baselines
    )
    linear = run.plan.linear
    if linear is None or run.out_of_time or not run.clock.has_time_for_more:
        return run
    if not competes(best.trial, baselines.linear, targets, weights):
        return run
    run.clock.begin("linear network")
    linear = linear.model_copy(update={"likelihood": best.network.likelihood})
    plan = replace(run.plan, networks={"linear": linear})
    models = _make_networks(run, plan)
    try:
        found = train_candidates(run, models, plan, folder="linear/", untempers=True)
    except TrainingDivergedError:
        return run
    return replace(run, candidates=[*run.candidates, *found])


def train_best_network(run: Run) -> Run:
    """Goes on training the best network, unless the spec gives the temperature."""
    best, left = run.best, run.clock.seconds_before("choice")
    needed = run.clock.seconds_of("first step")
    needed += _SHARE_TO_GO_ON * best.outcome.seconds
    if not _goes_on(run.plan, run.members) or left < needed:
        return run
    run.clock.begin("after the choice")
    better, steps = train_after_trial(run)
    candidates = [better if each is best else each for each in run.candidates]
    on_more_rows = steps if sees_more_rows(run.members) else None
    return replace(run, candidates=candidates, steps_on_more_rows=on_more_rows)


def _goes_on(plan: TrainingPlan, members: MemberRows) -> bool:
    """Whether the best of several temperatures has steps left, or more rows to see."""
    is_partial = plan.trial.epochs < plan.epochs
    return len(plan.temperatures) > 1 and (is_partial or sees_more_rows(members))


def calibrate_model(run: Run) -> Run:
    """Recalibrates the best network by the rows that it left out, and scores them."""
    best, inputs, targets = run.best, run.inputs, run.targets
    in_haste = run.clock.seconds_before("calibration") < 0.0
    run.clock.begin("calibration")
    calibrated = calibrate(
        best.model,
        run.spec.recalibration,
        run.prepared.schema,
        inputs,
        targets,
        best.choice,
        run.row_weights,
        run.prepared.groups,
        in_haste,
    )
    if not np.all(np.isfinite(list(calibrated.metrics.values()))):
        raise TrainingDivergedError(run.plan.learning_rate)
    weights, covered = run.row_weights, None
    if run.prepared.schema.task == "regression":
        # The levels of the figures, whose quantiles are kept.
        held = np.asarray(in_intervals(calibrated.prediction, targets, LEVELS))
        covered = held[:, LEVELS.index(LEVEL)]
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
    rows, seed = run.prepared.rows, run.spec.training.seed
    if run.clock.seconds_before("familiarity") < 0.0:
        return replace(run, has_time=False)
    run.clock.begin("familiarity")
    familiarity = fit_familiarity(rows, run.prepared.schema, seed)
    if familiarity is None:
        return run
    extrapolation = fit_extrapolation(familiarity, run.best.model, rows, seed)
    return replace(run, familiarity=familiarity, extrapolation=extrapolation)


def judge_model(run: Run) -> Run:
    """Compares the model with the baselines, and says whether it learned anything."""
    run.clock.begin("judgement")
    judgement = run.baselines.judge(
        run.scored, places=run.places, parent=_scores_of_parent(run)
    )
    recipe = describe_recipe(run)
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
            f"`max_seconds` = {run.spec.training.max_seconds:g} ended the training "
            f"after {steps}: with more time the model may be better."
        )
    # After a few steps, better probabilities may come from the likelihood alone, and a
    # little less error from chance.
    compared = judgement["comparisons"]
    judgement["learned"] &= not out_of_time or beats_constant(compared, STANDARD_ERRORS)
    beaten = _compare_with_serving(run, judgement)
    judgement["verdict"] = verdict(judgement)
    judged = [judgement, *judgement.get("targets", ())]
    is_off = any(each.get("sums", {}).get("off", False) for each in judged)
    judgement["becomes_latest"] = run.spec.publishes(
        judgement["learned"] and not beaten and not is_off
    )
    useless = [] if judgement["learned"] else [LEARNED_NOTHING]
    waits = [] if judgement["becomes_latest"] else [WAITS]
    judgement["sentences"] += describe_extrapolation(run.extrapolation)
    said = [*beaten, *useless, *waits, *ended]
    for kind in ("sentences", "warnings"):
        judgement[kind] += said
    return replace(run, judgement=judgement, recipe=recipe)


STEPS = (
    prepare_rows,
    make_plan,
    train_networks,
    compare_baselines,
    train_best_network,
    calibrate_model,
    learn_familiarity,
    judge_model,
)


def result(run: Run) -> TrainedTable:
    """Returns what the steps found."""
    best, plan, prepared = run.best, run.plan, run.prepared
    best.model.familiarity = run.familiarity
    best.model.extrapolation = run.extrapolation
    network = best.network.model_copy(update={"members": plan.group_size})
    chosen: Config = {"learning_rate": plan.learning_rate, "kl_schedule": plan.schedule}
    if len(plan.temperatures) > 1 and best.choice is not None:
        temperature = best.choice.best.temperature
        chosen["kl_schedule"] = kl_schedule_at(temperature)
    training = run.spec.training.model_copy(update=chosen)
    return TrainedTable(
        model=best.model,
        schema=prepared.schema,
        spec=run.spec.model_copy(update={"model": network, "training": training}),
        num_training_rows=prepared.rows.num_rows,
        held_out_rows=prepared.held_out_rows,
        metrics=run.calibrated.metrics,
        log_likelihoods=run.scored.log_prob,
        recalibration_choice=run.calibrated.choice,
        recipe=run.recipe,
        judgement=run.judgement,
        clock=run.clock,
        baselines=run.baselines.of_all,
        drift_reference=None
        if run.members.folds is not None
        else drift_reference(run.calibrated.prediction, run.targets, run.row_weights),
        report=VersionReport.measure(run),
    )


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
    parent = run.parent.model(run.spec.training.seed)
    return PredictedRows.score(parent.predictive(run.inputs), run.targets)


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
    if prepared.schema.more_targets:
        return LikelihoodChoice(SEVERAL_TARGETS)
    rows, seed = prepared.rows, spec.training.seed
    batches = rows.batches(MOST_ROWS, seed=seed).take(1)
    inputs, targets, *_ = batches.as_numpy_iterator().next()
    every = np.concatenate([rows.targets(), prepared.held_out[1]])
    exposures = rows.exposures(inputs)
    return choose_likelihood(
        inputs, targets, others=every, exposures=exposures, seed=seed
    )


def _continued(spec: JobSpec, network: ModelSpec) -> JobSpec:
    """Returns a spec with the parent's network, at temperature 1."""
    schedule = spec.training.kl_schedule or kl_schedule_at(1.0)
    training = spec.training.model_copy(update={"kl_schedule": schedule})
    return spec.model_copy(update={"model": network, "training": training})


def _make_networks(run: Run, plan: TrainingPlan) -> list[BayesianModel]:
    """Makes the networks of a plan, with likelihoods adapted to the targets."""
    prepared, seed = run.prepared, run.spec.training.seed
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
            network.likelihood.adapt(
                targets,
                double=targets.dtype == np.float64,
                exposures=prepared.rows.exposures(),
            )
            if network.likelihood.unbounded:
                network.likelihood.bounds = bounds_of_targets(targets)
    except ValueError as error:
        names = named_targets(prepared.schema.target_names)
        raise TableError(f"T{names[1:]} cannot be learned: {error}") from None
    return networks
