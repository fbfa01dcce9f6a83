"""Settings of the networks that `uci` compares the defaults with."""

# One hidden layer of 50 ReLUs, the protocol of Hernandez-Lobato and Adams (2015); 100
# from `large_rows` rows on, of which the protocol's only set is protein.
PROTOCOL = {"units": 50, "large_units": 100, "large_rows": 20_000}
