"""Likelihoods p(y | f(x, w)), resolvable by string name."""

import tfbbb.backend  # noqa: F401  (refuses other backends first)
from tfbbb.likelihoods.beta import Beta
from tfbbb.likelihoods.categorical import Categorical
from tfbbb.likelihoods.gamma import Gamma
from tfbbb.likelihoods.laplace import Laplace
from tfbbb.likelihoods.likelihood import Likelihood
from tfbbb.likelihoods.log_normal import LogNormal
from tfbbb.likelihoods.multivariate_normal import MultivariateNormal
from tfbbb.likelihoods.normal import Normal
from tfbbb.likelihoods.normal_mixture import NormalMixture
from tfbbb.likelihoods.student_t import StudentT
from tfbbb.strategy import Registry

_registry = Registry(
    "likelihood",
    Likelihood,
    [
        Beta,
        Categorical,
        Gamma,
        Laplace,
        LogNormal,
        MultivariateNormal,
        Normal,
        NormalMixture,
        StudentT,
    ],
)
names, get, serialize, deserialize = (
    _registry.names,
    _registry.get,
    _registry.serialize,
    _registry.deserialize,
)

__all__ = [
    "Beta",
    "Categorical",
    "Gamma",
    "Laplace",
    "Likelihood",
    "LogNormal",
    "MultivariateNormal",
    "Normal",
    "NormalMixture",
    "StudentT",
    "deserialize",
    "get",
    "names",
    "serialize",
]
