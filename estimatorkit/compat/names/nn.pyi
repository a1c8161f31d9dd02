from estimatorkit.compat.layers.recurrent import rnn_cell as rnn_cell
from estimatorkit.compat.ops.nn.candidates import (
    all_candidate_sampler as all_candidate_sampler,
    compute_accidental_hits as compute_accidental_hits,
    fixed_unigram_candidate_sampler as fixed_unigram_candidate_sampler,
    log_uniform_candidate_sampler as log_uniform_candidate_sampler, nce_loss as nce_loss,
    sampled_softmax_loss as sampled_softmax_loss,
    uniform_candidate_sampler as uniform_candidate_sampler,
)
from estimatorkit.compat.ops.nn.ctc import (
    collapse_repeated as collapse_repeated, ctc_loss as ctc_loss, ctc_loss_v2 as ctc_loss_v2,
    ctc_unique_labels as ctc_unique_labels,
)
from estimatorkit.compat.ops.nn.ctc_decoders import (
    ctc_beam_search_decoder as ctc_beam_search_decoder,
    ctc_beam_search_decoder_v2 as ctc_beam_search_decoder_v2,
    ctc_greedy_decoder as ctc_greedy_decoder,
)
from estimatorkit.compat.layers.recurrent.rnn import (
    bidirectional_dynamic_rnn as bidirectional_dynamic_rnn, dynamic_rnn as dynamic_rnn,
    raw_rnn as raw_rnn, static_bidirectional_rnn as static_bidirectional_rnn,
    static_rnn as static_rnn, static_state_saving_rnn as static_state_saving_rnn,
)
