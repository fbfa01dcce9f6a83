"""Likelihoods p(y | f(x, w)), resolvable by string name."""

import tfbbb.backend  # noqa: F401  (refuses other backends first)
from tfbbb.families.likelihoods import LIKELIHOODS
from tfbbb.likelihoods.bernoulli import Bernoulli
from tfbbb.likelihoods.beta import Beta
from tfbbb.likelihoods.categorical import Categorical
from tfbbb.likelihoods.gamma import Gamma
from tfbbb.likelihoods.laplace import Laplace
from tfbbb.likelihoods.likelihood import Likelihood
from tfbbb.likelihoods.log_normal import LogNormal
from tfbbb.likelihoods.multivariate_normal import MultivariateNormal
from tfbbb.likelihoods.negative_binomial import NegativeBinomial
from tfbbb.likelihoods.normal import Normal
from tfbbb.likelihoods.normal_mixture import NormalMixture
from tfbbb.likelihoods.ordered_logistic import OrderedLogistic
from tfbbb.likelihoods.poisson import Poisson
from tfbbb.likelihoods.student_t import StudentT
from tfbbb.strategy import DeclaredClasses, Registry

_registry = Registry(Likelihood, DeclaredClasses(LIKELIHOODS, __name__))
names, get, make, serialize, deserialize = (
    _registry.names,
    _registry.get,
    _registry.make,
    _registry.serialize,
    _registry.deserialize,
)

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Gamma",
    "Laplace",
    "Likelihood",
    "LogNormal",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "NormalMixture",
    "OrderedLogistic",
    "Poisson",
    "StudentT",
    "deserialize",
    "get",
    "make",
    "names",
    "serialize",
]
