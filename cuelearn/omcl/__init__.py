"""Two-layer online learning over many cues (thesis chapter 3)."""

from cuelearn.core.estimator import load
from cuelearn.core.query import MarginQuery, RandomQuery, ThresholdQuery
from cuelearn.omcl.baselines import Flat, Vote, count_votes
from cuelearn.omcl.omcl import OMCL
from cuelearn.omcl.passive_aggressive import OnlineGradientDescent, PassiveAggressive
from cuelearn.omcl.perceptron import KernelPerceptron
from cuelearn.omcl.projectron import Projectron, ProjectronPlusPlus

__all__ = [
    "Flat",
    "KernelPerceptron",
    "MarginQuery",
    "OMCL",
    "OnlineGradientDescent",
    "PassiveAggressive",
    "Projectron",
    "ProjectronPlusPlus",
    "RandomQuery",
    "ThresholdQuery",
    "Vote",
    "count_votes",
    "load",
]
