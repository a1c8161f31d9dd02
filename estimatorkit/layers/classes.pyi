from estimatorkit.layers.dense_and_embedding import Dense as Dense, Embedding as Embedding
from estimatorkit.layers.einsum_dense import EinsumDense as EinsumDense
from estimatorkit.layers.convolutional.convolution import (
    Conv1D as Conv1D, Conv2D as Conv2D, Conv3D as Conv3D,
)
from estimatorkit.layers.convolutional.convolution_by_channel import (
    DepthwiseConv1D as DepthwiseConv1D, DepthwiseConv2D as DepthwiseConv2D,
    SeparableConv1D as SeparableConv1D, SeparableConv2D as SeparableConv2D,
)
from estimatorkit.layers.convolutional.convolution_transposed import (
    Conv1DTranspose as Conv1DTranspose, Conv2DTranspose as Conv2DTranspose,
    Conv3DTranspose as Conv3DTranspose,
)
from estimatorkit.layers.convolutional.pooling import (
    AveragePooling1D as AveragePooling1D, AveragePooling2D as AveragePooling2D,
    AveragePooling3D as AveragePooling3D, GlobalAveragePooling1D as GlobalAveragePooling1D,
    GlobalAveragePooling2D as GlobalAveragePooling2D,
    GlobalAveragePooling3D as GlobalAveragePooling3D, GlobalMaxPooling1D as GlobalMaxPooling1D,
    GlobalMaxPooling2D as GlobalMaxPooling2D, GlobalMaxPooling3D as GlobalMaxPooling3D,
    MaxPooling1D as MaxPooling1D, MaxPooling2D as MaxPooling2D, MaxPooling3D as MaxPooling3D,
)
from estimatorkit.layers.reshaping import (
    Flatten as Flatten, Permute as Permute, RepeatVector as RepeatVector, Reshape as Reshape,
)
from estimatorkit.layers.convolutional.crop_pad_upsample import (
    Cropping1D as Cropping1D, Cropping2D as Cropping2D, Cropping3D as Cropping3D,
    UpSampling1D as UpSampling1D, UpSampling2D as UpSampling2D, UpSampling3D as UpSampling3D,
    ZeroPadding1D as ZeroPadding1D, ZeroPadding2D as ZeroPadding2D, ZeroPadding3D as ZeroPadding3D,
)
from estimatorkit.layers.noise import (
    ActivityRegularization as ActivityRegularization, AlphaDropout as AlphaDropout,
    Dropout as Dropout, GaussianDropout as GaussianDropout, GaussianNoise as GaussianNoise,
    SpatialDropout1D as SpatialDropout1D, SpatialDropout2D as SpatialDropout2D,
    SpatialDropout3D as SpatialDropout3D,
)
from estimatorkit.layers.normalization import (
    BatchNormalization as BatchNormalization, GroupNormalization as GroupNormalization,
    LayerNormalization as LayerNormalization, UnitNormalization as UnitNormalization,
)
from estimatorkit.layers.basic import (
    Activation as Activation, ELU as ELU, Identity as Identity, Lambda as Lambda,
    LeakyReLU as LeakyReLU, Masking as Masking, PReLU as PReLU, ReLU as ReLU, Softmax as Softmax,
    ThresholdedReLU as ThresholdedReLU,
)
from estimatorkit.layers.member_layers import (
    MemberDense as MemberDense, ParametricActivation as ParametricActivation,
    ScalingLayer as ScalingLayer,
)
from estimatorkit.layers.numeric_embeddings import (
    PeriodicEmbedding as PeriodicEmbedding, PiecewiseLinearEmbedding as PiecewiseLinearEmbedding,
    PiecewiseLinearEncoding as PiecewiseLinearEncoding,
)
from estimatorkit.layers.merging import (
    Add as Add, Average as Average, Concatenate as Concatenate, Dot as Dot, Maximum as Maximum,
    Minimum as Minimum, Multiply as Multiply, Subtract as Subtract,
)
from estimatorkit.layers.preprocessing import (
    CategoryEncoding as CategoryEncoding, Discretization as Discretization,
    HashedCrossing as HashedCrossing, Hashing as Hashing, Normalization as Normalization,
    Rescaling as Rescaling,
)
from estimatorkit.layers.lookup import (
    IntegerLookup as IntegerLookup, StringLookup as StringLookup,
    TextVectorization as TextVectorization,
)
from estimatorkit.layers.attention import (
    AdditiveAttention as AdditiveAttention, Attention as Attention,
    MultiHeadAttention as MultiHeadAttention,
)
from estimatorkit.recommend.interaction.target_attention import (
    Dice as Dice, TargetAttention as TargetAttention,
)
from estimatorkit.recommend.interaction.interest_evolution import AUGRUCell as AUGRUCell
from estimatorkit.recommend.interaction.experts import (
    MultiGateMixtureOfExperts as MultiGateMixtureOfExperts,
    ProgressiveLayeredExtraction as ProgressiveLayeredExtraction,
)
from estimatorkit.recommend.interaction.bilinear_interaction import (
    BilinearInteraction as BilinearInteraction,
)
from estimatorkit.recommend.interaction.compressed_interaction import (
    CompressedInteraction as CompressedInteraction,
)
from estimatorkit.recommend.interaction.cross_network import (
    CrossNetwork as CrossNetwork, CrossNetworkV2 as CrossNetworkV2,
)
from estimatorkit.recommend.interaction.factorization_machine import (
    FactorizationMachine as FactorizationMachine,
)
from estimatorkit.recommend.interaction.field_attention import FieldAttention as FieldAttention
from estimatorkit.recommend.interaction.squeeze_excitation import (
    SqueezeExcitation as SqueezeExcitation,
)
from estimatorkit.layers.recurrent.recurrent import RNN as RNN
from estimatorkit.layers.recurrent.recurrent_base import (
    AbstractRNNCell as AbstractRNNCell, StackedRNNCells as StackedRNNCells,
)
from estimatorkit.layers.recurrent.recurrent_cells import (
    GRUCell as GRUCell, LSTMCell as LSTMCell, SimpleRNNCell as SimpleRNNCell,
)
from estimatorkit.layers.recurrent.recurrent_convolution import ConvLSTM2D as ConvLSTM2D
from estimatorkit.layers.recurrent.recurrent_kinds import (
    CuDNNGRU as CuDNNGRU, CuDNNLSTM as CuDNNLSTM, GRU as GRU, LSTM as LSTM, SimpleRNN as SimpleRNN,
)
from estimatorkit.layers.wrappers import (
    Bidirectional as Bidirectional, TimeDistributed as TimeDistributed, Wrapper as Wrapper,
)
from estimatorkit.layers.feature_column.keras_layers import (
    DenseFeatures as DenseFeatures, SequenceFeatures as SequenceFeatures,
)
from estimatorkit.compat.names.layers.classes import *

Convolution1D = Conv1D
Convolution2D = Conv2D
Convolution3D = Conv3D
SeparableConvolution1D = SeparableConv1D
SeparableConvolution2D = SeparableConv2D
Convolution1DTranspose = Conv1DTranspose
Convolution2DTranspose = Conv2DTranspose
Convolution3DTranspose = Conv3DTranspose
AvgPool1D = AveragePooling1D
AvgPool2D = AveragePooling2D
AvgPool3D = AveragePooling3D
GlobalAvgPool1D = GlobalAveragePooling1D
GlobalAvgPool2D = GlobalAveragePooling2D
GlobalAvgPool3D = GlobalAveragePooling3D
GlobalMaxPool1D = GlobalMaxPooling1D
GlobalMaxPool2D = GlobalMaxPooling2D
GlobalMaxPool3D = GlobalMaxPooling3D
MaxPool1D = MaxPooling1D
MaxPool2D = MaxPooling2D
MaxPool3D = MaxPooling3D
