import numpy as np
import pyarrow.compute as pc
from sklearn.datasets import load_diabetes
from typer.testing import CliRunner

from tests.documents import ROOT
from tfbbb.cli import app
from tfbbb.tables import read_table, samples


def test_the_diabetes_table_is_in_raw_units():
    table = samples.diabetes()
    expected = load_diabetes(scaled=False)
    assert table.column_names == [*expected.feature_names, "progression"]
    # The first patient of Efron et al. (2004): 59 years, bmi 32.1, pressure 101.
    first = table.slice(0, 1).to_pylist()[0]
    assert (first["age"], first["sex"], first["bmi"], first["bp"]) == (59, 2, 32.1, 101)
    assert first["progression"] == 151


def test_the_page_offers_the_same_houses():
    assert read_table(ROOT / "service/web/houses.csv").equals(samples.houses())
    assert not samples.houses().equals(samples.houses(seed=1))


def test_houses_have_the_noise_that_they_state():
    table = samples.houses(20_000).drop_null()
    price = np.log(table["price"].to_numpy())
    day = pc.cast(table["sold"], "int32").to_numpy()
    age = table["age"].to_numpy()
    worn = 1 - 0.005 * np.minimum(age, 60) + 0.003 * np.maximum(age - 90, 0)
    columns = [np.ones(len(day)), np.log(table["area"].to_numpy()), day, np.log(worn)]
    for name in ("district", "heating"):
        values = table[name].to_numpy()
        columns += [(values == kind).astype(float) for kind in np.unique(values)[1:]]
    design = np.stack(columns, axis=1)
    left = price - design @ np.linalg.lstsq(design, price)[0]
    # Prices are rounded to 500, which adds less than a thousandth.
    assert abs(np.std(left) - 0.09) < 4 * 0.09 / np.sqrt(2 * len(left)) + 1e-4


def test_the_command_writes_the_houses_and_replaces_no_other_file(tmp_path):
    def run(*options):
        return CliRunner().invoke(app, ["sample", *map(str, options)])

    path = tmp_path / "houses.csv"
    for _ in range(2):
        result = run(path)
        assert result.exit_code == 0, result.output
        assert "--target price" in result.output
    assert read_table(path).num_rows == 800
    other = run(path, "--seed", 1)
    assert other.exit_code == 1
    assert "exists; name another file" in other.output
