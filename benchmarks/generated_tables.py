"""Tables as people have them, made by a generator: one of each kind of difficulty.

A table is its rows as text, as in a file, so each method reads them for itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Columns = Mapping[str, np.ndarray]
_ROWS = 400


@dataclass(frozen=True)
class Generated:
    """A generated table.

    Attributes:
        columns: The cells of each column as text, [rows].
        task: `"regression"` or `"classification"`; the target is `target`.
        targets: The targets as numbers or labels, [rows].
        separator: Between the cells of a row.
        decimal: The decimal mark.
    """

    columns: Columns
    task: str
    targets: np.ndarray
    separator: str = ","
    decimal: str = "."


def prices(generator: np.random.Generator) -> Generated:
    """Currency, units, per cent and thousands."""
    area = generator.uniform(400, 4000, _ROWS)
    tax = generator.uniform(0.5, 3.0, _ROWS)
    city = generator.choice(["Oslo", "Bergen", "Tromsø"], _ROWS)
    y = (180 * area + 40_000 * (city == "Oslo")) * (1 - tax / 20)
    y *= np.exp(0.08 * generator.normal(size=_ROWS))
    y = np.round(y, 2)
    return Generated(
        {
            "area": np.array([f"{x:,.0f} sqft" for x in area]),
            "tax": np.array([f"{x:.2f}%" for x in tax]),
            "city": city,
            "target": np.array([f"${x:,.2f}" for x in y]),
        },
        "regression",
        y,
    )


def dates(generator: np.random.Generator) -> Generated:
    """A trend, a season and a weekday, told by a US date."""
    days = np.sort(generator.integers(0, 1500, _ROWS))
    stamps = np.datetime64("2019-01-01") + days
    weekday = (days + 1) % 7
    y = 0.01 * days + 4.0 * np.sin(2 * np.pi * days / 365.25) + 2.0 * (weekday >= 5)
    y += generator.normal(size=_ROWS)
    order = generator.permutation(_ROWS)
    texts = np.array([f"{str(d)[5:7]}/{str(d)[8:]}/{str(d)[:4]}" for d in stamps])
    return _numbers({"day": texts[order]}, y[order])


def european(generator: np.random.Generator) -> Generated:
    """Semicolons and decimal commas."""
    x = generator.normal(size=(_ROWS, 3))
    y = 2.0 * x[:, 0] + np.sin(3.0 * x[:, 1]) + 0.3 * generator.normal(size=_ROWS)
    y = np.round(y, 3)
    columns = {f"x{i}": _texts(x[:, i]) for i in range(3)} | {"target": _texts(y)}
    commas = {k: np.char.replace(v, ".", ",") for k, v in columns.items()}
    return Generated(commas, "regression", y, separator=";", decimal=",")


def missing_marks(generator: np.random.Generator) -> Generated:
    """Missing numbers as ?, -, n/a and nothing."""
    x = generator.normal(size=(_ROWS, 4))
    y = x @ [1.0, -2.0, 0.5, 0.0] + 0.5 * generator.normal(size=_ROWS)
    columns = {}
    for i, mark in enumerate(("?", "-", "n/a", "")):
        gone = generator.uniform(size=_ROWS) < 0.15
        columns[f"x{i}"] = np.where(gone, mark, _texts(x[:, i]))
    return _numbers(columns, y)


def codes(generator: np.random.Generator) -> Generated:
    """A text column of 300 codes with effects, and an identifier."""
    code = generator.integers(0, 300, 1200)
    effect = generator.normal(size=300)
    x = generator.normal(size=1200)
    y = effect[code] + x + 0.3 * generator.normal(size=1200)
    return _numbers(
        {
            "id": np.array([f"A{i:06d}" for i in generator.permutation(1200)]),
            "code": np.array([f"K{i:03d}" for i in code]),
            "x": _texts(x),
        },
        y,
    )


def counts(generator: np.random.Generator) -> Generated:
    """Counts of Poisson distributions."""
    x = generator.normal(size=(_ROWS, 3))
    rate = np.exp(0.5 + 0.7 * x[:, 0] - 0.5 * x[:, 1])
    y = generator.poisson(rate).astype(float)
    columns = {f"x{i}": _texts(x[:, i]) for i in range(3)}
    whole = np.array([f"{value:.0f}" for value in y])
    return Generated({**columns, "target": whole}, "regression", y)


def positive(generator: np.random.Generator) -> Generated:
    """Skewed positive numbers."""
    x = generator.normal(size=(_ROWS, 3))
    y = np.exp(1.0 + x[:, 0] + np.sin(2 * x[:, 1]) + 0.4 * generator.normal(size=_ROWS))
    return _numbers({f"x{i}": _texts(x[:, i]) for i in range(3)}, y)


def shares(generator: np.random.Generator) -> Generated:
    """Shares between 0 and 1."""
    x = generator.normal(size=(_ROWS, 3))
    mean = 1.0 / (1.0 + np.exp(-(x[:, 0] - 1.5 * x[:, 1])))
    y = np.clip(generator.beta(8 * mean, 8 * (1 - mean)), 1e-4, 1 - 1e-4)
    return _numbers({f"x{i}": _texts(x[:, i]) for i in range(3)}, y)


def answers(generator: np.random.Generator) -> Generated:
    """Booleans in several spellings, a rare class."""
    x = generator.uniform(size=(_ROWS, 3)) < 0.5
    z = generator.normal(size=_ROWS)
    score = 1.5 * x[:, 0] - x[:, 1] + z
    label = np.where(score > 2.2, "rare", np.where(score > 0.5, "yes", "no"))
    return _classes(
        {
            "a": np.where(x[:, 0], "Yes", "No"),
            "b": np.where(x[:, 1], "t", "f"),
            "c": np.where(x[:, 2], "on", "off"),
            "z": _texts(z),
        },
        label,
    )


def wide(generator: np.random.Generator) -> Generated:
    """200 columns of which three matter, 150 rows."""
    x = generator.normal(size=(150, 200))
    y = x[:, :3] @ [3.0, -2.0, 2.0] + generator.normal(size=150)
    return _numbers({f"x{i}": _texts(x[:, i]) for i in range(200)}, y)


def noise(generator: np.random.Generator) -> Generated:
    """Columns that tell nothing of the target."""
    x = generator.normal(size=(_ROWS, 5))
    columns = {f"x{i}": _texts(x[:, i]) for i in range(5)}
    return _numbers(columns, generator.normal(size=_ROWS))


def outliers(generator: np.random.Generator) -> Generated:
    """Features and noise with heavy tails."""
    x = generator.standard_t(1.5, size=(_ROWS, 3))
    y = np.arcsinh(x) @ [1.0, -1.0, 0.5] + 0.3 * generator.standard_t(2.0, _ROWS)
    return _numbers({f"x{i}": _texts(x[:, i]) for i in range(3)}, y)


GENERATED: tuple[Callable[[np.random.Generator], Generated], ...] = (
    *(prices, dates, european, missing_marks, codes, counts),
    *(positive, shares, answers, wide, noise, outliers),
)


def _texts(values: np.ndarray) -> np.ndarray:
    return np.array([f"{value:.4f}" for value in values])


def _numbers(columns: Columns, y: np.ndarray) -> Generated:
    y = np.round(y, 4)
    return Generated({**columns, "target": _texts(y)}, "regression", y)


def _classes(columns: Columns, labels: np.ndarray) -> Generated:
    return Generated({**columns, "target": labels}, "classification", labels)
