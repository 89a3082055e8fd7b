"""Annotations of the public interface: complete, free of contradictions, and of use to a type checker."""

import importlib
import inspect
import subprocess
import sys
import types
import typing
from pathlib import Path

import pytest
from estimators import CHAPTERS, ESTIMATORS
from sklearn.utils._param_validation import StrOptions
from test_readme import blocks

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = ("kernels", *CHAPTERS, "datasets")

USES = """
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cuelearn.datasets import load_pendigits, make_ambiguous
from cuelearn.kernels import RBF, Chi2, ExpDistance, FeatureMap, KernelBank, KernelStack
from cuelearn.mkl import OBSCURE, OM2, SILPMKL, UFOMKL, Huber, KernelWeightsDisplay, OBSCURERegressor, load
from cuelearn.mktl import MKTL
from cuelearn.mms import MMS, CandidateSet
from cuelearn.oks import OKS, select_then_fit
from cuelearn.omcl import OMCL, KernelPerceptron, PassiveAggressive, ProjectronPlusPlus

data = load_pendigits()
X, y = data.X, data.y
model = OBSCURE([("a", RBF(), [0, 1]), ("b", Chi2(gamma=2.0), slice(2, 4))], p=1.5).fit(X, y, np.ones(len(y)))
reveal_type(model)
reveal_type(model.kernel_weights_)
reveal_type(model.classes_)
reveal_type(model.objective_)
reveal_type(model.predict(X))
reveal_type(model.predict_proba(X))
reveal_type(model.score(X, y))
reveal_type(OBSCURE.load("model.npz"))
model.save("model.npz")
print(model.summary().head(), model.history_["objective"], load("model.npz"))
KernelWeightsDisplay.from_estimator(model).ax_.set_title("weights")
for weight in model.kernel_weights_:
    print(round(float(weight), 2))

OBSCURE("precomputed", class_weight={0: 2.0}, loss="logistic").fit(KernelStack([X @ X.T]), y)
OBSCURE(["rbf", "linear"], callback=lambda model, step: step > 3, random_state=np.random.default_rng(0))
OBSCURERegressor(data.triples("rbf"), loss=Huber(delta=2.0)).fit(X, y)
GridSearchCV(make_pipeline(StandardScaler(), UFOMKL()), {"ufomkl__C": [1, 10]}).fit(X, y)
cross_val_score(SILPMKL("precomputed", n_jobs=2), KernelStack(KernelBank(data.triples(RBF()), X)), y)
texts = [("text", FeatureMap(HashingVectorizer()), "words")]
UFOMKL(texts).fit((X[i : i + 9], y[i : i + 9]) for i in range(9))
reveal_type(KernelBank([("d", ExpDistance("cityblock"), slice(None))], X).cross(X).n_rows)

cues = [("a", ProjectronPlusPlus(RBF(), eta=0.2), [0, 1]), ("b", PassiveAggressive(C=None), [2, 3])]
stream = OMCL(cues)
for i in range(0, 90, 9):
    stream.partial_fit(X[i : i + 9], y[i : i + 9], classes=[0, 1, 2])
reveal_type(stream.online_errors_)
reveal_type(OM2().partial_fit(X, y, classes=np.unique(y)))
reveal_type(KernelPerceptron("chi2").fit(X, y).n_seen_)

bags = make_ambiguous(X, y, random_state=0)
reveal_type(bags.candidates)
reveal_type(MMS().fit(bags.X, CandidateSet([[[0, 1], [1, 0]]])).coef_.shape)
selector = OKS(data.triples("rbf"), one_vs_rest=True, delta=0.5).fit(X, y)
reveal_type(selector.kernel_probabilities_)
reveal_type(select_then_fit(selector, X, y).selector)
MKTL(priors=[("old", model, [0, 1]), ("scores", "passthrough", [2])], p="cv").fit(X, y).predict(X)
"""

#: Each line has one error.
MISUSES = """
from cuelearn.datasets import load_mnist
from cuelearn.kernels import RBF, ExpDistance
from cuelearn.mkl import OBSCURE, SILPMKL, UFOMKL
from cuelearn.oks import OKSRegret
from cuelearn.omcl import Projectron
OBSCURE(kernels=3)
OBSCURE(p="x")
UFOMKL(loss="hing")
SILPMKL(C="1")
OBSCURE(missing="no")
OBSCURE().fit()
OBSCURE().fit([[0.0]], [1]).kernel_weights_.sise
OBSCURE().save(3)
RBF(gamma="scale")
ExpDistance("manhattan")
OKSRegret(loss="absolute")
Projectron(kernel=0.1)
load_mnist("all")
"""


@pytest.mark.long
def test_a_type_checker(tmp_path):
    """Finds no contradiction in the package, nor in its uses, whose types it knows, and all misuses."""
    texts = {"readme": "\n".join(blocks("README.md")), "uses": USES, "misuses": MISUSES}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--no-color-output", f"--cache-dir={tmp_path}/cache"]
    files = [str(tmp_path / f"{name}.py") for name in texts]
    done = subprocess.run([*command, "cuelearn", *files], capture_output=True, text=True, cwd=ROOT)
    lines = [line for line in done.stdout.splitlines() if ": error:" in line or ": note: Revealed" in line]
    of_misuses = [line for line in lines if "/misuses.py:" in line.replace("\\", "/")]
    others = [line for line in lines if line not in of_misuses]
    assert not done.stderr and not [line for line in others if ": error:" in line], "\n".join(others)
    assert len(others) == USES.count("reveal_type") and not [line for line in others if 'is "Any"' in line]
    wrong = {int(line.rpartition(".py:")[2].split(":")[0]) for line in of_misuses}
    numbered = enumerate(MISUSES.splitlines(), 1)
    assert wrong == {number for number, line in numbered if line and not line.startswith("from")}


#: Parameters and results (->) of any type, by name, and why.
ANY = {
    "load ->": "of any estimator",
    "transform ->": "dense or sparse features, by the kernels",
    "fit_transform ->": "as transform",
    "nearest_psd ->": "an array, a pair or a stack, by the arguments",
    "at ->": "an array, or one for each attribute",
    "columns_of ->": "numbers or texts, maybe sparse",
    "X": "of columns_of: checked samples, maybe sparse or a DataFrame",
    "columns": "of a transformer, as X",
    "index": "of NumPy",
    "new": "samples or kernels of a bank, inside of it",
    "transformer": "of scikit-learn, which has no types",
}
#: Compiled by numba.
COMPILED = ("value", "dual", "clip", "step")


def alternatives(kind):
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return {one for part in typing.get_args(kind) for one in alternatives(part)}
    return {kind}


def types_of(annotated, cls=None):
    if cls is not None and annotated.__code__.co_filename == "<string>":  # made by dataclass
        annotated = cls
    return typing.get_type_hints(annotated, localns={"Axes": float})  # of matplotlib, for checkers only


def function_of(member):
    member = getattr(member, "fget", None) or getattr(member, "__func__", member)
    return inspect.unwrap(member) if callable(member) else member


def methods(cls):
    """A method without annotations has those of the method that it overrides."""
    for name in dir(cls):
        if name.startswith("_") and name not in ("__init__", "__call__", "__getitem__"):
            continue
        bases = [base for base in cls.__mro__ if base.__module__.startswith("cuelearn")]
        found = [function_of(vars(base).get(name)) for base in bases]
        found = [function for function in found if isinstance(function, types.FunctionType)]
        if found and not (hasattr(cls, "_fields") and name in COMPILED) and found[0].__name__ != "<lambda>":
            yield name, next((function for function in found if function.__annotations__), found[0])


def unclear(name, function, kinds):
    """Parameters and results without a type that says something, or with a default None that it excludes."""
    results = {"return": f"{name} ->"}
    if name == "__init__":
        results = {}
    parameters = inspect.signature(function).parameters
    for key, parameter in parameters.items():
        if key not in ("self", "cls") and parameter.kind != parameter.VAR_KEYWORD:
            results[key] = key
            kind = kinds.get(key)
            if parameter.default is None and not {types.NoneType, typing.Any} & alternatives(kind):
                yield key
    for key, shown in results.items():
        kind = kinds.get(key)
        if kind in (None, object) or kind is typing.Any and shown not in ANY:
            yield shown


@pytest.mark.parametrize("package", PUBLIC)
def test_signatures_are_complete(package):
    module = importlib.import_module(f"cuelearn.{package}")
    for public in module.__all__:
        value = getattr(module, public)
        if inspect.isclass(value):
            fields = types_of(value)  # of dataclasses and named tuples
            assert not {typing.Any, object} & {fields[key] for key in fields.keys() - ANY}, public
            for name, function in methods(value):
                assert not list(unclear(name, function, types_of(function, value))), f"{public}.{name}"
        elif callable(value):
            function = inspect.unwrap(value)
            assert not list(unclear(public, function, types_of(function))), public


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_annotations_agree_with_constraints(name):
    """In None, and in words where not any is one."""
    cls = ESTIMATORS[name]
    known = types_of(cls.__init__, cls)
    for key in inspect.signature(cls).parameters:
        valid = cls._parameter_constraints[key]
        kinds = alternatives(known[key])
        words = [typing.get_args(kind) for kind in kinds if typing.get_origin(kind) is typing.Literal]
        options = [one.options for one in valid if isinstance(one, StrOptions)]
        assert (None in valid) == (types.NoneType in kinds), key
        assert str in kinds or set().union(*words) == set().union(*options), key
