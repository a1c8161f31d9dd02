from estimatorkit.layers.losses.classification import (
    hinge_loss as hinge_loss, log_loss as log_loss, sigmoid_cross_entropy as sigmoid_cross_entropy,
    softmax_cross_entropy as softmax_cross_entropy,
    sparse_softmax_cross_entropy as sparse_softmax_cross_entropy,
)
from estimatorkit.layers.losses.collected import (
    add_loss as add_loss, get_losses as get_losses,
    get_regularization_loss as get_regularization_loss,
    get_regularization_losses as get_regularization_losses, get_total_loss as get_total_loss,
)
from estimatorkit.layers.losses.distances import (
    absolute_difference as absolute_difference, cosine_distance as cosine_distance,
    huber_loss as huber_loss, mean_pairwise_squared_error as mean_pairwise_squared_error,
    mean_squared_error as mean_squared_error,
)
from estimatorkit.layers.losses.reduction import (
    Reduction as Reduction, as_reduction as as_reduction,
    compute_weighted_loss as compute_weighted_loss,
)
