"""Short programs of Keras users, one for each situation, with their right figures.

Each test is a program of at most some 25 lines, as a user would write it, and is named
by its situation. The right figure comes from one of two places:

- a twin in plain Keras: the same network of the layers of Keras, with the same weights.
  With point posteriors a variational layer is its Keras layer, so all figures of the
  two models agree to float precision (`twins.py`);
- brute force in NumPy: the objective written out from posterior, prior and rows.

A file holds one kind of situation: masks, weights, data, callbacks, saving, custom
steps, networks. Models are tiny, train for a few steps, and run eagerly where a trace
would take longer than the steps.
"""
