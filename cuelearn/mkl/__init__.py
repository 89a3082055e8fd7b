"""Multiple kernel learning: online, batch, sparse, and a certified reference (thesis chapter 4)."""

from cuelearn.mkl.base import load
from cuelearn.mkl.compare import common_objective
from cuelearn.mkl.convex import LossProblem
from cuelearn.mkl.displays import ConvergenceDisplay, KernelWeightsDisplay
from cuelearn.mkl.gmkl import GMKL
from cuelearn.mkl.losses import EpsilonInsensitive, Huber, Logistic, Squared, SquaredHinge
from cuelearn.mkl.lpbeta import LPBeta, solve_lp_beta
from cuelearn.mkl.lpnorm import LpMKL
from cuelearn.mkl.mcmkl import MCMKL
from cuelearn.mkl.mlmkl import MLMKLSA, MLMKLSum, SharedProblem, saddle_gap
from cuelearn.mkl.multilabel import mean_auc
from cuelearn.mkl.obscure import OBSCURE, solve_obscure
from cuelearn.mkl.om2 import OM2, solve_om2
from cuelearn.mkl.pegasos import PegasosMKL, solve_pegasos_mkl
from cuelearn.mkl.problem import Certificate, MKLProblem, duality_gap, objective
from cuelearn.mkl.reference import solve_reference
from cuelearn.mkl.regression import OBSCURERegressor, UFOMKLRegressor
from cuelearn.mkl.silp import SILPMKL
from cuelearn.mkl.simple import SimpleMKL
from cuelearn.mkl.single import AverageKernelSVM, BestKernelSVM, KernelPA
from cuelearn.mkl.training import Result
from cuelearn.mkl.ufo import UFOMKL, solve_ufo
from cuelearn.mkl.vskl import VSKL

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
