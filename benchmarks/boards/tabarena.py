"""An entry for TabArena, whose models are those of AutoGluon.

Copy this file into a clone of TabArena: see `README.md` beside it.
"""

from autogluon.core.models import AbstractModel

from tfbbb.sklearn import BayesianClassifier, BayesianRegressor


class TfbbbModel(AbstractModel):
    """The estimators of `tfbbb.sklearn`; columns are taken as they are."""

    ag_key = "TFBBB"
    ag_name = "tfbbb"

    def _fit(self, X, y, time_limit=None, **kwargs):
        X = self.preprocess(X, is_train=True)
        is_number = self.problem_type == "regression"
        estimator = BayesianRegressor if is_number else BayesianClassifier
        parameters = self._get_model_params()
        if time_limit is not None:
            parameters.setdefault("max_seconds", time_limit)
        self.model = estimator(**parameters)
        self.model.fit(X, y, sample_weight=kwargs.get("sample_weight"))

    @classmethod
    def supported_problem_types(cls):
        """Returns the tasks that the estimators have."""
        return ["binary", "multiclass", "regression"]

    def _get_default_auxiliary_params(self):
        known = super()._get_default_auxiliary_params()
        types = ["int", "float", "bool", "category", "object"]
        return known | {"valid_raw_types": types}


def configurations(num_random_configs=0):
    """Returns the experiments of TabArena with the defaults, and with others."""
    from autogluon.common.space import Categorical
    from tabarena.utils.config_utils import ConfigGenerator

    space = {"effort": Categorical("quick", "default", "best")}
    generator = ConfigGenerator(
        model_cls=TfbbbModel, manual_configs=[{}], search_space=space
    )
    return generator.generate_all_bag_experiments(num_random_configs=num_random_configs)
