r"""Base of the transfer learners: kernels on the new samples, scores of priors, prediction, saving.

All score a sample by equation 6.1 of the thesis in kernel form,

.. math:: s(x, y) = \sum_j \alpha_j \sum_i A_{iy}\, k_j(x_i, x) + \sum_z v_{yz}\, s_p(x, z) / c_z + b_y .

Any fitted estimator that scores samples can be a prior. Only its scores :math:`s_p(x, z)` are used (thesis
6.2): finite, and always as many.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from cuelearn.core import docs
from cuelearn.core.estimator import StrOptions, parameters, validated
from cuelearn.core.samples import InputLike
from cuelearn.expect import expect, expect_distinct, expect_list, expect_shape, warn_user
from cuelearn.kernels import CrossBank
from cuelearn.kernels.matrices import one_warning
from cuelearn.kernels.specifications import check_samples, extract_columns, feature_places, resolve_columns
from cuelearn.kernels.types import ArrayLike, ClassWeight, ColumnSpec, KernelList, SampleWeight
from cuelearn.mkl.base import KernelClassifier, two_columns

#: Instead of an estimator: the columns of X are scores.
PASSTHROUGH = "passthrough"
#: Share of the new samples that may be equal to samples of a prior by chance.
SHARED = 0.2
#: Least share of different ones among a prior's samples: coarse features are equal too often.
DISTINCT = 0.9
Priors = Sequence[tuple[str, Any] | tuple[str, Any, ColumnSpec]] | None


class PriorScores:
    """Priors with their columns of X; errors name the wrong prior.

    `names`, set by the first `columns`, names each score column: the prior, with ": class" appended if it has
    more than two classes.
    """

    def __init__(self, priors, n_features, feature_names, missing):
        self.missing = missing
        self.entries = checked_priors(priors, n_features, feature_names)
        self.names = self._widths = None

    def warn_of_shared_samples(self, X):
        """Warn of priors that keep rows of X: their scores on these are too good."""
        for name, prior, index in self.entries:
            if isinstance(prior, str) or issparse(X):
                continue
            part, _ = part_of(X, index, self.missing)
            n_shared = count_shared(prior, part)
            if n_shared > SHARED * len(part):
                warn_user(
                    f"prior {name!r} was trained on {n_shared} of the {len(part)} new samples: its scores on "
                    "them are better than on others, and its weight will be too large. Train priors on other "
                    "samples."
                )

    def columns(self, X):
        """Scores of all priors, (n, K) in float64, with as many columns as the first time."""
        parts = [np.zeros((X.shape[0], 0))]
        names = []
        for k, (name, prior, index) in enumerate(self.entries):
            values, own_names = scores_of(name, prior, index, X, self.missing)
            if self._widths is not None:
                expect_shape(f"scores of prior {name!r}", values, (len(values), self._widths[k]))
            parts.append(values)
            names += own_names
        if self._widths is None:
            self._widths = [values.shape[1] for values in parts[1:]]
            self.names = names
        return np.concatenate(parts, axis=1)

    def expect(self, names):
        """Take over the columns of a fit; ValueError if these are of other priors."""
        widths = []
        place = 0
        for name, _, _ in self.entries:
            width = 0
            while names[place + width : place + width + 1] and names[place + width].startswith(f"{name}: "):
                width += 1
            width = width or int(names[place : place + 1] == [name])
            if not width:
                break
            widths.append(width)
            place += width
        if place < len(names) or len(widths) < len(self.entries):
            given = [entry[0] for entry in self.entries]
            raise ValueError(
                f"priors must be those of the fit in their order, with the columns {names}, got {given}"
            )
        self._widths = widths


def count_shared(prior, X):
    """Number of rows of X among the samples that an estimator keeps, such as support vectors."""
    model = getattr(prior, "best_estimator_", prior)
    if hasattr(model, "steps"):
        X = model[:-1].transform(X)
        model = model[-1]
    if issparse(X):
        return 0
    rows = np.asarray(X)
    shared = np.zeros(len(rows), dtype=bool)
    for values in vars(model).values():
        is_table = isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype.kind == "f"
        if is_table and values.shape[1] == rows.shape[1]:
            kept = {row.tobytes() for row in values}
            if len(kept) < DISTINCT * len(values):
                continue
            shared |= [row.tobytes() in kept for row in rows.astype(values.dtype)]
    return int(shared.sum())


def checked_priors(priors, n_features, feature_names):
    """(name, copy of the prior, indices of its columns, by default all) of each entry."""
    if priors is None:
        priors = []
    entries = []
    places = feature_places(feature_names)
    forms = "(name, prior) or (name, prior, columns)"
    for entry in expect_list("priors", priors, forms, least=0):
        if not isinstance(entry, (tuple, list)) or len(entry) not in (2, 3) or not isinstance(entry[0], str):
            raise TypeError(f"priors must be a list of {forms}, got the entry {entry!r}")
        name, prior, columns = (*entry, None)[:3]
        scores = hasattr(prior, "decision_function") or hasattr(prior, "predict_proba")
        if isinstance(prior, type) or not (prior == PASSTHROUGH if isinstance(prior, str) else scores):
            raise ValueError(
                f"prior {name!r} must be a fitted estimator with decision_function or predict_proba, or "
                f"{PASSTHROUGH!r}, got {prior!r}"
            )
        index = np.arange(n_features)
        if columns is not None:
            if callable(columns):
                raise TypeError(f"prior {name!r}: columns must not be a function, got {columns!r}")
            index = resolve_columns(name, columns, None, n_features, places, kind="prior")
        if hasattr(prior, "get_params"):  # trained again later, it does not change this model
            prior = copy.deepcopy(prior)
        entries.append((name, prior, index))
    expect_distinct("the names of priors", [name for name, _, _ in entries])
    return entries


def part_of(X, index, missing):
    """Columns of X; with `missing` zeros for samples that lack them all, and which these are."""
    part = X.iloc[:, index] if hasattr(X, "iloc") else X[:, index]
    absent = np.zeros(part.shape[0], dtype=bool)
    if missing and not issparse(X):
        absent = np.asarray(pd.isna(part)).all(axis=1)
    if absent.any():
        part = part.copy()
        part[absent] = 0.0
    return part, absent


def scores_of(name, prior, index, X, missing):
    """Scores of a prior, (n, k), NaN where it is `missing`, with column names."""
    frame = hasattr(X, "iloc")
    if isinstance(prior, str):
        values = extract_columns(X, index, name, kind="prior", missing=missing)
        if issparse(values):
            values = values.toarray()
        if len(index) == 1:
            return values, [name]
        return values, [f"{name}: {X.columns[i] if frame else i}" for i in index]
    part, absent = part_of(X, index, missing)
    if frame and not hasattr(prior, "feature_names_in_"):
        part = part.to_numpy()
    method = "decision_function" if hasattr(prior, "decision_function") else "predict_proba"
    try:
        values = getattr(prior, method)(part)
    except NotFittedError:
        raise ValueError(
            f"prior {name!r} is not fitted: {type(prior).__name__} has to be fitted on its own data first ("
            "in a parameter grid, wrap it in sklearn.frozen.FrozenEstimator: grids clone their values)"
        ) from None
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"prior {name!r} cannot score the columns of X that it is given: {reason}"
        ) from error
    values, names = checked_scores(name, prior, values, X.shape[0])
    return np.where(absent[:, None], np.nan, values), names


def checked_scores(name, prior, values, n_samples):
    classes = getattr(prior, "classes_", None)
    if isinstance(classes, list) and any(isinstance(part, (list, tuple, np.ndarray)) for part in classes):
        classes = None  # multi-output
    n_classes = None if classes is None else len(classes)
    shapes = [(n_samples,), (n_samples, "k")]
    values = expect(f"scores of prior {name!r}", values, shape=shapes, least=0)
    if values.ndim == 1:
        values = values[:, None]
    if n_classes == 2 and values.shape[1] == 2:
        values = values[:, 1:]  # the other probability is redundant
    expected = {None: values.shape[1], 2: 1}.get(n_classes, n_classes)
    if values.shape[1] != expected or expected == 0:
        raise ValueError(
            f"prior {name!r} must give one column of scores per class, {expected}, got {values.shape[1]}"
        )
    if expected == 1:
        return values, [name]
    return values, [f"{name}: {c}" for c in (range(expected) if n_classes is None else classes)]


def given_scores(scores, n_samples, n_columns=None):
    """The caller's scores, (n, k) in float64, and their names; no columns for None."""
    values = np.zeros((n_samples, 0))
    names = []
    if scores is not None:
        frame = scores.to_frame() if hasattr(scores, "to_frame") else scores
        values = expect("scores", frame, shape=[(n_samples,), (n_samples, "k")], least=0)
        if values.ndim == 1:
            values = values[:, None]
        names = [f"score {k}" for k in range(values.shape[1])]
        if hasattr(frame, "iloc"):
            names = list(map(str, frame.columns))
    if n_columns is not None:
        hint = (
            "attach() gives a loaded model its priors again; a search or Pipeline passes scores on after "
            "sklearn.set_config(enable_metadata_routing=True) and "
            ".set_fit_request(scores=True).set_score_request(scores=True) of the estimator"
        )
        expect_shape("scores", values, (n_samples, n_columns), hint)
    return values, names


documented = functools.partial(
    docs.documented,
    texts={
        "class_weight": (
            'None, "balanced" or dict',
            '"balanced" weighs both sides of a class equally, n / (2 n_side); a dict holds class weights.',
        )
    },
)


@parameters
class TransferClassifier(KernelClassifier):
    """Base of the transfer learners: a subclass's `_train` gets scaled scores and calls `_set`."""

    _parameter_constraints = {"scaling": [StrOptions({"rms", "max"}), None]}

    kernels: KernelList = field(default=None, kw_only=False)
    priors: Priors = field(default=None, kw_only=False)
    C: float = 1.0
    class_weight: ClassWeight = None
    scaling: Literal["rms", "max"] | None = "rms"
    normalize: bool = True

    memory = 2e9
    _uses_kernels = True

    @docs.documented
    @validated
    def fit(  # type: ignore[override]
        self, X: InputLike, y: ArrayLike, scores: ArrayLike | None = None, sample_weight: SampleWeight = None
    ) -> Self:
        """Learn the new classes; after an invalid argument an earlier fit is kept.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or (n_kernels, n, n) if precomputed, or a KernelBank
        y : array-like, shape (n,)
            Labels of the new classes.
        scores : array-like, shape (n, k), optional
            Scores of priors as numbers, after those of `priors`.
        $sample_weight

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            If a prior of scikit-learn keeps samples, such as support vectors, that are rows of X.
        """
        begun = self._begin(X, y, scores, sample_weight)
        with one_warning(self.bank_.indefinite if self._uses_kernels else {}):
            self._train(*begun)
        self._finish()
        return self

    def _prior_scores(self, priors):
        if self._is_precomputed():
            raise ValueError("priors need X: with kernels='precomputed' pass their scores as scores=")
        names = getattr(self, "feature_names_in_", None)
        return PriorScores(priors, self.n_features_in_, names, self.missing == "zero")

    def _begin(self, X, y, scores, sample_weight):
        """Class numbers, scaled scores of the training samples, sample weights."""
        for name in ("feature_names_in_", "n_features_in_"):
            vars(self).pop(name, None)
        labels, sample_weight = self._start(X, y, sample_weight)
        of_priors = np.zeros((labels.size, 0))
        names = []
        self._priors = None
        if not self._is_precomputed() or self.priors:
            self._priors = self._prior_scores(self.priors)
            samples = check_samples(X)[0]
            of_priors = self._priors.columns(samples)
            self._priors.warn_of_shared_samples(samples)
            names = self._priors.names
        given, given_names = given_scores(scores, labels.size)
        self._n_given = given.shape[1]
        self.prior_names_: list[str] = [*names, *given_names]
        expect_distinct("the names of priors and scores", self.prior_names_)
        values = np.concatenate([of_priors, given], axis=1)
        self.score_scale_: np.ndarray = self._scale_of(values, sample_weight)
        vars(self).pop("intercept_", None)
        return labels, np.ascontiguousarray(np.nan_to_num(values / self.score_scale_)), sample_weight

    def _scale_of(self, values, sample_weight):
        """Divisors; 1 for columns of zeros."""
        if sample_weight is not None:
            values = values[sample_weight > 0.0]
            sample_weight = sample_weight[sample_weight > 0.0]
        if self.scaling is None or values.shape[1] == 0:
            return np.ones(values.shape[1])
        there = ~np.isnan(values)
        values = np.where(there, values, 0.0)
        largest = np.abs(values).max(axis=0)
        usable = np.where(largest > 0.0, largest, 1.0)
        if self.scaling == "max":
            return usable
        mean_square = np.average((values / usable) ** 2, axis=0, weights=sample_weight)
        if not there.all():
            mean_square /= np.average(there, axis=0, weights=sample_weight)
        return usable * np.sqrt(np.where(largest > 0.0, mean_square, 1.0))

    def _set(self, dual_coef, kernel_weights, transfer_weights, intercept=None):
        """Set the fitted attributes; one decision value for two classes is halved."""
        if dual_coef.shape[1] < self.classes_.size:
            dual_coef = two_columns(dual_coef)
            intercept = two_columns(intercept)
            transfer_weights = two_columns(transfer_weights, axis=0)
        self._keep(dual_coef, kernel_weights)
        self.transfer_weights_: np.ndarray = transfer_weights
        if intercept is not None:
            self.intercept_: np.ndarray = np.asarray(intercept, dtype=np.float64)

    def _scores_on(self, X, scores, n_rows):
        n_all = len(self.prior_names_)
        if n_all == self._n_given or self._priors is None:
            return given_scores(scores, n_rows, n_all)[0] / self.score_scale_
        if isinstance(X, CrossBank):
            raise ValueError("X must be samples, not a CrossBank, if priors score them")
        own = self._priors.columns(X)
        given, _ = given_scores(scores, n_rows, self._n_given)
        return np.nan_to_num(np.concatenate([own, given], axis=1) / self.score_scale_)

    def attach(self, priors: Priors) -> Self:
        """Attach the priors to a loaded model, so that it can compute scores again; returns self.

        Parameters
        ----------
        priors : list
            As in the constructor, in the same order.

        Raises
        ------
        ValueError
            If their names are not those of the fit.
        """
        check_is_fitted(self)
        attached = self._prior_scores(priors)
        attached.expect(self.prior_names_[: len(self.prior_names_) - self._n_given])
        self.priors = priors
        self._priors = attached
        return self

    def _class_scores(self, X, scores=None):
        total = super()._class_scores(X)
        computed = not (isinstance(X, CrossBank) or self._is_precomputed())
        scores = self._scores_on(check_samples(X)[0] if computed else X, scores, len(total))
        total = total + scores @ self.transfer_weights_.T
        if hasattr(self, "intercept_"):
            return total + self.intercept_
        return total

    def decision_function(self, X: InputLike, scores: ArrayLike | None = None) -> np.ndarray:
        """Class scores, equation 6.1.

        Parameters
        ----------
        X : array-like, shape (n, n_features), or (n_kernels, n, n_train) if precomputed, or a CrossBank
        scores : array-like, shape (n, k), optional
            As many columns as in `fit`.

        Returns
        -------
        ndarray
            Shape (n, n_classes); for two classes (n,), the second class's score minus the first's.
        """
        return self._decision_of(self._class_scores(X, scores))

    def predict(self, X: InputLike, scores: ArrayLike | None = None) -> np.ndarray:
        """Class with the largest score, the first on ties; arguments as in `decision_function`."""
        return self._classes_of(self._class_scores(X, scores))

    def score(
        self, X: InputLike, y: ArrayLike, sample_weight: SampleWeight = None, scores: ArrayLike | None = None
    ) -> float:
        """Accuracy; `sample_weight` has shape (n,), other arguments as in `decision_function`."""
        from sklearn.metrics import accuracy_score  # slow to import

        return accuracy_score(y, self.predict(X, scores), sample_weight=sample_weight)

    def __sklearn_clone__(self):
        """An unfitted copy with the fitted priors."""
        parameters = self.get_params(deep=False)
        cloned = {k: v if k == "priors" else clone(v, safe=False) for k, v in parameters.items()}
        copied = type(self)(**cloned)
        if hasattr(self, "_metadata_request"):  # metadata routing of scores
            copied._metadata_request = copy.deepcopy(self._metadata_request)
        return copied

    def _saved_parameters(self):
        return {**super()._saved_parameters(), "priors": None}

    def _given_ones(self):
        return (np.ones((1, len(self.prior_names_))),)

    def _fitted_state(self):
        return {**super()._fitted_state(), "_n_given": self._n_given}

    def _set_fitted_state(self, state):
        super()._set_fitted_state(state)
        self._priors = None
