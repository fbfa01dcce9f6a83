"""The name that somebody meant, also at another level of a document."""

import pytest

from tfbbb.base.suggestions import did_you_mean, field_paths, near_name
from tfbbb.training import JobSpec

FIELDS = tuple(field_paths(JobSpec))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("epochs", "training.epochs"),
        ("lerning_rate", "training.learning_rate"),
        ("training.hidden_units", "model.hidden_units"),
        ("model.posterior.low_rank_normal.rnk", "model.posterior.rank"),
        ("targt", "target"),
        ("colour", None),
    ],
)
def test_fields_are_found_at_every_level(name, meant):
    assert near_name(name, FIELDS) == meant


def test_names_of_columns_may_have_dots_and_spaces():
    assert near_name("Sepal.Lenght", ["Sepal.Length", "Sepal.Width"]) == "Sepal.Length"
    assert near_name("floor areas", ["floor area", "price"]) == "floor area"


def test_the_field_at_the_highest_level_comes_first():
    assert near_name("name", ["model.name", "a.b.name", "name"]) == "name"


def test_names_that_differ_much_are_not_suggested():
    assert did_you_mean("width", ["area", "price"]) == ""
    assert did_you_mean(3, ["area"]) == ""


def test_many_and_long_names_take_no_time():
    assert near_name("x" * 10**7, (f"y{i}" for i in range(10**9))) is None
