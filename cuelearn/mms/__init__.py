"""Learning from candidate labeling sets: only the possible labelings of bags are known (thesis chapter 5)."""

from cuelearn.core.estimator import load
from cuelearn.mms.annotators import (
    AnnotatedItems,
    DawidSkene,
    candidates_from_annotators,
    candidates_from_links,
    dawid_skene,
)
from cuelearn.mms.candidates import CandidateSet, Matching
from cuelearn.mms.captions import (
    ItemCandidates,
    Mention,
    Region,
    Vocabulary,
    candidate_set,
    candidates_from_caption,
    mentions,
)
from cuelearn.mms.convex import LinearSpace
from cuelearn.mms.inference import best_labelings, most_violating
from cuelearn.mms.mms import MMS
from cuelearn.mms.naming import DistNaming, GMMNaming
from cuelearn.mms.rivals import CLSVM, M3MIML, MIMLSVM, SupervisedSVM
from cuelearn.mms.solver import common_objective, solve_mms

__all__ = [
    "AnnotatedItems",
    "CLSVM",
    "CandidateSet",
    "DawidSkene",
    "DistNaming",
    "GMMNaming",
    "ItemCandidates",
    "LinearSpace",
    "M3MIML",
    "MIMLSVM",
    "MMS",
    "Matching",
    "Mention",
    "Region",
    "SupervisedSVM",
    "Vocabulary",
    "best_labelings",
    "candidate_set",
    "candidates_from_annotators",
    "candidates_from_caption",
    "candidates_from_links",
    "common_objective",
    "dawid_skene",
    "load",
    "mentions",
    "most_violating",
    "solve_mms",
]
