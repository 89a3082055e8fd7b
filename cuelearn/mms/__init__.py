"""Learning from candidate labeling sets: bags of instances of which only the possible labelings are known (thesis chapter 5)."""

from cuelearn.mms.baselines import CLSVM, M3MIML, MIMLSVM
from cuelearn.mms.candidates import CandidateSet, Matching
from cuelearn.mms.caption_text import Mention, Vocabulary, mentions
from cuelearn.mms.captions import ItemCandidates, Region, candidate_set, candidates_from_caption
from cuelearn.mms.inference import best_labelings, most_violating
from cuelearn.mms.mms import MMS, load
from cuelearn.mms.naming import DistNaming, GMMNaming

__all__ = [
    "CLSVM",
    "CandidateSet",
    "DistNaming",
    "GMMNaming",
    "ItemCandidates",
    "M3MIML",
    "MIMLSVM",
    "MMS",
    "Matching",
    "Mention",
    "Region",
    "Vocabulary",
    "best_labelings",
    "candidate_set",
    "candidates_from_caption",
    "load",
    "mentions",
    "most_violating",
]
