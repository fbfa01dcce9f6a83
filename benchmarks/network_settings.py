"""Settings of the networks that `uci` compares the defaults with."""

# One hidden layer of 50 ReLUs, 100 from 20 000 rows on: the protocol of
# Hernandez-Lobato and Adams (2015), of whose sets only protein has so many.
# `steps` of Adam, or fewer where a fifth of the training rows says so.
_PROTOCOL = {
    "units": 50,
    "large_units": 100,
    "large_rows": 20_000,
    "steps": 6000,
    "learning_rate": 0.005,
}
SETTINGS = {
    "maximum_likelihood": {**_PROTOCOL},
    "map": {**_PROTOCOL},
    "mean_field": {**_PROTOCOL},
    "deep_ensemble": {**_PROTOCOL, "members": 5},
    # The rates that Gal and Ghahramani (2016) tried.
    "dropout": {**_PROTOCOL, "rates": [0.005, 0.01, 0.05, 0.1], "passes": 200},
}
