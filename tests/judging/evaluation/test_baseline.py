"""Baselines against scikit-learn and SciPy, and judgements of known predictions."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

from tfbbb.base.texts import shown_number
from tfbbb.judging.evaluation import judge
from tfbbb.judging.evaluation.baseline import Baseline
from tfbbb.judging.evaluation.input_encoding import InputEncoding
from tfbbb.judging.evaluation.predicted_rows import PredictedRows, tells_rows_apart

ROWS = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=ROWS)
KIND = RNG.choice(["a", "b", ""], size=ROWS)
INPUTS = {"x": np.where(np.arange(ROWS) == 3, np.nan, X), "kind": KIND.astype(object)}
Y = (2.0 * X + (KIND == "a") + 0.5 * RNG.normal(size=ROWS))[:, np.newaxis]
FEATURES = InputEncoding.fit(INPUTS).transform(INPUTS)


def test_features_are_standardised_imputed_and_one_hot():
    encoding = InputEncoding.fit(INPUTS)
    numbers = FEATURES[:, 0]
    known = np.delete(numbers, 3)
    assert numbers[3] == 0.0
    assert FEATURES[:, 1].nonzero()[0].tolist() == [3]
    assert known.mean() == pytest.approx(0.0, abs=1e-12)
    assert known.std() == pytest.approx(1.0)
    assert FEATURES.shape == (ROWS, 5)
    np.testing.assert_array_equal(FEATURES[:, 2:].sum(axis=1), 1.0)
    new = encoding.transform({"x": np.array([np.nan]), "kind": np.array(["z"])})
    assert new.tolist() == [[0.0, 1.0, 0.0, 0.0, 0.0]]


def test_encodings_and_baselines_survive_json():
    encoding = InputEncoding.fit(INPUTS)
    assert InputEncoding.from_dict(json.loads(json.dumps(encoding.to_dict()))) == (
        encoding
    )
    linear = Baseline.linear(FEATURES, Y)
    again = Baseline.from_dict(json.loads(json.dumps(linear.to_dict())))
    np.testing.assert_array_equal(
        again.predict(FEATURES, Y).log_prob, linear.predict(FEATURES, Y).log_prob
    )


def test_a_linear_model_recovers_slope_and_noise():
    linear = Baseline.linear(FEATURES, Y)
    slope = linear.weights[0, 0] / InputEncoding.fit(INPUTS).columns[0].scale
    # Four standard errors of 400 rows.
    assert slope == pytest.approx(2.0, abs=4 * 0.5 / np.sqrt(ROWS))
    assert linear.scale == pytest.approx(0.5, rel=4 / np.sqrt(2 * ROWS))
    rows = linear.predict(FEATURES, Y)
    expected = stats.norm(rows.mean, linear.scale).logpdf(Y)
    np.testing.assert_allclose(rows.log_prob, expected[:, 0])
    lower, upper = stats.norm(rows.mean, linear.scale).interval(0.9)
    assert rows.coverage == np.mean((lower <= Y) & (upper >= Y))


def test_whole_numbers_have_probabilities_that_add_up_to_one():
    values = np.arange(-60.0, 80.0)[:, np.newaxis]
    constant = Baseline("mean", np.array([3.3]), scale=2.0, discrete=True)
    log_prob = constant.predict(None, values).log_prob
    assert np.exp(log_prob).sum() == pytest.approx(1.0)
    z = (np.array([[3.0]]) - 3.3) / 2.0
    expected = np.diff(stats.norm.cdf([z[0, 0] - 0.25, z[0, 0] + 0.25]))[0]
    assert np.exp(log_prob[63]) == pytest.approx(expected)


@pytest.mark.parametrize("num_classes", [2, 3])
def test_a_logistic_model_has_the_probabilities_of_scikit_learn(num_classes):
    labels = np.digitize(Y[:, 0], [0.0, 1.5][: num_classes - 1])
    rows = Baseline.logistic(FEATURES, labels, num_classes).predict(FEATURES, labels)
    expected = LogisticRegression().fit(FEATURES, labels).predict_proba(FEATURES)
    np.testing.assert_allclose(rows.probabilities, expected, rtol=1e-6)


def test_a_class_without_a_training_row_is_improbable_but_possible():
    labels = np.array([0, 2] * 20)
    features = RNG.normal(size=(40, 2))
    for baseline in (
        Baseline.logistic(features, labels, 4),
        Baseline.constant(labels, 4),
    ):
        probabilities = baseline.predict(features, labels).probabilities
        assert np.all((probabilities[:, [1, 3]] > 0) & (probabilities[:, [1, 3]] < 0.1))


WEIGHTS = np.random.default_rng(7).integers(1, 4, ROWS).astype(float)
REPEATED = np.repeat(np.arange(ROWS), WEIGHTS.astype(int))
LABELS = np.digitize(Y[:, 0], [0.0, 1.5])


def test_baselines_of_weighted_rows_are_those_of_repeated_rows():
    for fit in (
        lambda x, y, labels, w: Baseline.constant(y, weights=w),
        lambda x, y, labels, w: Baseline.constant(labels, 3, weights=w),
        lambda x, y, labels, w: Baseline.linear(x, y, weights=w),
        lambda x, y, labels, w: Baseline.logistic(x, labels, 3, w),
    ):
        weighted = fit(FEATURES, Y, LABELS, WEIGHTS)
        repeated = fit(FEATURES[REPEATED], Y[REPEATED], LABELS[REPEATED], None)
        values, expected = (
            model.predict(FEATURES, LABELS if model.scale is None else Y)
            for model in (weighted, repeated)
        )
        np.testing.assert_allclose(values.mean, expected.mean, atol=1e-4)
        # The deviation from a mean counts repeated rows as independent ones.
        np.testing.assert_allclose(values.log_prob, expected.log_prob, atol=0.02)


@pytest.mark.parametrize("classes", [False, True])
def test_figures_of_weighted_rows_are_those_of_repeated_rows(classes):
    targets = LABELS if classes else Y
    model = (
        Baseline.logistic(FEATURES, LABELS, 3)
        if classes
        else (Baseline.linear(FEATURES, Y))
    )
    constant = Baseline.constant(targets, 3 if classes else 0)

    def judged(rows, weights=None):
        models = {"model": model, "mean": constant}
        predicted = {
            name: each.predict(FEATURES[rows], targets[rows])
            for name, each in models.items()
        }
        return judge(predicted, targets[rows], weights=weights)

    weighted, repeated = judged(np.arange(ROWS), WEIGHTS), judged(REPEATED)
    for name, figures in repeated["figures"].items():
        assert weighted["figures"][name] == pytest.approx(figures)
    compared, same = (each["comparisons"]["mean"] for each in (weighted, repeated))
    for part, name in (("error", "reduction"), ("log_likelihood", "gain")):
        assert compared[part][name] == pytest.approx(same[part][name])
        # Repeated rows are taken for rows of their own, so their errors are less.
        assert 0.6 < compared[part]["z"] / same[part]["z"] < 0.9
    assert weighted["figures"] != judged(np.arange(ROWS))["figures"]


def test_a_better_model_has_less_error_in_words():
    rows = {
        "model": Baseline.linear(FEATURES, Y).predict(FEATURES, Y),
        "mean": Baseline.constant(Y).predict(None, Y),
    }
    judged = judge(rows, Y)
    ratio = judged["figures"]["model"]["rmse"] / judged["figures"]["mean"]["rmse"]
    share = f"{100 * (1 - ratio):.2g} %"
    assert judged["sentences"][0] == f"The model has {share} less error than the mean."
    assert judged["figures"]["mean"]["r_squared"] == pytest.approx(0.0, abs=1e-12)
    assert judged["figures"]["model"]["r_squared"] > 0.9
    assert judged["learned"]
    worse = judge({"model": rows["mean"], "linear model": rows["model"]}, Y)
    assert worse["warnings"][0] == worse["sentences"][0]
    assert worse["sentences"][0] == (
        f"The model has {shown_number(1 / ratio, 2)} times the error of a linear model."
    )


def absurd_rows(rows_apart=True):
    """A model with one absurd mean and better probabilities, beside the mean."""
    mean = Baseline.constant(Y).predict(None, Y)
    means = np.full((ROWS, 1), Y.mean())
    means[5] += 500.0 * Y.std() * np.sqrt(ROWS)
    log_prob = mean.log_prob + 0.5
    model = PredictedRows(log_prob, means, 0.9, tells_rows_apart=rows_apart)
    return {"model": model, "mean": mean}


def test_an_absurd_mean_is_told_with_its_size_and_is_nothing_learned():
    judged = judge(absurd_rows(), Y)
    assert judged["warnings"][0] == (
        "The model has 500 times the error of the mean, which may be chance, but its "
        "probabilities are better by 0.5 nats per row."
    )
    assert not judged["learned"]
    assert not any("e+" in sentence for sentence in judged["sentences"])


@pytest.mark.parametrize("rows_apart", [True, False])
def test_better_probabilities_must_differ_by_row(rows_apart):
    rows = absurd_rows(rows_apart)
    model = replace(rows["model"], mean=rows["mean"].mean)
    assert judge({**rows, "model": model}, Y)["learned"] == rows_apart


def test_targets_are_more_probable_in_their_own_rows_if_rows_differ():
    linear = Baseline.linear(FEATURES, Y)
    constant = Baseline.constant(Y)

    class Prediction:
        def __init__(self, baseline, rows=None):
            self.baseline = baseline
            self.rows = np.arange(ROWS) if rows is None else rows

        def take(self, rows):
            return Prediction(self.baseline, rows)

        def log_prob(self, targets):
            return self.baseline.predict(FEATURES[self.rows], targets).log_prob

    for baseline, expected in ((linear, True), (constant, False)):
        log_prob = Prediction(baseline).log_prob(Y)
        assert tells_rows_apart(Prediction(baseline), Y, log_prob) == expected


def test_a_row_that_decides_the_error_is_named():
    targets = Y.copy()
    targets[7] = 1e9
    rows = {
        "model": PredictedRows(np.zeros(ROWS), Y + 0.1 * RNG.normal(size=Y.shape), 0.9),
        "linear model": PredictedRows(np.zeros(ROWS), Y + RNG.normal(size=Y.shape)),
    }
    judged = judge(rows, targets, places=np.arange(100, 100 + ROWS))
    assert judged["warnings"][-1] == (
        "Row 108 carries 99.9 % of the squared error of the model."
    )
    assert "no better" in judged["sentences"][0]
    targets[[9, 40]] = -1e9
    assert "Rows 8, 10 and 41 carry" in judge(rows, targets)["warnings"][-1]


def test_intervals_that_miss_their_level_are_called_narrow_or_wide():
    def sentence(coverage):
        model = PredictedRows(np.zeros(ROWS), Y, coverage)
        judged = judge({"model": model}, Y)
        assert judged["sentences"] == judged["warnings"] or coverage == 0.91
        return judged["sentences"][0]

    # The standard error of 400 rows is 1.5 %.
    assert sentence(0.91) == "Its intervals cover 91 % where 90 % were asked."
    assert sentence(0.8).endswith("asked: they are too narrow.")
    assert sentence(0.99).endswith("asked: they are too wide.")


def errors_of(model, other, gain=0.0, name="linear model"):
    """Judges a model by its absolute errors and those of a baseline, [n]."""
    targets = np.zeros((len(model), 1))
    log_prob = np.zeros(len(model))
    # The errors add up to about 0.
    signs = np.resize([1.0, 1.0, -1.0, -1.0], len(model))
    model, other = ((signs * errors)[:, None] for errors in (model, other))
    rows = {
        "model": PredictedRows(log_prob + gain, model, 0.9),
        name: PredictedRows(log_prob, other, 0.9),
    }
    return judge(rows, targets)


SPREAD = np.tile([1.0, 1.1], 100)
ONE_ROW = np.where(np.arange(200) == 5, 85.0, SPREAD)


@pytest.mark.parametrize(
    ("model", "other", "gain", "sentence"),
    [
        (832 * SPREAD, SPREAD, 0.0, "The model has 832 times the error of OTHER."),
        (1.3 * SPREAD, SPREAD, 0.0, "The model has 30 % more error than OTHER."),
        (
            4.24 * SPREAD,
            SPREAD,
            2 * SPREAD,
            "The model has 4.2 times the error of OTHER, but its probabilities are "
            "better by 2.1 nats per row.",
        ),
        (
            ONE_ROW,
            SPREAD,
            0.0,
            "The model has 5.8 times the error of OTHER, which may be chance.",
        ),
        (
            ONE_ROW,
            SPREAD,
            2 * SPREAD,
            "The model has 5.8 times the error of OTHER, which may be chance, but its "
            "probabilities are better by 2.1 nats per row.",
        ),
        (SPREAD, 0.0 * SPREAD, 0.0, "The model errs, and OTHER never does."),
    ],
)
def test_a_worse_model_is_said_to_be_worse_by_how_much(model, other, gain, sentence):
    judged = errors_of(model, other, gain)
    expected = sentence.replace("OTHER", "a linear model")
    assert judged["sentences"][0] == judged["warnings"][0] == expected


@pytest.mark.parametrize(
    ("factor", "name", "verdict"),
    [
        (1.3, "linear model", "worse than linear model"),
        (0.7, "linear model", None),
        (1.3, "mean", "learned nothing"),
        (1.3, "parent version", "worse than parent version"),
    ],
)
def test_the_verdict_is_a_word_for_lists(factor, name, verdict):
    assert errors_of(factor * SPREAD, SPREAD, name=name)["verdict"] == verdict


@pytest.mark.parametrize(
    ("number", "rows"), [(1, "1 row"), (2, "2 rows"), (9, "9 rows")]
)
def test_few_rows_are_not_judged(number, rows):
    judged = errors_of(3 * SPREAD[:number], SPREAD[:number])
    (sentence,) = judged["sentences"]
    assert (
        sentence
        == judged["warnings"][0]
        == (
            f"Nobody can tell from {rows} whether the model is better than a linear "
            "model, or whether its intervals are right."
        )
    )
    assert (judged["verdict"], judged["learned"]) == (None, True)


def judged_amounts(means, targets, **given):
    """Judges predicted means beside the mean, whose density is far worse."""
    constant = Baseline.constant(targets).predict(None, targets)
    model = PredictedRows(np.zeros(len(targets)), means, **given)
    return judge({"model": model, "mean": constant}, targets)


def test_predictions_that_do_not_add_up_are_said():
    generator = np.random.default_rng(0)
    paid = generator.random(400) < 0.1
    targets = np.where(paid, 1000.0 * generator.exponential(size=400), 0.0)[:, None]
    judged = judged_amounts(0.5 * targets, targets)
    sums = judged["sums"]
    assert sums["predicted"] == pytest.approx(0.5 * targets.sum())
    assert sums["off"]
    # The standard error of a mean.
    z = -np.sqrt(400) * targets.mean() / targets.std(ddof=1)
    assert sums["z"] == pytest.approx(z)
    totals = [shown_number(sums[name], 3) for name in ("predicted", "targets")]
    said = "Its predictions add up to {}, 50 % less, where the targets add up to {}."
    assert said.format(*totals) in judged["warnings"]
    assert judged["verdict"] == "wrong in sum"
    judged = judged_amounts(np.full((400, 1), targets.mean() + 1e-6), targets)
    assert not judged["sums"]["off"]
    assert not any("add up" in said for said in judged["sentences"])


@pytest.mark.parametrize(("factor", "learned"), [(1.0, True), (1.05, False)])
def test_a_mean_that_is_worse_than_the_constant_is_no_use(factor, learned):
    # Although the density is better and tells rows apart.
    targets = np.random.default_rng(0).normal(size=(200, 1))
    distance = factor * (targets - targets.mean())
    judged = judged_amounts(targets - distance, targets)
    assert judged["learned"] == learned


@pytest.mark.parametrize(
    ("shares", "upper", "covered", "wide"),
    [
        # Counts: of each 25 one is 1.
        ((0.96, 0.04), 0.0, 96, False),
        ((0.96, 0.04), 3.0, 100, True),
        # Without either end, the interval from 0 to 1 would be too narrow on that side.
        ((0.08, 0.76, 0.16), 1.0, 100, False),
        ((0.08, 0.92, 0.0), 1.0, 100, True),
    ],
)
def test_intervals_are_too_wide_only_if_narrower_ones_do(shares, upper, covered, wide):
    values = np.linspace(0.0, 1.0, len(shares))
    targets = np.repeat(values, np.round(500 * np.array(shares)).astype(int))[:, None]
    inside = (targets <= upper).astype(float)[:, 0]
    beyond = np.concatenate([targets <= 0.0, targets >= upper], axis=1)
    means = np.full((500, 1), targets.mean())
    judged = judged_amounts(means, targets, covered=inside, beyond=beyond)
    ending = (
        "they are too wide"
        if wide
        else "single numbers are too probable for narrower ones"
    )
    said = f"Its intervals cover {covered} % where 90 % were asked: {ending}."
    assert said in judged["warnings" if wide else "sentences"]


def test_targets_at_or_beyond_the_ends_of_intervals_of_counts_are_told():
    prediction = SimpleNamespace(
        discrete=True,
        log_prob=lambda y: np.zeros(len(y)),
        mean=np.ones((4, 1)),
        interval=lambda level: (np.zeros((4, 1)), np.full((4, 1), 2.0)),
    )
    targets = np.arange(4.0)[:, None]
    found = PredictedRows.score(prediction, targets, np.ones(4)).beyond
    assert found.tolist() == [[1, 0], [0, 0], [0, 1], [0, 1]]


def test_a_target_at_an_end_has_the_probability_of_all_beyond_it():
    constant = Baseline("mean", np.array([0.3]), scale=0.5, masses=(0.0, 1.0))
    targets = np.array([[0.0], [1.0], [0.4]])
    expected = [
        stats.norm.logcdf(-0.6),
        stats.norm.logsf(1.4),
        stats.norm.logpdf(0.4, 0.3, 0.5),
    ]
    np.testing.assert_allclose(constant.predict(None, targets).log_prob, expected)
    again = Baseline.from_dict(json.loads(json.dumps(constant.to_dict())))
    assert again.masses == (0.0, 1.0)
