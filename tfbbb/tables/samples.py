"""Sample tables, without a download."""

import datetime

import numpy as np
import pyarrow as pa

# The price of a square metre, relative to that of Mill Hill.
_DISTRICTS = {
    "Old Town": 1.35,
    "Riverside": 1.2,
    "Greenfields": 1.05,
    "Mill Hill": 1.0,
    "North End": 0.85,
    "Station": 0.8,
}
# The factor of the price, and the shares in new and in old houses.
_HEATING = {
    "heat pump": (1.06, 0.6, 0.08),
    "district heating": (1.02, 0.15, 0.12),
    "gas": (1.0, 0.2, 0.5),
    "wood": (0.98, 0.05, 0.1),
    "oil": (0.94, 0.0, 0.2),
}
_FIRST_DAY, _DAYS = datetime.date(2022, 1, 1), 4 * 365


def houses(rows: int = 800, seed: int = 0) -> pa.Table:
    """Returns made-up sales of houses in one town, for examples.

    `area` in m², number of `rooms`, `age` in years, `district`, `heating`, the date on
    which the house was `sold`, and the target `price`. Some values of `rooms`, `age`
    and `heating` are missing. The logarithm of the price has normal noise with the
    standard deviation 0.09.

    Example:
    >>> table = houses()
    >>> table.num_rows, table.column_names
    (800, ['area', 'rooms', 'age', 'district', 'heating', 'sold', 'price'])
    """
    generator = np.random.default_rng(seed)
    area = np.exp(generator.normal(np.log(110), 0.35, rows)).clip(35, 320).round()
    rooms = (area / 26 + generator.normal(0, 0.7, rows)).round().clip(1)
    age = generator.gamma(1.6, 28, rows).clip(0, 140).round()
    district = generator.choice(list(_DISTRICTS), rows)
    names = np.array(list(_HEATING))
    factors, of_new, of_old = np.array(list(_HEATING.values())).T
    shares = np.where(age[:, np.newaxis] < 15, of_new, of_old).cumsum(axis=1)
    heating = (generator.random((rows, 1)) > shares).sum(axis=1).clip(0, len(names) - 1)
    day = generator.integers(_DAYS, size=rows)
    # Houses lose value for 60 years, and old ones are sought after.
    worn = 1 - 0.005 * np.minimum(age, 60) + 0.003 * np.maximum(age - 90, 0)
    price = 2800 * area**0.95 * worn * factors[heating]
    price *= np.array([_DISTRICTS[name] for name in district])
    price *= 1.035 ** (day / 365) * np.exp(generator.normal(0, 0.09, rows))

    def some_missing(values: np.ndarray, share: float) -> pa.Array:
        return pa.array(values, mask=generator.random(rows) < share)

    return pa.table(
        {
            "area": area.astype(int),
            "rooms": some_missing(rooms.astype(int), 0.02),
            "age": some_missing(age.astype(int), 0.05),
            "district": district,
            "heating": some_missing(names[heating], 0.04),
            "sold": [_FIRST_DAY + datetime.timedelta(int(days)) for days in day],
            "price": (500 * np.round(price / 500)).astype(int),
        }
    )


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
