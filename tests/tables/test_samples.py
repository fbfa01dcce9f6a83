from sklearn.datasets import load_diabetes

from tfbbb.tables import samples


def test_the_diabetes_table_is_in_raw_units():
    table = samples.diabetes()
    expected = load_diabetes(scaled=False)
    assert table.column_names == [*expected.feature_names, "progression"]
    # The first patient of Efron et al. (2004): 59 years, bmi 32.1, pressure 101.
    first = table.slice(0, 1).to_pylist()[0]
    assert (first["age"], first["sex"], first["bmi"], first["bp"]) == (59, 2, 32.1, 101)
    assert first["progression"] == 151
