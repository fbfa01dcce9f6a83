"""Likelihoods p(y | f(x, w)), resolvable by string name."""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.base.strategy import DeclaredClasses, Registry
from tfbbb.bayes.families.likelihoods import LIKELIHOODS
from tfbbb.bayes.likelihoods.bernoulli import Bernoulli
from tfbbb.bayes.likelihoods.beta import Beta
from tfbbb.bayes.likelihoods.categorical import Categorical
from tfbbb.bayes.likelihoods.gamma import Gamma
from tfbbb.bayes.likelihoods.laplace import Laplace
from tfbbb.bayes.likelihoods.likelihood import Likelihood
from tfbbb.bayes.likelihoods.log_normal import LogNormal
from tfbbb.bayes.likelihoods.multivariate_normal import MultivariateNormal
from tfbbb.bayes.likelihoods.negative_binomial import NegativeBinomial
from tfbbb.bayes.likelihoods.normal import Normal
from tfbbb.bayes.likelihoods.normal_mixture import NormalMixture
from tfbbb.bayes.likelihoods.ordered_logistic import OrderedLogistic
from tfbbb.bayes.likelihoods.poisson import Poisson
from tfbbb.bayes.likelihoods.student_t import StudentT

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
