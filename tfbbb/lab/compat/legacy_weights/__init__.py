"""Reading weights of legacy Keras and fitting them to layers of Keras 3."""
