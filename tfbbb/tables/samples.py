"""Sample tables from installed libraries, without a download."""

import pyarrow as pa


def diabetes() -> pa.Table:
    """Returns the diabetes table of Efron et al. (2004) in raw units.

    442 patients: `age` in years, `sex` (1 or 2), `bmi` in kg/m², mean blood
    pressure `bp` in mmHg, six blood serum measurements `s1` to `s6`, and the target
    `progression`, a measure of the disease one year later (25 to 346).

    Example:
    >>> table = diabetes()
    >>> table.num_rows, table.column_names[-1]
    (442, 'progression')
    """
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    columns = dict(zip(bunch.feature_names, bunch.data.T, strict=True))
    return pa.table({**columns, "progression": bunch.target})
