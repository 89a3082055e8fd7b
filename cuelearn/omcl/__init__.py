"""Two-layer online learning over many cues (thesis chapter 3)."""

from cuelearn.omcl.base import load
from cuelearn.omcl.baselines import Flat, Vote, count_votes
from cuelearn.omcl.framework import OMCL
from cuelearn.omcl.learners import KernelPerceptron, Projectron, ProjectronPlusPlus
from cuelearn.omcl.linear import OnlineGradientDescent, PassiveAggressive

__all__ = [
    "Flat",
    "KernelPerceptron",
    "OMCL",
    "OnlineGradientDescent",
    "PassiveAggressive",
    "Projectron",
    "ProjectronPlusPlus",
    "Vote",
    "count_votes",
    "load",
]
