"""Base classes of the estimators: parameter checks, saving without pickle."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import (
    HasMethods,  # noqa: F401 - imported from here
    Interval,
    Options,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import check_is_fitted

from cuelearn.checkpoint import Changing, Checkpoint
from cuelearn.core.samples import InputLike
from cuelearn.core.storage import read_model, write_model
from cuelearn.kernels.specifications import KERNELS, MISSING, Kernel, as_kernel
from cuelearn.kernels.types import ArrayLike, SampleWeight


class Number(Interval):
    """scikit-learn's Interval, without True and False."""

    def is_satisfied_by(self, val):
        return not isinstance(val, (bool, np.bool_)) and super().is_satisfied_by(val)


class KernelLike(Options):
    def __init__(self):
        super().__init__(object, set())

    def is_satisfied_by(self, val):
        try:
            return as_kernel(val) is not None
        except (TypeError, ValueError):
            return False

    def __str__(self):
        return f"a kernel of cuelearn.kernels, a function of two arrays or a str among {list(KERNELS)}"


POSITIVE = [Number(Real, 0, None, closed="neither")]
#: Products with kernel values and losses stay finite.
REGULARIZATION = [Number(Real, 1e-30, 1e30, closed="both")]
NON_NEGATIVE = [Number(Real, 0, None, closed="left")]
COUNT = [Number(Integral, 1, 2**31 - 1, closed="both")]
JOBS = [Number(Integral, -(2**31), -1, closed="both"), Number(Integral, 1, 4096, closed="both"), None]
SEQUENCE = [list, tuple, np.ndarray]
SEED = Number(Integral, 0, 2**32 - 1, closed="both")
RANDOM_STATE = [SEED, np.random.Generator, np.random.RandomState, None]

Class = TypeVar("Class", bound=type)
Method = TypeVar("Method", bound=Callable)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def parameters(cls: Class) -> Class:
    """Class decorator: annotated names become keyword parameters; `_parameter_constraints` are merged with
    those of the bases."""
    known = [vars(base).get("_parameter_constraints", {}) for base in reversed(cls.__mro__)]
    cls._parameter_constraints = {name: kind for one in known for name, kind in one.items()}
    return dataclass(eq=False, repr=False, kw_only=True)(cls)  # type: ignore[return-value]


def validated(method: Method) -> Method:
    """Decorator of `fit` and `partial_fit`: checks the parameters. After a call that raises or is interrupted
    the estimator is as before it, or at the last ``self._checkpoint.take()``."""

    @functools.wraps(method)
    def checked(self, *args, **kwargs):
        self._validate_params()
        if "_checkpoint" in vars(self):  # called by a method of the same estimator
            return method(self, *args, **kwargs)
        checkpoint = Checkpoint(self)
        try:
            self._checkpoint = checkpoint
            if vars(self).pop("_unpickled", False) and method.__name__ == "partial_fit":
                self._own_arrays()
            result = method(self, *args, **kwargs)
            del self._checkpoint
            return result
        except BaseException:
            checkpoint.restore()
            raise

    return checked  # type: ignore[return-value]


class Estimator(Changing, BaseEstimator):
    """Base of the package's estimators; a saved model consists of its constructor's arguments and
    `_fitted_state()`."""

    _parameter_constraints = {
        "C": REGULARIZATION,
        "alpha": NON_NEGATIVE,
        "p": [Number(Real, 1, 2, closed="right"), StrOptions({"auto"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "n_epochs": COUNT,
        "max_iter": COUNT,
        "kernels": [list, tuple, Kernel, StrOptions({"precomputed"}), None],
        "priors": [list, tuple, None],
        "memory": [Number(Real, 0, None, closed="both")],
        "missing": [StrOptions(set(MISSING))],
        "n_jobs": JOBS,
        "normalize": ["boolean"],
        "shuffle": ["boolean"],
        "random_state": RANDOM_STATE,
        "callback": [callable, None],
        "verbose": ["verbose"],
    }

    n_features_in_: int
    missing = "error"  # a parameter of estimators that take samples without a cue

    _get_param_names = classmethod(functools.cache(BaseEstimator._get_param_names.__func__))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; `deep` adds nested ones, such as ``kernels__colour__gamma``."""
        params = super().get_params(deep=deep)
        for path, kernel in self._kernels_within().items() if deep else ():
            if "__" in path:
                params[path] = kernel
            inside = {}
            if not callable(kernel):
                inside = as_kernel(kernel).get_params()
            params |= {f"{path}__{name}": value for name, value in inside.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by the names of `get_params`; nested kernels are replaced, not changed."""
        heads = {head for head in self._get_param_names() if head in params}
        super().set_params(**{head: params.pop(head) for head in heads})
        for path, value in sorted(params.items()):  # kernels before their parameters
            within = self._kernels_within()
            if path in within:
                self._put_kernel(path, value)
                continue
            owner, _, name = path.rpartition("__")
            kernel = None
            if owner in within:
                kernel = as_kernel(within[owner])
            if kernel is not None and name in kernel.get_params():  # all at once: it is checked as a whole
                paths = {other: f"{owner}__{other}" for other in kernel.get_params()}
                changes = {other: params[at] for other, at in paths.items() if at in params}
                self._put_kernel(owner, replace(kernel, **changes))
            elif hasattr(getattr(self, path.partition("__")[0], None), "set_params"):
                super().set_params(**{path: value})
            else:
                valid = sorted(self.get_params())
                raise ValueError(f"Invalid parameter {path!r} for estimator {self}. Valid are: {valid}.")
        return self

    def _kernels_within(self):
        """{"kernel", "kernels__colour": kernel} of all parameters that hold kernels."""
        params = {}
        kernel_like = KernelLike().is_satisfied_by
        for head in self._get_param_names():
            value = getattr(self, head)
            if isinstance(value, Kernel) or isinstance(value, str) and self._takes_kernel(head):
                params[head] = value
            for item in value if isinstance(value, (list, tuple)) else ():
                if isinstance(item, (list, tuple)) and len(item) == 3 and kernel_like(item[1]):
                    params[f"{head}__{item[0]}"] = item[1]
        return params

    def _takes_kernel(self, head):
        known = self._parameter_constraints.get(head, ())
        return any(isinstance(one, KernelLike) for one in known) and getattr(self, head) in KERNELS

    def _put_kernel(self, path, kernel):
        head, _, name = path.partition("__")
        if name:
            given = getattr(self, head)
            kernel = type(given)((n, kernel if n == name else k, c) for n, k, c in given)
        setattr(self, head, kernel)

    def _validate_params(self):
        """Check the parameters that changed."""
        valid = vars(self).get("_valid_parameters", {})
        missing = object()
        given = {name: getattr(self, name) for name in self._get_param_names()}
        changed = {name: value for name, value in given.items() if valid.get(name, missing) is not value}
        if changed:
            validate_parameter_constraints(self._parameter_constraints, changed, type(self).__name__)
            self._valid_parameters = given

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "zero"
        return tags

    def __getstate__(self):
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_checkpoint"}

    def __setstate__(self, state):
        super().__setstate__(state)
        if any(name.endswith("_") for name in vars(self)):  # fitted
            self._unpickled = True

    def _own_arrays(self):
        """Copy the arrays of an unpickled model, which may be read-only memory maps."""
        given = {*self._get_param_names(), "_valid_parameters", "_checkpoint"}
        held = {name: value for name, value in vars(self).items() if name not in given}
        vars(self).update(copy.deepcopy(held))

    def save(self, path: str | Path) -> None:
        """Save the fitted model to an .npz file without pickle, atomically; `load` reads it.

        The file is tried before it replaces an earlier one; ValueError if that fails. A callback and a
        `random_state` that is not a seed are omitted; TypeError if anything else needs pickle.
        """
        check_is_fitted(self)
        write_model(path, self, lambda model: model._try_out())

    @classmethod
    def load(cls, path: str | Path, *, memory: float = 4e9) -> Self:
        """Load a model written by `save`, after a check of its checksum.

        `memory` is the limit in bytes of the unpacked file. ValueError, with the name of the file, if it is
        larger, damaged, altered, of another format, or holds another class.
        """
        model = read_model(path, memory, lambda model: model._try_out())
        if not isinstance(model, cls):
            raise ValueError(f"{path} holds a {type(model).__name__}, not a {cls.__name__}")
        return model

    def _score_ones(self):
        return self.decision_function(np.ones((1, self.n_features_in_)))

    def _try_out(self):
        """Score a sample: inconsistent arrays raise or give NaN."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            scores = self._score_ones()
            classes = self.classes_
        if not isinstance(scores, list):
            scores = [scores]
            classes = [classes]
        for scores, known in zip(scores, classes, strict=True):
            fits = scores.size == len(known) or scores.size == 1 and len(known) == 2
            if not (fits and np.all(scores < np.inf)):
                raise ValueError("its arrays do not give each class a score")

    def _saved_parameters(self):
        parameters = self.get_params(deep=False)
        parameters.pop("callback", None)
        if not isinstance(parameters.get("random_state"), (type(None), Integral)):
            parameters["random_state"] = None
        return parameters

    def _fitted_state(self):
        return {name: value for name, value in vars(self).items() if name.endswith("_")}

    def _set_fitted_state(self, state):
        vars(self).update(state)

    def _state(self):
        fitted = any(name.endswith("_") for name in vars(self))
        state = None
        if fitted:
            state = self._fitted_state()
        return {"parameters": self._saved_parameters(), "fitted": state}

    @classmethod
    def _from_state(cls, state):
        model = cls(**state["parameters"])
        if state["fitted"] is not None:
            model._set_fitted_state(state["fitted"])
        return model


class ScoreClassifier(ClassifierMixin, Estimator):
    """Base of classifiers with class scores ``_class_scores(X)``, shape (n, n_classes)."""

    classes_: np.ndarray

    if TYPE_CHECKING:

        def score(self, X: InputLike, y: ArrayLike, sample_weight: SampleWeight = None) -> float: ...

    def decision_function(self, X: InputLike) -> np.ndarray:
        """Class scores, (n, n_classes); for two classes (n,), the second's minus the first's.

        X has shape (n, n_features), or holds precomputed kernels with the training samples, as in `fit`.
        """
        return self._decision_of(self._class_scores(X))

    def predict(self, X: InputLike) -> np.ndarray:
        """Class with the largest score, the first on ties; X as in `decision_function`."""
        return self._classes_of(self._class_scores(X))

    def _decision_of(self, scores):
        if scores.shape[1] == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def _classes_of(self, scores):
        return self.classes_[np.argmax(scores, axis=1)]


def load(path: str | Path, *, memory: float = 4e9) -> Any:
    """Load any estimator from a file written by its `save`; see `Estimator.load`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.omcl import KernelPerceptron, load
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelPerceptron(shuffle=True, random_state=0).fit(X, y)
    >>> with TemporaryDirectory() as directory:
    ...     model.save(f"{directory}/model.npz")
    ...     again = load(f"{directory}/model.npz")
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    return Estimator.load(path, memory=memory)
