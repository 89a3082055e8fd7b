"""Priors as columns of scores: any fitted estimator that scores samples can be a source of transfer.

Only its scores :math:`s_p(x, z)` are used (thesis 6.2): finite, and always as many.
"""

import copy

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import NotFittedError

from cuelearn.expect import expect, expect_list
from cuelearn.kernels.specifications import extract_columns, feature_places, resolve_columns
from cuelearn.warn import warn_user

__all__ = ["PASSTHROUGH", "PriorScores", "given_scores"]

#: Instead of an estimator: the columns of X are scores.
PASSTHROUGH = "passthrough"
#: Share of the new samples that may be equal to samples of a prior by chance.
SHARED = 0.2
#: Least share of different ones among a prior's samples: coarse features are equal too often.
DISTINCT = 0.9


class PriorScores:
    """Priors with their columns of X (default all); errors name the wrong prior.

    `names`, set by the first `columns`, names each score column: the prior, with ": class" appended if it has
    more than two classes.
    """

    def __init__(self, priors, n_features, feature_names=None):
        entries = checked_priors(priors, n_features, feature_names)
        # a prior that is trained again later does not change this model
        self.entries = [
            (name, copy.deepcopy(prior) if hasattr(prior, "get_params") else prior, index)
            for name, prior, index in entries
        ]
        self.names = self._widths = None

    def warn_of_shared_samples(self, X):
        """Warn of priors that keep samples which are rows of X: their scores on these are too good."""
        for name, prior, index in self.entries:
            if isinstance(prior, str) or issparse(X):
                continue
            part = X.iloc[:, index] if hasattr(X, "iloc") else X[:, index]
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
            values, own_names = scores_of(name, prior, index, X)
            if self._widths is not None and values.shape[1] != self._widths[k]:
                raise ValueError(
                    f"prior {name!r} must give {self._widths[k]} columns of scores, as when the model was "
                    f"fitted, got {values.shape[1]}"
                )
            parts.append(values)
            names += own_names
        if self._widths is None:
            self._widths = [values.shape[1] for values in parts[1:]]
            self.names = names
        return np.concatenate(parts, axis=1)

    def expect(self, names):
        """Take over the columns of a fit; ValueError if they are not of these priors."""
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
    """Number of rows of X among the samples that a scikit-learn estimator keeps, such as support vectors."""
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
    if priors is None:
        priors = []
    entries = []
    places = feature_places(feature_names)
    for entry in expect_list("priors", priors, "(name, prior) or (name, prior, columns)", least=0):
        if not isinstance(entry, (tuple, list)) or len(entry) not in (2, 3) or not isinstance(entry[0], str):
            raise TypeError(
                f"priors must be a list of (name, prior) or (name, prior, columns), got the entry {entry!r}"
            )
        name, prior, columns = (*entry, None)[:3]
        if name in [other[0] for other in entries]:
            raise ValueError(f"priors must have different names, got {name!r} twice")
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
        entries.append((name, prior, index))
    return entries


def scores_of(name, prior, index, X):
    """Scores of a prior, (n, k), with column names."""
    frame = hasattr(X, "iloc")
    if isinstance(prior, str):
        values = extract_columns(X, index, name, kind="prior")
        if issparse(values):
            values = values.toarray()
        if len(index) == 1:
            return values, [name]
        labels = [str(X.columns[i]) for i in index] if frame else [str(i) for i in index]
        return values, [f"{name}: {label}" for label in labels]
    part = X.iloc[:, index] if frame else X[:, index]
    if frame and not hasattr(prior, "feature_names_in_"):
        part = part.to_numpy()
    if hasattr(prior, "decision_function"):
        scores = prior.decision_function
    else:
        scores = prior.predict_proba
    try:
        values = scores(part)
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
    return checked_scores(name, prior, values, X.shape[0])


def checked_scores(name, prior, values, n_samples):
    classes = getattr(prior, "classes_", None)
    if isinstance(classes, list) and any(isinstance(part, (list, tuple, np.ndarray)) for part in classes):
        classes = None  # multi-output
    n_classes = None
    if classes is not None:
        n_classes = len(classes)
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
        frame = scores
        if hasattr(scores, "to_frame"):
            frame = scores.to_frame()
        values = expect("scores", frame, shape=[(n_samples,), (n_samples, "k")], least=0)
        if values.ndim == 1:
            values = values[:, None]
        names = [f"score {k}" for k in range(values.shape[1])]
        if hasattr(frame, "iloc"):
            names = list(map(str, frame.columns))
    if n_columns not in (None, values.shape[1]):
        raise ValueError(
            f"scores must have {n_columns} columns, as when the model was fitted, got {values.shape[1]}; "
            "attach() gives a loaded model its priors again; a search or Pipeline passes scores on after "
            "sklearn.set_config(enable_metadata_routing=True) and "
            ".set_fit_request(scores=True).set_score_request(scores=True) of the estimator"
        )
    return values, names
