"""Likelihoods p(y | f(x, w)), resolvable by string name."""

from tfbbb.bayes.likelihoods.bernoulli import Bernoulli
from tfbbb.bayes.likelihoods.beta import Beta
from tfbbb.bayes.likelihoods.categorical import Categorical
from tfbbb.bayes.likelihoods.counts import NegativeBinomial, Poisson
from tfbbb.bayes.likelihoods.gamma import Gamma
from tfbbb.bayes.likelihoods.grades import Grades
from tfbbb.bayes.likelihoods.inflated import InflatedBeta, ZeroInflated
from tfbbb.bayes.likelihoods.laplace import Laplace
from tfbbb.bayes.likelihoods.likelihood import Likelihood, register, registry
from tfbbb.bayes.likelihoods.log_normal import LogNormal
from tfbbb.bayes.likelihoods.multivariate_normal import MultivariateNormal
from tfbbb.bayes.likelihoods.normal import Normal
from tfbbb.bayes.likelihoods.normal_mixture import NormalMixture
from tfbbb.bayes.likelihoods.student_t import StudentT
from tfbbb.bayes.likelihoods.weibull import Weibull

names, get, make = registry.names, registry.get, registry.make
serialize, deserialize = registry.serialize, registry.deserialize


__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Gamma",
    "Grades",
    "InflatedBeta",
    "Laplace",
    "Likelihood",
    "LogNormal",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "NormalMixture",
    "Poisson",
    "StudentT",
    "Weibull",
    "ZeroInflated",
    "deserialize",
    "get",
    "make",
    "names",
    "register",
    "registry",
    "serialize",
]
