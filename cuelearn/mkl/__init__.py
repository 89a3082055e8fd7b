"""Multiple kernel learning: online, batch, sparse, and a certified reference (thesis chapter 4)."""

from cuelearn.core.estimator import load
from cuelearn.mkl.base import ConvergenceDisplay, KernelWeightsDisplay
from cuelearn.mkl.mlmkl import MLMKLSA, MLMKLSum, SharedProblem, saddle_gap
from cuelearn.mkl.optimum.losses import EpsilonInsensitive, Huber, Logistic, Squared, SquaredHinge
from cuelearn.mkl.optimum.problem import Certificate, LossProblem, MKLProblem, Result, duality_gap, objective
from cuelearn.mkl.optimum.reference import common_objective, solve_reference
from cuelearn.mkl.perlabel import GMKL, VSKL
from cuelearn.mkl.rivals.alternating import MCMKL, SILPMKL, LpMKL, SimpleMKL
from cuelearn.mkl.rivals.lpbeta import LPBeta, solve_lp_beta
from cuelearn.mkl.rivals.perclass import mean_auc
from cuelearn.mkl.rivals.single import AverageKernelSVM, BestKernelSVM, KernelPA
from cuelearn.mkl.stochastic.obscure import OBSCURE, PegasosMKL, solve_obscure, solve_pegasos_mkl
from cuelearn.mkl.stochastic.om2 import OM2, solve_om2
from cuelearn.mkl.stochastic.regression import OBSCURERegressor, UFOMKLRegressor
from cuelearn.mkl.stochastic.ufo import UFOMKL, solve_ufo

__all__ = [
    "ConvergenceDisplay",
    "KernelWeightsDisplay",
    "AverageKernelSVM",
    "BestKernelSVM",
    "Certificate",
    "EpsilonInsensitive",
    "GMKL",
    "Huber",
    "KernelPA",
    "LPBeta",
    "Logistic",
    "LossProblem",
    "LpMKL",
    "MCMKL",
    "MKLProblem",
    "MLMKLSA",
    "MLMKLSum",
    "OBSCURE",
    "OBSCURERegressor",
    "OM2",
    "PegasosMKL",
    "Result",
    "SILPMKL",
    "SharedProblem",
    "SimpleMKL",
    "Squared",
    "SquaredHinge",
    "UFOMKL",
    "UFOMKLRegressor",
    "VSKL",
    "common_objective",
    "duality_gap",
    "load",
    "mean_auc",
    "objective",
    "saddle_gap",
    "solve_lp_beta",
    "solve_obscure",
    "solve_om2",
    "solve_pegasos_mkl",
    "solve_reference",
    "solve_ufo",
]
