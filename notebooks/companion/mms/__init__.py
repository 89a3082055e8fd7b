"""Experiments of the MMS chapter (thesis chapter 5; Jie and Orabona, NIPS 2010)."""

from companion.mms.artificial import bags_of, by_round, curves, histories, samples, two_draws
from companion.mms.methods import METHODS
from companion.mms.naming import (
    as_printed,
    corpus,
    made_of,
    objective_at_truth,
    partial_labels,
    partial_with_each_search,
    protocols,
    provenance_of,
    searches,
)
from companion.mms.poses import COMPONENTS, DIST_WIDTHS, MODELS, all_models, posed
from companion.mms.searching import inferences
from companion.mms.settings import ARTIFICIAL, RANDOM_BAGS, VALIDATED, settings
from companion.mms.theorems import counts, proposition_5_2, proposition_5_3, search_shares
from companion.protocol import load_set
