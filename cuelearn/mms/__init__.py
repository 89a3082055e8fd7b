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
from cuelearn.mms.caption_sets import ItemCandidates, Region, candidate_set, candidates_from_caption
from cuelearn.mms.captions import Mention, Vocabulary, mentions
from cuelearn.mms.clsvm import CLSVM
from cuelearn.mms.dist import DistNaming
from cuelearn.mms.gmm import GMMNaming
from cuelearn.mms.inference import best_labelings, most_violating
from cuelearn.mms.m3miml import M3MIML
from cuelearn.mms.mimlsvm import MIMLSVM
from cuelearn.mms.mms import MMS
from cuelearn.mms.solver import common_objective, solve_mms
from cuelearn.mms.spaces import LinearSpace
from cuelearn.mms.supervised import SupervisedSVM

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
