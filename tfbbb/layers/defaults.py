"""The posterior and the priors of a layer that is given none."""

from tfbbb.bayes.posteriors import MeanFieldNormal
from tfbbb.bayes.priors import Normal

# Of kernels and biases, chosen by the study of `benchmarks/README.md`, "Default
# layers". A saved layer states its own, so a change here changes only new layers.
DEFAULT_POSTERIOR = MeanFieldNormal(initial_scale=0.02)
DEFAULT_PRIOR = Normal(scale=0.5)
DEFAULT_BIAS_PRIOR = Normal(scale=1.0)
