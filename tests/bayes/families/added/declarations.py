"""Declarations of families that only the tests know."""

import math

from tfbbb.bayes.families.likelihoods import (
    Heteroscedastic,
    NoiseScale,
    RegressionFamily,
    Standardize,
)
from tfbbb.bayes.families.posteriors import InitialScale, PosteriorFamily


class LaplacePosterior(PosteriorFamily):
    """Independent Laplace distributions."""

    initial_scale: InitialScale = 0.1
    symmetric = True

    def num_parameters(self, shape):
        return 2 * math.prod(shape)


class LogisticLikelihood(RegressionFamily):
    """A number with logistic noise."""

    heteroscedastic: Heteroscedastic = False
    scale: NoiseScale = None
    standardize: Standardize = True
