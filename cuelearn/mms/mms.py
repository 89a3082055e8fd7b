r"""The Maximum Margin Set classifier (thesis section 5.4; Jie and Orabona, NIPS 2010)."""

import warnings

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from cuelearn.core.checks import (
    as_generator,
    check_count,
    check_non_negative,
    check_positive,
    unchanged_on_error,
)
from cuelearn.core.storage import Loadable, construct, pack, read_parts, saved_parameters, unpack, write_parts
from cuelearn.kernels import KernelBank
from cuelearn.mms.candidates import CandidateSet
from cuelearn.mms.inference import METHODS, assign, refuse_exact
from cuelearn.mms.solver import solve_mms
from cuelearn.mms.spaces import KernelSpace, LinearSpace, bank_of, mean_weights, new_scores

__all__ = ["MMS", "load"]

FORMAT = 1
SOLVERS = ("pegasos", "frank-wolfe")
#: What `fit` sets beside public attributes.
PRIVATE = ("_banks", "_bank_support", "_classes", "_columns", "_weights")


def named_columns(X, columns):
    """Columns of X, an array or a DataFrame, as numbers."""
    if columns is None:
        return None
    names = list(X.columns) if hasattr(X, "iloc") else []

    def number(name):
        return names.index(name) if isinstance(name, str) else name

    try:
        if isinstance(columns, slice):
            stop = columns.stop
            return np.arange(X.shape[1])[
                number(columns.start) : number(stop) + 1 if isinstance(stop, str) else stop : columns.step
            ]
        return np.arange(X.shape[1])[
            np.array([number(c) for c in np.atleast_1d(np.asarray(columns, dtype=object))])
        ]
    except (IndexError, TypeError, ValueError):
        raise ValueError(
            f"columns must choose among the {X.shape[1]} columns of X, got {columns!r}"
        ) from None


class MMS(Loadable, BaseEstimator):
    r"""Maximum Margin Set: multiclass hyperplanes from bags of which only the possible labelings are known.

    .. math:: \min_w \frac\lambda2 \|w\|^2 + \frac1N \sum_{i=1}^N \ell_A(\mathcal X_i, \mathcal Z_i; w), \qquad
        \ell_A = \Big| \max_{\bar Z \notin \mathcal Z} \big(\Delta_A(\bar Z, \mathcal Z) + S_w(\mathcal X, \bar Z)\big)
        - \max_{Z \in \mathcal Z} S_w(\mathcal X, Z) \Big|_+

    with :math:`\lambda = 1/(C N)` for N bags, :math:`S_w(\mathcal X, Z) = \sum_m \sum_p w_{z_m^{(p)}} \cdot \phi^{(p)}(x_m)`, and
    :math:`\Delta_A` the least number of labels in which a labeling differs from a candidate. Not convex: the procedure of
    Algorithm 8 fixes the best candidates, solves the convex problem that is left, and starts anew. Its first round averages over all
    candidates.

    Parameters
    ----------
    kernels : list of (name, kernel, columns), list of such lists (one per attribute), "precomputed", or None
        None is the linear form, on the features themselves. The kernels of an attribute are averaged.
    columns : list, optional
        Linear form: the columns of each attribute, as a slice, numbers, a mask, or names of a DataFrame; all for each by default.
    C : float > 0, default 1.0
        The thesis sets lambda to 1/N throughout, which is C = 1.
    solver : {"pegasos", "frank-wolfe"}
        Of the convex problems: stochastic subgradient steps (Algorithm 9), or dual steps with line search, which come closer in the same
        time and end at a gap that is asked for (`gap_tol`) if `n_epochs` suffice.
    n_rounds : int, default 10
        Rounds at most.
    n_epochs : int, default 20
        Passes over the bags in a round; for "frank-wolfe" at most.
    batch_size : int, default 1
        Bags of a Pegasos step (K in Algorithm 9).
    start : float >= 0, optional
        Steps that the hyperplanes a Pegasos round starts from count for; n_bags by default. With 0 the first step forgets them.
    tol : float >= 0, default 1e-3
        Relative fall of the objective between rounds below which the training ends.
    gap_tol : float >= 0, default 1e-2
        Relative duality gap at which a Frank-Wolfe round ends.
    inference : {"heap", "exact"}
        How the most violating labeling is searched: Algorithm 10, or exactly (exponential in a bag's size at worst).
    fit_intercept : bool, default True
        Append a constant feature (to a kernel: add 1), as the thesis does.
    normalize : bool, default True
        Kernels computed from X have unit diagonal.
    shuffle : bool, default True
        A new order of the bags in each pass.
    memory : float, default 2e9
        Bytes for one attribute's kernel matrix; beyond, rows are computed when they are needed.
    random_state : None, int or Generator
    callback : callable(estimator, round), optional
        Called after each round; True ends the training.
    verbose : bool, default False

    Attributes
    ----------
    classes_ : ndarray, or list of ndarray for several attributes
    coef_, intercept_ : ndarrays of shape (n_labels, n_features) and (n_labels,), or lists; linear form
    dual_coef_ : ndarray, shape (n_support, n_labels), or list; kernel form
    support_ : ndarray of int; kernel form
    kernel_weights_ : ndarray, shape (n_kernels,), or list; kernel form
    objective_, dual_gap_ : float
        Of the kept round; the gap bounds how far its convex problem is from its optimum (NaN without certificate; with
        ``inference="heap"`` it is measured with Algorithm 10's answers).
    history_ : DataFrame
        One row per round, see `MMSResult`.
    n_iter_ : int
        Rounds.
    converged_ : bool
    n_features_in_ : int

    Raises
    ------
    ValueError, TypeError
        In `fit`, one sentence that names the argument.

    Warns
    -----
    ConvergenceWarning
        If the rounds end before the objective settles, or a duality gap exceeds the objective itself.

    See Also
    --------
    cuelearn.mms.candidates_from_caption : Candidate sets from text.

    Notes
    -----
    A pass costs one product of X with the hyperplanes, O(n d K), the inner products of neighbours in the order, O(n b d) for blocks of b
    instances, and a search per bag. Memory: X, 16 n K bytes, the kernel matrices, and for "frank-wolfe" 4 bytes for each labeling that a
    bag was found to violate and each of its slots.

    Objectives of successive rounds fall, but for what the convex problems are left unsolved: with ``inference="exact"`` each objective
    exceeds the one before by at most the round's `dual_gap`. Algorithm 10 sees only part of the losses, so that objective and gap are then
    lower estimates, which may rise a little, or be negative. The round with the least objective is kept; after two rounds in a row above
    it, training ends.

    References
    ----------
    Thesis section 5.4, Algorithms 8, 9 and 10. The dual steps: Lacoste-Julien, Jaggi, Schmidt and Pletscher, ICML 2013.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.1, 1.0]])
    >>> sets = CandidateSet([[[0, 1], [1, 0]], [[0, 1]]])  # the first bag could be either way round
    >>> MMS(random_state=0).fit(X, sets).predict(X)
    array([0, 1, 0, 1])
    """

    def __init__(
        self,
        kernels=None,
        *,
        columns=None,
        C=1.0,
        solver="pegasos",
        n_rounds=10,
        n_epochs=20,
        batch_size=1,
        start=None,
        tol=1e-3,
        gap_tol=1e-2,
        inference="heap",
        fit_intercept=True,
        normalize=True,
        shuffle=True,
        memory=2e9,
        random_state=None,
        callback=None,
        verbose=False,
    ):
        self.kernels = kernels
        self.columns = columns
        self.C = C
        self.solver = solver
        self.n_rounds = n_rounds
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.start = start
        self.tol = tol
        self.gap_tol = gap_tol
        self.inference = inference
        self.fit_intercept = fit_intercept
        self.normalize = normalize
        self.shuffle = shuffle
        self.memory = memory
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    # ------------------------------------------------------------------ training

    def fit(self, X, candidates):
        """Train.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_instances, n_features)
            Instances, bag after bag. For ``kernels="precomputed"`` a stack (n_kernels, n, n), a KernelBank, or a list of these, one per
            attribute.
        candidates : CandidateSet

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            for name in [
                n for n in vars(self) if n.endswith("_") or n in PRIVATE
            ]:  # a form fitted before leaves nothing behind
                delattr(self, name)
            options = self._options()
            if not isinstance(candidates, CandidateSet):
                raise TypeError(f"candidates must be a CandidateSet, got {type(candidates).__name__}")
            if options["inference"] == "exact":
                refuse_exact(candidates, range(candidates.n_bags))
            self.n_attributes_ = candidates.n_attributes
            space = (
                self._kernel_space(X, candidates)
                if self.kernels is not None
                else self._linear_space(X, candidates)
            )
            self._classes = [np.asarray(c) for c in candidates.classes]
            result = solve_mms(
                space,
                candidates,
                lam=1.0 / (check_positive("C", self.C) * candidates.n_bags),
                rng=as_generator(self.random_state),
                callback=self._watch(space),
                verbose=self.verbose,
                **options,
            )
            self._keep(space)
            self.objective_, self.history_, self.n_iter_ = result.objective, result.history, result.n_rounds
            self.converged_ = result.converged
            kept = self.history_.objective.to_numpy() == result.objective
            self.dual_gap_ = float(self.history_.dual_gap[np.flatnonzero(kept)[-1]])
            ended = self.callback is not None and self.n_iter_ < self.n_rounds
        if self.n_rounds > 1 and not self.converged_ and not ended:
            warnings.warn(
                f"MMS did not converge in {self.n_iter_} rounds; raise n_rounds or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        elif self.dual_gap_ > self.objective_:  # not so where there is no certificate
            warnings.warn(
                f"the last convex problem of MMS is far from solved, duality gap {self.dual_gap_:.3g}, objective {self.objective_:.3g}; "
                "raise n_epochs, lower C or take solver='frank-wolfe'",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _options(self):
        if self.solver not in SOLVERS:
            raise ValueError(f"solver must be one of {SOLVERS}, got {self.solver!r}")
        if self.inference not in METHODS:
            raise ValueError(f"inference must be one of {METHODS}, got {self.inference!r}")
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback must be callable, got {type(self.callback).__name__}")
        return {
            "solver": self.solver,
            "inference": self.inference,
            "shuffle": self.shuffle,
            "n_rounds": check_count("n_rounds", self.n_rounds),
            "n_epochs": check_count("n_epochs", self.n_epochs),
            "batch_size": check_count("batch_size", self.batch_size),
            "start": None if self.start is None else check_non_negative("start", self.start),
            "tol": check_non_negative("tol", self.tol),
            "gap_tol": check_non_negative("gap_tol", self.gap_tol),
        }

    def _watch(self, space):
        if self.callback is None:
            return None

        def call(number):
            self._keep(space)
            return self.callback(self, number)

        return call

    def _rows(self, n, candidates):
        if n != candidates.n_instances:
            raise ValueError(
                f"X must have one row per instance of the bags, {candidates.n_instances}, got {n}"
            )

    def _linear_space(self, X, candidates):
        table = X
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        self._rows(X.shape[0], candidates)
        P = candidates.n_attributes
        if self.columns is None:
            self._columns = [None] * P
        else:
            chosen = (
                self.columns if isinstance(self.columns, (list, tuple)) and len(self.columns) == P else None
            )
            if chosen is None:
                raise ValueError(
                    f"columns must be a list with the columns of each of the {P} attributes, got {self.columns!r}"
                )
            self._columns = [named_columns(table if hasattr(table, "iloc") else X, c) for c in chosen]
        return LinearSpace(self._parts(X), candidates.n_labels)

    def _parts(self, X):
        parts, held = [], {}
        for columns in self._columns:
            key = None if columns is None else columns.tobytes()
            if key not in held:
                part = X if columns is None else X[:, columns]
                if self.fit_intercept:
                    part = np.column_stack([part, np.ones(len(part), dtype=part.dtype)])
                held[key] = np.ascontiguousarray(part)
            parts.append(held[key])
        return parts

    def _kernel_space(self, X, candidates):
        P = candidates.n_attributes
        precomputed = isinstance(self.kernels, str)
        if not isinstance(self.kernels, (list, tuple)) and not (
            precomputed and self.kernels == "precomputed"
        ):
            raise ValueError(
                f"kernels must be lists of (name, kernel, columns), 'precomputed' or None, got {self.kernels!r}"
            )
        if not precomputed:
            if isinstance(X, KernelBank):
                raise ValueError("X is a KernelBank, which needs kernels='precomputed'")
            validate_data(self, X, dtype=[np.float64, np.float32])
        given = X if precomputed and isinstance(X, (list, tuple)) else [X] * P
        if len(given) != P:
            raise ValueError(
                f"X must hold one stack of kernels for each of the {P} attributes, got {len(given)}"
            )
        lists = [self.kernels] * P
        if not precomputed:
            nested = [
                isinstance(k, (list, tuple)) and len(k) > 0 and isinstance(k[0], (list, tuple))
                for k in self.kernels
            ]
            if nested and all(nested):
                if len(self.kernels) != P:
                    raise ValueError(
                        f"kernels must be one list of triples for each of the {P} attributes, got {len(self.kernels)} lists"
                    )
                lists = self.kernels
        banks, held = [], {}
        for stack, kernels in zip(given, lists, strict=True):
            key = id(stack), id(kernels)
            if key not in held:
                held[key] = bank_of(stack, kernels, self.normalize, self.memory)
            banks.append(held[key])
        for bank in banks:
            self._rows(bank.n_samples, candidates)
        if precomputed:
            self.n_features_in_ = banks[0].n_samples
        self._banks = banks
        self._weights = [mean_weights(bank) for bank in banks]
        return KernelSpace(banks, self._weights, candidates.n_labels, self.memory, self.fit_intercept)

    def _one(self, values):
        return values[0] if self.n_attributes_ == 1 else values

    def _keep(self, space):
        self.classes_ = self._one(self._classes)
        if isinstance(space, LinearSpace):
            tail = -1 if self.fit_intercept else None
            self.coef_ = self._one([w[:, :tail].copy() for w in space.weights])
            self.intercept_ = self._one(
                [w[:, -1].copy() if self.fit_intercept else np.zeros(len(w), w.dtype) for w in space.weights]
            )
            return
        self.support_ = np.flatnonzero(space.coef.any(axis=1))
        self.dual_coef_ = self._one(
            [space.coef[self.support_, space.columns(p)] for p in range(self.n_attributes_)]
        )
        self.kernel_weights_ = self._one(self._weights)
        self._bank_support = self.support_

    # ------------------------------------------------------------------ prediction

    def _scores(self, X):
        check_is_fitted(self, "classes_")
        P = self.n_attributes_
        if hasattr(self, "coef_"):
            X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
            coefs, biases = ([self.coef_], [self.intercept_]) if P == 1 else (self.coef_, self.intercept_)
            parts = [X if c is None else X[:, c] for c in self._columns]
            return [x @ w.T + b for x, w, b in zip(parts, coefs, biases, strict=True)]
        precomputed = isinstance(self.kernels, str)
        coefs = [self.dual_coef_] if P == 1 else self.dual_coef_
        given = X if precomputed and isinstance(X, (list, tuple)) else [X] * P
        if len(given) != P:
            raise ValueError(
                f"X must hold one stack of kernels for each of the {P} attributes, got {len(given)}"
            )
        scores = []
        if not precomputed:
            validate_data(
                self, X, reset=False, skip_check_array=hasattr(X, "iloc"), dtype=[np.float64, np.float32]
            )
        for p in range(P):
            stack = given[p]
            if precomputed:
                stack = np.asarray(stack)
                shape = (len(self._weights[p]), self.n_features_in_)
                if (
                    stack.ndim != 3
                    or (stack.shape[0], stack.shape[2]) != shape
                    or not np.isfinite(stack).all()
                ):
                    raise ValueError(
                        f"X must be a finite stack of shape ({shape[0]}, n, {shape[1]}), got {stack.shape}"
                    )
            bank = None if precomputed else self._banks[p]
            scores.append(
                new_scores(
                    bank,
                    stack,
                    coefs[p],
                    self._weights[p],
                    self._bank_support,
                    precomputed,
                    self.fit_intercept,
                )
            )
        return scores

    def decision_function(self, X):
        """Scores of all labels.

        Parameters
        ----------
        X : as in `fit`, of new instances; for precomputed kernels (n_kernels, n, n_train)

        Returns
        -------
        ndarray, shape (n, n_labels), or a list of one per attribute
        """
        return self._one(self._scores(X))

    def predict(self, X, candidates=None):
        """Labels of instances: of each by itself, or within candidates.

        Parameters
        ----------
        X : as in `decision_function`
        candidates : CandidateSet, optional
            Of the bags of these instances: their captions. The best candidate is answered.

        Returns
        -------
        ndarray, shape (n,), or (n, n_attributes) for several attributes
            Entries of `classes_`.
        """
        scores = self._scores(X)
        if candidates is None:
            best = [classes[np.argmax(s, axis=1)] for classes, s in zip(self._classes, scores, strict=True)]
            return best[0] if len(best) == 1 else np.stack([b.astype(object) for b in best], axis=1)
        if not isinstance(candidates, CandidateSet):
            raise TypeError(f"candidates must be a CandidateSet, got {type(candidates).__name__}")
        self._rows(scores[0].shape[0], candidates)
        known = len(candidates.classes) == len(self._classes)
        if not known or not all(
            np.array_equal(a, b) for a, b in zip(candidates.classes, self._classes, strict=True)
        ):
            sizes = tuple(map(len, self._classes))
            raise ValueError(
                f"candidates must have the labels of training in their order, {sizes} of them, got others"
            )
        return assign(scores, candidates)

    # ------------------------------------------------------------------ saving

    def save(self, path):
        """Save the fitted model as one .npz file without pickle; `load` reads it back.

        A callback and a `random_state` other than None or an int are left out.

        Parameters
        ----------
        path : str or path-like
            Written whole or not at all.
        """
        check_is_fitted(self, "classes_")
        precomputed = isinstance(self.kernels, str)
        arrays, banks = {}, None
        if not hasattr(self, "coef_") and not precomputed:
            support = self._bank_support if self.support_.size else [0]
            banks = []
            for p, bank in enumerate(self._banks):
                part = bank.restrict(support, resident=False)
                plain, packed = pack(part)
                banks.append(plain)
                arrays.update({f"bank{p}/{name}": value for name, value in packed.items()})
        plain = {
            "n_attributes_": self.n_attributes_,
            "objective_": self.objective_,
            "dual_gap_": self.dual_gap_,
            "n_iter_": self.n_iter_,
            "converged_": self.converged_,
            "n_features_in_": self.n_features_in_,
        }
        for p in range(self.n_attributes_):
            classes = self._classes[p]
            arrays[f"classes/{p}"] = classes.astype(str) if classes.dtype == object else classes
            if hasattr(self, "coef_"):
                arrays[f"coef/{p}"] = self.coef_ if self.n_attributes_ == 1 else self.coef_[p]
                arrays[f"intercept/{p}"] = self.intercept_ if self.n_attributes_ == 1 else self.intercept_[p]
                if self._columns[p] is not None:
                    arrays[f"columns/{p}"] = self._columns[p]
            else:
                arrays[f"coef/{p}"] = self.dual_coef_ if self.n_attributes_ == 1 else self.dual_coef_[p]
                arrays[f"weights/{p}"] = self._weights[p]
        if not hasattr(self, "coef_"):
            arrays["support"] = self.support_
        if hasattr(self, "feature_names_in_"):
            arrays["feature_names"] = self.feature_names_in_.astype(str)
        parameters = saved_parameters(self, precomputed)
        parameters["columns"] = None
        head = {
            "format": FORMAT,
            "class": type(self).__name__,
            "linear": hasattr(self, "coef_"),
            "parameters": parameters,
            "fitted": plain,
            "history": self.history_.to_dict(orient="list"),
            "banks": banks,
        }
        write_parts(path, head, arrays)

    @staticmethod
    def _rebuild(head, arrays):
        return _rebuild(head, arrays)


def load(path):
    """Load an `MMS` from a file written by its `save`.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    MMS

    Raises
    ------
    ValueError
        If the file is damaged or not one of ours.
    """
    return read_parts(path, _rebuild)


def _rebuild(head, arrays):
    if head["format"] != FORMAT or head["class"] != "MMS":
        raise ValueError(f"format {head['format']}, class {head['class']!r}")
    model = construct(MMS, head["parameters"])
    for name, value in head["fitted"].items():
        setattr(model, name, value)
    model.history_ = pd.DataFrame(head["history"])
    P = model.n_attributes_
    if "feature_names" in arrays:
        model.feature_names_in_ = arrays["feature_names"].astype(object)
    model._classes = [arrays[f"classes/{p}"] for p in range(P)]
    model.classes_ = model._one(model._classes)
    if head["linear"]:
        model.coef_ = model._one([arrays[f"coef/{p}"] for p in range(P)])
        model.intercept_ = model._one([arrays[f"intercept/{p}"] for p in range(P)])
        model._columns = [arrays.get(f"columns/{p}") for p in range(P)]
        if any(c is not None for c in model._columns):
            model.columns = [np.arange(model.n_features_in_) if c is None else c for c in model._columns]
        return model
    model._weights = [arrays[f"weights/{p}"] for p in range(P)]
    model.kernel_weights_ = model._one(model._weights)
    model.dual_coef_ = model._one([arrays[f"coef/{p}"] for p in range(P)])
    model.support_ = arrays["support"]
    model._bank_support = model.support_
    if head["banks"] is not None:
        model._banks = []
        for p, bank in enumerate(head["banks"]):
            part = {
                name.partition("/")[2]: value
                for name, value in arrays.items()
                if name.startswith(f"bank{p}/")
            }
            model._banks.append(unpack(bank, part))
        model._bank_support = np.arange(len(model.support_))
        model.kernels = [bank.triples for bank in model._banks]
    return model
