"""Keras layers whose weights have a posterior distribution."""

import tfbbb.base.backend  # noqa: F401  (refuses other backends first)
from tfbbb.layers.conv_variational import (
    Conv1DTransposeVariational,
    Conv1DVariational,
    Conv2DTransposeVariational,
    Conv2DVariational,
    Conv3DTransposeVariational,
    Conv3DVariational,
)
from tfbbb.layers.dense_variational import DenseVariational
from tfbbb.layers.depthwise_conv2d_variational import DepthwiseConv2DVariational
from tfbbb.layers.einsum_dense_variational import EinsumDenseVariational
from tfbbb.layers.embedding_variational import EmbeddingVariational
from tfbbb.layers.exposure import Exposure
from tfbbb.layers.gru_variational import GRUVariational
from tfbbb.layers.lstm_variational import LSTMVariational
from tfbbb.layers.multi_head_attention_variational import MultiHeadAttentionVariational
from tfbbb.layers.separable_conv2d_variational import SeparableConv2DVariational
from tfbbb.layers.simple_rnn_variational import SimpleRNNVariational
from tfbbb.layers.variational import VariationalLayer

__all__ = [
    "Conv1DTransposeVariational",
    "Conv1DVariational",
    "Conv2DTransposeVariational",
    "Conv2DVariational",
    "Conv3DTransposeVariational",
    "Conv3DVariational",
    "DenseVariational",
    "DepthwiseConv2DVariational",
    "EinsumDenseVariational",
    "EmbeddingVariational",
    "Exposure",
    "GRUVariational",
    "LSTMVariational",
    "MultiHeadAttentionVariational",
    "SeparableConv2DVariational",
    "SimpleRNNVariational",
    "VariationalLayer",
]
