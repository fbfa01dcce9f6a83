"""The base class of methods whose members are draws from the posterior."""

import keras
import numpy as np

from tfbbb.base.types import ArrayLike, Identifier, Structure
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.inference.chain_diagnostics import compared_chains
from tfbbb.inference.log_posterior import LogPosterior
from tfbbb.inference.method import (
    InferenceMethod,
    as_bayesian_model,
    refuse_batch_normalization,
    refuse_dropout,
    require_priors,
)
from tfbbb.model.bayesian_model import BayesianModel


class PosteriorSampler(InferenceMethod):
    """Samples weights and learned noise; the draws become members of the result.

    A subclass has `learned_scale`, and implements `sample` and `_members`.
    """

    learned_scale: float

    def fit(
        self,
        model: keras.Model,
        x: Structure,
        y: ArrayLike = None,
        *,
        likelihood: Identifier | Likelihood | None = None,
        sample_weight: ArrayLike = None,
        verbose: int | str = "auto",
    ) -> BayesianModel:
        """Returns the model with draws from its posterior as members."""
        model = as_bayesian_model(model, likelihood)
        refuse_dropout(self, model)
        refuse_batch_normalization(self, model)
        require_priors(self, model)
        target = LogPosterior(model, x, y, sample_weight, self.learned_scale)
        draws, figures = self.sample(target, verbose)
        # Chain by chain, so that each chain gives as many members as any other.
        by_chain = np.swapaxes(draws, 0, 1).reshape(-1, target.size)
        result = target.as_model(self._members(by_chain))
        if len(draws) >= 4:
            figures |= compared_chains(target, draws)
        result.inference = self.result(**figures)
        return result

    def sample(
        self, target: LogPosterior, verbose: int | str = 0
    ) -> tuple[np.ndarray, dict[str, float | None]]:
        """Returns draws, [draws, chains, D + L], and figures of the run by name."""
        raise NotImplementedError

    def _members(self, draws: np.ndarray) -> np.ndarray:
        """Returns the draws to keep, of all draws [draws, D + L], chain by chain."""
        return draws

    def _progress(
        self, count: int, verbose: int | str, unit: str
    ) -> keras.utils.Progbar:
        verbose = 1 if verbose == "auto" else verbose
        return keras.utils.Progbar(count, verbose=verbose, unit_name=unit)
