"""The arguments of scores, which their docstrings show.

Args:
    prediction: A `tfbbb.Predictive`, or the prediction of a loaded export.
    y: Targets in raw units, [rows, k] (or [rows] for one target); for classes their
        indices or one-hot rows.
    inside: A `tfbbb.Predictive` of rows like those of training.
    outside: A `tfbbb.Predictive` of other rows by the same model.
    per_row: Whether to return the score of each row or target instead of the mean.
    level: Probability of the interval, strictly between 0 and 1.
    levels: Probabilities strictly between 0 and 1; by default 0.05, 0.1, ..., 0.95.
    bins: Number of bins, of equal width from 0 to 1.
    by: The uncertainty that orders the rows: `"entropy"`, `"mutual_information"`,
        `"epistemic"`, `"aleatoric"` or `"variance"`. Defaults to the entropy for
        classes. For numbers it defaults to the variance, and to the epistemic variance
        where rows from outside are to be found.
    seed: Seed for counts and grades: see `pit_values`.
    sample_weight: The weight of each row, [rows]; None for 1.
    name: Name of the metric; that of the score by default.
    dtype: Dtype of its sums.

Raises:
    ValueError: The score is not defined for the prediction, the targets do not fit the
        prediction, or an option is out of its range.
"""

from tfbbb.base.documented_arguments import shared_arguments

with_arguments = shared_arguments(__doc__)
