"""Two-layer online learning over many cues (thesis chapter 3)."""

from cuelearn.core.estimator import load
from cuelearn.core.query import MarginQuery, RandomQuery, ThresholdQuery
from cuelearn.omcl.learners import (
    KernelPerceptron,
    OnlineGradientDescent,
    PassiveAggressive,
    Projectron,
    ProjectronPlusPlus,
)
from cuelearn.omcl.omcl import OMCL, Flat, Vote, count_votes

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
