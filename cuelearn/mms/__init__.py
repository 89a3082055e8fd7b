"""Learning from candidate labeling sets: bags of instances of which only the possible labelings are known (thesis chapter 5)."""

from cuelearn.mms.candidates import CandidateSet, Matching
from cuelearn.mms.inference import best_labelings, most_violating
from cuelearn.mms.mms import MMS, load

__all__ = ["CandidateSet", "MMS", "Matching", "best_labelings", "load", "most_violating"]
