"""All public estimators of the five chapters, cheap instances of them, and data that they take."""

import importlib
import inspect

import numpy as np
from sklearn.base import RegressorMixin

from cuelearn.datasets import make_ambiguous
from cuelearn.kernels import RBF, Linear
from cuelearn.mkl import UFOMKL, LPBeta
from cuelearn.mktl import MKTL, PriorFeatures
from cuelearn.mms import CandidateSet
from cuelearn.oks import OKS, MuSVM, SelectedSVM
from cuelearn.omcl import OMCL, Flat, KernelPerceptron, PassiveAggressive, Projectron, ProjectronPlusPlus

CHAPTERS = ("omcl", "mkl", "mms", "mktl", "oks")
CUES = [("shape", RBF(), [0, 1]), ("colour", Linear(), slice(2, 4)), ("texture", RBF(scale=2.0), [4, 5])]
LEARNERS = [
    ("shape", ProjectronPlusPlus(RBF(), eta=0.3), [0, 1]),
    ("colour", KernelPerceptron(Linear()), slice(2, 4)),
    ("texture", PassiveAggressive(0.5), [4, 5]),
]
PAIR = [("a", RBF(), slice(None)), ("b", Linear(), [0])]
COLUMNS = [("columns", "passthrough")]
#: What an instance is made with besides the defaults, so that it takes no time or does what the tests want.
OPTIONS = {
    "OMCL": {"cues": LEARNERS},
    "Vote": {"cues": LEARNERS},
    "OKS": {"one_vs_rest": True},
    "OKSRegret": {"one_vs_rest": True},
    "SOM": {"one_vs_rest": True},
    "OM1": {"one_vs_rest": True},
    "MuTron": {"one_vs_rest": True},
    "MuSVM": {"one_vs_rest": True, "C": (0.1, 1.0)},
    "AlignmentSVM": {"one_vs_rest": True, "C": (0.1, 1.0)},
    "LPBeta": {"nu": 0.3},  # not chosen by 50 further linear programs
    "SelectedSVM": {"selector": OKS(CUES, one_vs_rest=True, random_state=0), "C": 1.0},
    "MLMKLSA": {"n_iter": 60},
    "MLMKLSum": {"n_iter": 40},
    "PriorFeatures": {"priors": COLUMNS},
}
#: Further forms for scikit-learn's checks.
VARIANTS = [
    OMCL([("a", ProjectronPlusPlus(), slice(None)), ("b", PassiveAggressive(), [0])], n_epochs=2),
    Flat(PassiveAggressive()),
    UFOMKL(loss="logistic", random_state=0),
    LPBeta(per_class=True, nu=0.3),
    MKTL(class_weight="balanced", p=1.2, tol=None),
    PriorFeatures(priors=COLUMNS),
    OKS(PAIR, one_vs_rest=True, eta=0.02, n_epochs=5, random_state=0),
    MuSVM(PAIR, C=(0.1, 1.0), one_vs_rest=True, random_state=0),
    SelectedSVM(OKS(random_state=0), C=(0.1, 1.0)),
]


def public(chapter):
    module = importlib.import_module(f"cuelearn.{chapter}")
    classes = {name: getattr(module, name) for name in module.__all__}
    return {n: c for n, c in classes.items() if inspect.isclass(c) and hasattr(c, "fit")}


ESTIMATORS = {name: cls for chapter in CHAPTERS for name, cls in public(chapter).items()}
#: Those that learn from bags and candidates.
OF_BAGS = set(public("mms"))
#: Those that predict numbers.
OF_NUMBERS = {name for name, cls in ESTIMATORS.items() if issubclass(cls, RegressorMixin)}
OF_SAMPLES = sorted(set(ESTIMATORS) - OF_BAGS - OF_NUMBERS)


def make(name, **options):
    """An instance on the cues of `data`, with a seed, silent."""
    cls = ESTIMATORS[name]
    known = inspect.signature(cls).parameters
    common = {"random_state": 0}
    if name not in OF_BAGS:
        common["kernels"] = CUES
    if issubclass(cls, KernelPerceptron | Projectron):
        common["kernel"] = RBF(scale=1.0)
    chosen = {k: v for k, v in common.items() if k in known}
    return cls(**{**chosen, **OPTIONS.get(name, {}), **options})


def data(name, n=60, seed=0):
    """What `fit` takes: samples and labels, or instances and the candidate labelings of their bags."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    rng.shuffle(y)
    X = np.abs(rng.normal(scale=0.3, size=(n, 6)) + np.eye(3, 6)[y] + np.eye(3, 6, 2)[y])
    if name not in OF_BAGS:
        return X, y
    if name == "SupervisedSVM":  # is given the truth
        return X, CandidateSet.from_labels(y)
    made = make_ambiguous(X, y, bag_size=3, n_candidates=2, random_state=seed)
    return made.X, made.candidates


def outputs(model, name, X, given):
    """Predictions, and scores where there are some; `given` is what `fit` took beside X."""
    try:
        found = [model.predict(X)]
    except TypeError:  # names instances only within their candidates
        found = [model.predict(X, given)]
    if hasattr(model, "decision_function"):
        found.append(np.asarray(model.decision_function(X)))
    return found


def attached(loaded, model):
    """A loaded model with the priors of `model`, which files do not hold."""
    return loaded.attach(model.priors) if getattr(model, "priors", None) else loaded
