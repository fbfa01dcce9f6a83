"""The activations of Keras that act on each unit separately."""

from keras import activations

ELEMENTWISE_ACTIVATIONS = (
    activations.celu,
    activations.elu,
    activations.exponential,
    activations.gelu,
    activations.hard_shrink,
    activations.hard_sigmoid,
    activations.hard_silu,
    activations.hard_tanh,
    activations.leaky_relu,
    activations.linear,
    activations.log_sigmoid,
    activations.mish,
    activations.relu,
    activations.relu6,
    activations.selu,
    activations.sigmoid,
    activations.silu,
    activations.soft_shrink,
    activations.softplus,
    activations.softsign,
    activations.sparse_plus,
    activations.sparse_sigmoid,
    activations.squareplus,
    activations.tanh,
    activations.tanh_shrink,
)
