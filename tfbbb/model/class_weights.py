"""How much each class counts in training, relative to the others."""

import math
from collections.abc import Mapping
from numbers import Real

import keras
import numpy as np
import tensorflow as tf

from tfbbb.base.types import ArrayLike, Structure
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.model.training_rows import TrainingRows


def relative_class_weights(
    class_weight: Mapping[int, float], likelihood: Likelihood, rows: TrainingRows
) -> dict[int, float]:
    """Returns the weight of every class, with a mean of 1 over the training targets.

    Class weights say how much a class counts *relative to the others*: a target of the
    class c has the weight `w_c / mean(w)`, so that N, the number of rows, and with it
    the weight of the prior, stay as they are. `1 / count` of each class and
    `total / (num_classes * count)` are the same.
    """
    weights = _by_class(class_weight, likelihood)
    if rows.targets is not None:
        labels = likelihood.check_targets(rows.targets, rows.counted)
        counted = np.ones(labels.shape)
        if rows.target_weights is not None:
            trailing = [1] * (labels.ndim - rows.target_weights.ndim)
            counted *= rows.target_weights.reshape(
                *rows.target_weights.shape, *trailing
            )
        # A void class does not count.
        known = (labels >= 0) & (labels < likelihood.num_classes)
        counts = np.bincount(labels[known], counted[known], likelihood.num_classes)
        mean = counts @ weights / max(counts.sum(), 1.0)
        if not mean > 0.0:
            raise ValueError(
                "Some training targets must have a class weight above 0. "
                f"Received: class_weight={class_weight!r}"
            )
        weights = weights / mean
    return {label: float(weight) for label, weight in enumerate(weights)}


def with_weights_of_places(
    x: Structure,
    y: ArrayLike,
    sample_weight: ArrayLike,
    weights: Mapping[int, float],
    likelihood: Likelihood,
) -> tuple[Structure, ArrayLike]:
    """Returns the data of `fit` and sample weights by the classes of all places.

    Keras weighs classes itself where a row has one class.
    """
    table = tf.constant([weights[label] for label in range(len(weights))], tf.float32)

    def weighted(targets: ArrayLike, given: ArrayLike) -> tf.Tensor:
        labels = likelihood.labels(targets)
        known = (labels >= 0) & (labels < len(weights))
        by_class = tf.where(known, tf.gather(table, tf.where(known, labels, 0)), 1.0)
        if given is None:
            return by_class
        given = tf.cast(given, by_class.dtype)
        while given.shape.rank < by_class.shape.rank:
            given = given[..., tf.newaxis]
        return by_class * given

    if y is not None:
        return x, weighted(np.asarray(y), sample_weight).numpy()
    if isinstance(x, tf.data.Dataset):

        def with_weights(*batch: Structure) -> tuple[Structure, ...]:
            inputs, targets, given = keras.utils.unpack_x_y_sample_weight(batch)
            return inputs, targets, weighted(targets, given)

        return x.map(with_weights, num_parallel_calls=tf.data.AUTOTUNE), None
    raise ValueError(
        "`class_weight` for several targets of a row needs arrays or a "
        "`tf.data.Dataset`; else give the weights of the places with the data, as "
        f"(inputs, targets, weights). Received: x of type {type(x).__name__}"
    )


def _by_class(class_weight: Mapping[int, float], likelihood: Likelihood) -> np.ndarray:
    if likelihood.task != "classification":
        raise ValueError(
            "`class_weight` is for targets that are classes; pass `sample_weight`, one "
            f"weight for each row. Received: likelihood={type(likelihood).__name__}"
        )
    weights = np.ones(likelihood.num_classes)
    for label, weight in class_weight.items():
        is_class = label in range(likelihood.num_classes)
        if not (is_class and isinstance(weight, Real) and 0.0 <= weight < math.inf):
            raise ValueError(
                "`class_weight` has a finite weight of at least 0 for the indices of "
                f"classes, 0 to {likelihood.num_classes - 1}. "
                f"Received: class_weight[{label!r}]={weight!r}"
            )
        weights[int(label)] = weight
    return weights
