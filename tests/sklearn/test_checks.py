"""scikit-learn's own checks of estimators."""

import functools

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from tests.sklearn.estimators import classifier, regressor

# Those that train nothing.
SHORT = {
    "check_all_zero_sample_weights_error",
    "check_classifiers_one_label",
    "check_classifiers_regression_target",
    "check_complex_data",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimator_sparse_tag",
    "check_estimator_tags_renamed",
    "check_estimators_empty_data_messages",
    "check_estimators_unfitted",
    "check_fit1d",
    "check_fit2d_1sample",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_requires_y_none",
    "check_set_params",
    "check_supervised_y_no_nan",
    "check_valid_tag_types",
}
# Those that ask for a good score of the training rows.
WITH_SCORES = {"check_classifiers_train", "check_regressors_train"}
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "training draws noise for each row, so that a row of weight 2 and two rows are "
        "equal in the objective (tests/training/test_row_weights.py), not in digits"
    )
}


def checks():
    # Linear networks train soonest, and suffice for the rows of the checks.
    linear = {"hidden_units": (), "steps": 1, "learning_rate": 0.1}
    for estimator in (regressor(**linear), classifier(**linear)):
        for found in estimator_checks_generator(
            estimator, expected_failed_checks=EXPECTED_FAILURES, mark="xfail"
        ):
            values, marks = getattr(found, "values", found), []
            marks += getattr(found, "marks", ())
            check = values[1]
            while isinstance(check, functools.partial):
                check = check.func
            if check.__name__ not in SHORT:
                marks.append(pytest.mark.slow)
            made = values[0]
            if check.__name__ in WITH_SCORES:
                made = clone(made).set_params(steps=200)
            name = f"{type(estimator).__name__}-{check.__name__}"
            yield pytest.param(made, values[1], marks=marks, id=name)


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_estimator_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)
