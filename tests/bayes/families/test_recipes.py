"""A new posterior or likelihood needs one class with one decorator."""

import json
import subprocess
import sys

import numpy as np
import pytest

# A training and an export in a process of its own.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What a program finds that adds a posterior and a likelihood."""
    directory = tmp_path_factory.mktemp("added")
    program = [sys.executable, "-m", "tests.bayes.families.added.train", str(directory)]
    subprocess.run(program, check=True)
    return json.loads((directory / "answers.json").read_text())


def test_the_first_likelihood_of_a_program_is_a_layer(answers):
    assert answers["first_is_layer"]
    assert answers["first"]["scale"] == 2.0


def test_added_families_are_found_by_name(answers):
    assert {"laplace", "logistic"} <= set(answers["names"])


def test_json_schema_offers_added_families(answers):
    definitions = answers["schema"]["$defs"]
    laplace = definitions["LaplacePosterior"]["properties"]
    assert laplace["name"]["const"] == "laplace"
    assert laplace["initial_scale"]["default"] == 0.1
    assert definitions["LogisticLikelihood"]["properties"]["name"]["const"] == (
        "logistic"
    )


def test_spec_counts_parameters_of_added_posterior(answers):
    assert answers["parameters"] == answers["variables"] == 6


def test_added_families_are_restored_from_their_configs(answers):
    assert answers["posterior"] == "Laplace(initial_scale=0.2)"
    arguments = {"heteroscedastic": False, "scale": None, "standardize": True}
    assert arguments.items() <= answers["likelihood"].items()


def test_export_of_added_families_answers_as_the_model(answers):
    np.testing.assert_allclose(answers["loaded"], answers["live"], rtol=1e-5)
    assert answers["support"].startswith("finite numbers")
