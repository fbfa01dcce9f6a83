"""Small networks, exported for tests of what the service answers."""

import keras

import tfbbb

CLASSES = ("red", "green", "blue")


def network(likelihood="normal", units=1, hidden=8):
    """Returns a network of two features, not trained."""
    keras.utils.set_random_seed(0)
    flow = inputs = keras.Input((2,))
    if hidden:
        flow = tfbbb.layers.DenseVariational(hidden, activation="relu")(flow)
    outputs = tfbbb.layers.DenseVariational(units)(flow)
    return tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)


def exported(model, path, **options):
    """Exports a network with 20 draws by default, and loads the file."""
    model.export_predictive(path, **({"num_samples": 20} | options))
    return tfbbb.load(path)
