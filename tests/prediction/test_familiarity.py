"""Familiarity is a percentile, compares as defined, and stays with the model."""

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfbbb

RNG = np.random.default_rng(0)


def mixed_columns(n, seed):
    generator = np.random.default_rng(seed)
    age = generator.lognormal(size=n)
    return {
        "age": np.where(generator.random(n) < 0.1, np.nan, age).astype(np.float32),
        "fuel": generator.choice(["petrol", "diesel", ""], n).astype(object),
        "day": (generator.integers(0, 1000, n) * 86_400).astype(np.int64),
        "doors": generator.integers(2, 6, n).astype(np.float32),
    }


def parts_by_definition(known, row):
    """The largest gap and the relative distance of a row beside others."""
    distances = np.sqrt(np.square(known - row).sum(axis=1))
    nearest = np.argsort(distances)[:5]

    def spacing(place):
        others = np.sqrt(np.square(known - known[place]).sum(axis=1))
        return np.sort(np.delete(others, place))[:5].mean()

    own = distances[nearest].mean()
    relative = own / max(np.mean([spacing(place) for place in nearest]), 0.05)
    gaps = np.abs(known - row)[:, :3].min(axis=0)
    return gaps.max(), relative


@pytest.mark.parametrize(("kind", "rows"), [("numbers", 5000), ("mixed", 200)])
def test_new_rows_have_their_share_of_low_familiarity(kind, rows):
    def draw(n, seed):
        if kind == "mixed":
            return mixed_columns(n, seed)
        return np.random.default_rng(seed).standard_t(3, size=(n, 4))

    shares = []
    for seed in range(2):
        familiarity = tfbbb.Familiarity.fit(draw(rows, seed))
        new = familiarity(draw(4000, 100 + seed)).numpy()
        shares.append([np.mean(new <= level) for level in (0.05, 0.2, 0.5)])
    # Representatives vary as well as new rows; rows with equal scores have fewer.
    error = np.sqrt(0.25 / 2 / min(rows, 2000) + 0.25 / 8_000)
    bounds = np.array([0.05, 0.2, 0.5]) + 4 * error
    assert (np.mean(shares, axis=0) < bounds).all()
    if kind == "numbers":
        assert (np.mean(shares, axis=0) > bounds - 8 * error).all()


def test_familiarity_is_the_rank_of_its_formula():
    x = RNG.normal(size=(60, 3))
    familiarity = tfbbb.Familiarity.fit(x)
    known = familiarity.encode(x).numpy().astype(np.float64)
    parts = np.array(
        [
            parts_by_definition(np.delete(known, place, axis=0), known[place])
            for place in range(60)
        ]
    )
    units = np.maximum(np.sort(parts, axis=0)[59], [0.05, 1.0])

    def score(own, count):
        exceedance = np.max(own / units)
        return exceedance / (1.0 + exceedance) - count

    others = np.sum(parts >= parts[:, np.newaxis], axis=1).min(axis=1) - 1
    scores = np.array(list(map(score, parts, others)))
    expected = []
    new = 1.5 * RNG.normal(size=(40, 3))
    for row in familiarity.encode(new).numpy():
        own = parts_by_definition(known, row)
        count = np.sum(parts >= own, axis=0).min()
        expected.append((1 + np.sum(scores >= score(own, count))) / 61)
    np.testing.assert_allclose(familiarity(new), expected, rtol=1e-5)


def test_odd_pairs_do_not_hide_gaps_between_numbers():
    n = 300
    ages = np.where(RNG.random(n) < 0.5, RNG.uniform(0, 20, n), RNG.uniform(50, 90, n))
    fuel = RNG.choice(["petrol", "electric"], n)
    engine = np.where(fuel == "electric", "none", "V8")
    engine[:3] = "V8", "none", "steam"
    familiarity = tfbbb.Familiarity.fit({"age": ages, "fuel": fuel, "engine": engine})
    row = {"age": [35.0], "fuel": ["petrol"], "engine": ["V8"]}
    row = {name: np.array(value) for name, value in row.items()}
    assert familiarity(row).numpy() < 0.01


def test_unseen_values_and_pairs_are_unfamiliar():
    n = 2000
    fuel = RNG.choice(["petrol", "diesel", "electric"], n)
    engine = np.where(fuel == "electric", "none", RNG.choice(["V6", "V8"], n))
    size = RNG.normal(size=n).astype(np.float32)
    known = {"fuel": fuel, "engine": engine, "size": size}
    familiarity = tfbbb.Familiarity.fit(known)
    rows = {
        "fuel": np.array(["petrol", "gas", "electric", "petrol", ""]),
        "engine": np.array(["V8", "V8", "V8", "V8", "V8"]),
        "size": np.array([0.0, 0.0, 0.0, np.nan, 0.0], np.float32),
    }
    ordinary, *unlike = familiarity(rows).numpy()
    assert ordinary > 0.1
    assert max(unlike) < 0.005
    found = familiarity.differences(rows)
    assert found["pair"].numpy()[2].tolist() == [0, 1]
    np.testing.assert_array_equal(found["pair"][1], [0, 0])


def test_texts_that_occur_once_are_compared_by_their_absence_alone():
    names = np.array([f"name {number}" for number in range(60)])
    familiarity = tfbbb.Familiarity.fit({"name": names})
    rows = {"name": np.array(["another", ""])}
    another, missing = familiarity(rows).numpy()
    assert another > 0.5
    assert missing <= 1.1 / 61
    np.testing.assert_array_equal(
        familiarity.differences(rows)["pair"], [[-1, -1], [0, 0]]
    )


def test_differences_name_the_gap_and_the_values_around_it():
    ages = np.r_[np.arange(20.0), np.arange(50.0, 90.0)].repeat(5)
    x = np.stack([ages, RNG.normal(size=len(ages))], axis=1)
    found = tfbbb.Familiarity.fit(x).differences([[35.0, 0.0]])
    np.testing.assert_array_equal(found["is_apart"], [[True, False]])
    np.testing.assert_allclose(found["below"][0, 0], 19.0, rtol=1e-5)
    np.testing.assert_allclose(found["above"][0, 0], 50.0, rtol=1e-5)


def test_a_missing_value_is_as_familiar_as_it_is_frequent():
    x = RNG.normal(size=(1000, 2))
    x[:300, 0] = np.nan
    familiarity = tfbbb.Familiarity.fit(x)
    often, never = familiarity([[np.nan, 0.0], [0.0, np.nan]]).numpy()
    assert often > 0.05
    assert never < 0.005


@pytest.mark.usefixtures("compiled_functions")
def test_many_rows_are_compared_in_parts_in_any_graph():
    x = RNG.normal(size=(3000, 3)).astype(np.float32)
    familiarity = tfbbb.Familiarity.fit(x[:500])
    whole = familiarity(x).numpy()
    in_graph = tf.function(familiarity)(x).numpy()
    one_by_one = [familiarity(x[i : i + 1]).numpy()[0] for i in range(0, 3000, 300)]
    # Sums of products in another order round otherwise; ranks are 1/501 apart.
    np.testing.assert_allclose(in_graph, whole, atol=2.1 / 501)
    np.testing.assert_allclose(one_by_one, whole[::300], atol=2.1 / 501)


def test_constant_and_empty_columns_do_not_hide_others():
    x = np.random.default_rng(0).normal(size=(200, 3))
    x[:, 1], x[:, 2] = 7.0, np.nan
    familiarity = tfbbb.Familiarity.fit(x)
    rows = [[0.0, 7.0, np.nan], [9.0, 7.0, np.nan], [0.0, 20.0, np.nan], [0, 7, 0]]
    ordinary, *unlike = familiarity(rows).numpy()
    assert ordinary > 0.2
    assert max(unlike) <= 0.01


def small_model(**options):
    inputs = keras.Input((4,), name="x")
    outputs = tfbbb.layers.DenseVariational(1)(inputs)
    return tfbbb.BayesianModel(inputs, outputs, **options)


def test_familiarity_is_saved_with_the_model(tmp_path):
    x = RNG.normal(size=(300, 4)).astype(np.float32)
    model = small_model()
    model.familiarity = tfbbb.Familiarity.fit(x)
    new = 2 * RNG.normal(size=(40, 4)).astype(np.float32)
    expected = model.predictive(new).familiarity
    assert 0 < expected.min() < 0.05
    assert expected.max() > 0.5
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predictive(new).familiarity, expected)


def test_frames_texts_without_value_and_dates_are_read():
    columns = mixed_columns(200, 0)
    frame = pd.DataFrame(columns)
    frame["fuel"] = frame["fuel"].replace("", None)
    frame["day"] = pd.to_datetime(frame["day"], unit="s")
    by_frame = tfbbb.Familiarity.fit(frame)
    assert by_frame.columns == tuple(columns)
    new = mixed_columns(50, 1)
    expected = tfbbb.Familiarity.fit(columns)(new)
    np.testing.assert_array_equal(by_frame(new), expected)
    shuffled = frame[["doors", "day", "age", "fuel"]]
    np.testing.assert_array_equal(by_frame(shuffled), by_frame(frame))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros(3), "3 columns, 0 of them texts. Received: 1 columns"),
        (np.zeros((2, 4)), "3 columns, 0 of them texts. Received: 4 columns"),
        (np.array([["a", "b", "c"]]), "Received: 3 columns, 3 of them texts"),
        (1.0, "need an axis"),
    ],
)
def test_rows_of_other_columns_are_refused(rows, message):
    familiarity = tfbbb.Familiarity.fit(RNG.normal(size=(50, 3)))
    with pytest.raises(ValueError, match=message):
        familiarity(rows)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((1, 3)), "at least 20 rows"),
        (np.zeros((30, 1251)), "at most 1250 columns"),
        ("abc", r"need an axis of rows.*\{0: \(\)\}"),
        ({"a": np.zeros(30), "b": 2.0}, r"need an axis.*'b': \(\)"),
        ({"a": np.zeros(30), "b": np.zeros(20)}, r"'a': \(30,\), 'b': \(20,\)"),
        ([np.zeros((30, 1)), tf.zeros([20, 1])], r"0: \(30, 1\), 1: \(20, 1\)"),
        ({}, "at least one column"),
        ([], "at least one column"),
    ],
)
def test_rows_that_cannot_be_fitted_are_refused(x, message):
    with pytest.raises(ValueError, match=message):
        tfbbb.Familiarity.fit(x)


def test_a_familiarity_of_other_inputs_is_refused():
    model = small_model()
    with pytest.raises(ValueError, match="for 4 inputs"):
        model.familiarity = tfbbb.Familiarity.fit(mixed_columns(50, 0))
    with pytest.raises(ValueError, match="5 columns for 4 inputs"):
        model.familiarity = tfbbb.Familiarity.fit(RNG.normal(size=(50, 5)))
    with pytest.raises(ValueError, match=r"must be a `tfbbb\.Familiarity`"):
        model.familiarity = "rows"
