r"""The Maximum Margin Set classifier (thesis section 5.4; Jie and Orabona, NIPS 2010)."""

import warnings
from dataclasses import field

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from cuelearn.core.checks import as_generator
from cuelearn.core.docs import documented
from cuelearn.core.estimator import COUNT, NON_NEGATIVE, Estimator, StrOptions, parameters, validated
from cuelearn.kernels import KernelBank
from cuelearn.mkl.displays import kernel_summary
from cuelearn.mkl.problem import combine, combined_scores, quadratic_forms
from cuelearn.mms.base import FLOATS, BagClassifier
from cuelearn.mms.candidates import check_candidates
from cuelearn.mms.inference import METHODS, refuse_unlisted
from cuelearn.mms.solver import solve_mms
from cuelearn.mms.spaces import KernelSpace, LinearSpace, mean_weights

__all__ = ["MMS"]

#: Parameters that go to `solve_mms` as they are.
OPTIONS = ("solver", "n_rounds", "n_epochs", "tol", "gap_tol", "inference", "verbose")


def is_listing(value):
    return isinstance(value, (list, tuple))


@documented
@parameters
class MMS(BagClassifier):
    r"""Maximum Margin Set: multiclass hyperplanes from bags of which only the possible labelings are known.

    .. math:: \min_w \frac\lambda2 \|w\|^2 + \frac1N \sum_{i=1}^N \Big| \max_{\bar Z \notin \mathcal Z_i}
        \big(\Delta_A(\bar Z, \mathcal Z_i) + S_w(\mathcal X_i, \bar Z)\big)
        - \max_{Z \in \mathcal Z_i} S_w(\mathcal X_i, Z) \Big|_+

    with :math:`\lambda = 1/(C N)` for N bags,
    :math:`S_w(\mathcal X, Z) = \sum_m \sum_p w_{z_m^{(p)}} \cdot \phi^{(p)}(x_m)`, and :math:`\Delta_A` the
    least number of labels in which a labeling differs from a candidate. Not convex: Algorithm 8 fixes the
    best candidates (all of them in the first round), solves the convex problem that is left, and starts anew.
    A constant feature is appended (1 is added to a kernel), as in the thesis.

    Parameters
    ----------
    kernels : list of (name, kernel, columns), list of such lists (one per attribute), "precomputed", or None
        None is the linear form, on the features themselves. The kernels of an attribute, of unit diagonal,
        are averaged.
    C : float > 0, default 1.0
        The thesis sets lambda to 1/N throughout, which is C = 1.
    solver : {"pegasos", "frank-wolfe"}
        Of the convex problems: stochastic subgradient steps (Algorithm 9), or dual steps with line search,
        which come closer in the same time and end at a gap that is asked for (`gap_tol`).
    n_rounds : int, default 10
        Rounds at most.
    n_epochs : int, default 20
        Passes over the bags in a round, each in a new order; for "frank-wolfe" at most.
    tol : float >= 0, default 1e-3
        Relative fall of the objective between rounds below which the training ends.
    gap_tol : float >= 0, default 1e-2
        Relative duality gap at which a Frank-Wolfe round ends.
    inference : {"heap", "exact"}
        Search of the most violating labeling: Algorithm 10, or exactly (at worst exponential in a bag's
        size).
    memory : float, default 2e9
        Bytes for one attribute's kernel matrix; beyond, rows are computed when they are needed.
    $random_state
    callback : callable(estimator, round), optional
        Called after each round; True ends the training.
    $verbose

    Attributes
    ----------
    classes_ : ndarray, or list of ndarray for several attributes
    coef_, intercept_ : ndarrays of shape (n_labels, n_features) and (n_labels,), or lists; linear form
    dual_coef_ : ndarray, shape (n_support, n_labels), or list; kernel form
    support_ : ndarray of int; kernel form
    kernel_weights_ : ndarray, shape (n_kernels,), or list; kernel form
    objective_, dual_gap_ : float
        Of the kept round; the gap bounds how far its convex problem is from its optimum (NaN without
        certificate; with ``inference="heap"`` it is measured with Algorithm 10's answers).
    history_ : DataFrame
        One row per round, see `MMSResult`.
    n_iter_ : int
        Rounds.
    converged_ : bool
    n_attributes_, n_features_in_ : int

    Warns
    -----
    ConvergenceWarning
        If the rounds end before the objective settles, or a duality gap exceeds the objective itself.

    Notes
    -----
    A pass costs one product of X with the hyperplanes, O(n d K), inner products of neighbours in the order,
    O(n b d) for blocks of b instances, and a search per bag. Memory: X, 16 n K bytes, the kernel matrices,
    and for "frank-wolfe" 4 bytes for each slot of each labeling that a bag was found to violate.

    With exact inference a round's objective exceeds the one before by at most the round's `dual_gap`.
    Algorithm 10 sees only part of the losses, so that objective and gap are then lower estimates, which may
    rise a little, or be negative. The round with the least objective is kept; two rounds in a row above it
    end the training.

    References
    ----------
    Thesis section 5.4, Algorithms 8 (`solver`), 9 (`pegasos`) and 10 (`inference`). The dual steps
    (`frank_wolfe`): Lacoste-Julien, Jaggi, Schmidt and Pletscher, ICML 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import CandidateSet
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.1, 1.0]])
    >>> sets = CandidateSet([[[0, 1], [1, 0]], [[0, 1]]])  # the first bag could be either way round
    >>> MMS(random_state=0).fit(X, sets).predict(X)
    array([0, 1, 0, 1])
    """

    _parameter_constraints = {
        **Estimator._parameter_constraints,
        "kernels": [list, tuple, StrOptions({"precomputed"}), None],
        "solver": [StrOptions({"pegasos", "frank-wolfe"})],
        "n_rounds": COUNT,
        "tol": NON_NEGATIVE,
        "gap_tol": NON_NEGATIVE,
        "inference": [StrOptions(set(METHODS))],
    }

    kernels: object = field(default=None, kw_only=False)
    C: float = 1.0
    solver: str = "pegasos"
    n_rounds: int = 10
    n_epochs: int = 20
    tol: float = 1e-3
    gap_tol: float = 1e-2
    inference: str = "heap"
    memory: float = 2e9
    random_state: object = None
    callback: object = None
    verbose: bool = False

    @validated
    def fit(self, X, candidates):
        """Train.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_instances, n_features)
            Instances, bag after bag. For ``kernels="precomputed"`` a stack (n_kernels, n, n), a KernelBank,
            or a list of these, one per attribute.
        candidates : CandidateSet

        Returns
        -------
        self
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # a form fitted before leaves nothing behind
        check_candidates(candidates)
        if self.inference == "exact":
            refuse_unlisted(candidates, range(candidates.n_bags))
        self.n_attributes_ = candidates.n_attributes
        space = (self._linear_space if self.kernels is None else self._kernel_space)(X, candidates)
        self.classes_ = self._one([np.asarray(c) for c in candidates.classes])

        def callback(number):
            self._keep(space)
            return self.callback(self, number)

        result = solve_mms(
            space,
            candidates,
            lam=1.0 / (self.C * candidates.n_bags),
            rng=as_generator(self.random_state),
            callback=self.callback and callback,
            **{name: getattr(self, name) for name in OPTIONS},
        )
        self._keep(space)
        self.objective_, self.history_, self.n_iter_, self.converged_, _ = result
        kept = np.flatnonzero(self.history_["objective"] == self.objective_)[-1]
        self.dual_gap_ = float(self.history_["dual_gap"][kept])
        self._warn()
        return self

    def _warn(self):
        ended, message = self.callback is not None and self.n_iter_ < self.n_rounds, None
        if self.n_rounds > 1 and not self.converged_ and not ended:
            message = f"MMS did not converge in {self.n_iter_} rounds; raise n_rounds or tol"
        elif self.dual_gap_ > self.objective_:  # not so where there is no certificate
            message = (
                f"the last convex problem of MMS is far from solved, duality gap {self.dual_gap_:.3g}, "
                f"objective {self.objective_:.3g}; raise n_epochs, lower C or take solver='frank-wolfe'"
            )
        if message:
            warnings.warn(message, ConvergenceWarning, stacklevel=4)

    def _linear_space(self, X, candidates):
        X = validate_data(self, X, dtype=FLOATS)
        check_candidates(candidates, len(X))
        return LinearSpace(np.column_stack([X, np.ones(len(X), dtype=X.dtype)]), candidates.n_labels)

    def _precomputed(self):
        return isinstance(self.kernels, str)

    def _stacks(self, X):
        """What X gives each attribute."""
        given = list(X) if self._precomputed() and is_listing(X) else [X] * self.n_attributes_
        if len(given) != self.n_attributes_:
            wanted = self.n_attributes_
            what = f"one stack of kernels for each of {wanted} attributes"
            raise ValueError(f"X must hold {what}, got {len(given)}")
        return given

    def _kernel_space(self, X, candidates):
        if self._precomputed():
            pairs = [(stack, None) for stack in self._stacks(X)]
        else:
            if isinstance(X, KernelBank):
                raise ValueError("X is a KernelBank, which needs kernels='precomputed'")
            validate_data(self, X, dtype=FLOATS)
            nested = all(is_listing(k) and len(k) > 0 and is_listing(k[0]) for k in self.kernels)
            lists = self.kernels if nested and len(self.kernels) else [self.kernels] * self.n_attributes_
            if len(lists) != self.n_attributes_:
                what = f"one list of triples for each of {self.n_attributes_} attributes"
                raise ValueError(f"kernels must be {what}, got {len(lists)} lists")
            pairs = [(X, kernels) for kernels in lists]
        shared = {tuple(map(id, pair)): pair for pair in pairs}
        shared = {key: self._bank(*pair) for key, pair in shared.items()}
        banks = [shared[tuple(map(id, pair))] for pair in pairs]
        for bank in banks:
            check_candidates(candidates, bank.n_samples)
        if self._precomputed():
            self.n_features_in_ = banks[0].n_samples
        else:
            self.banks_ = banks
        self.kernel_weights_ = self._one([mean_weights(bank) for bank in banks])
        return KernelSpace(banks, candidates.n_labels, self.memory)

    def _bank(self, X, kernels):
        if isinstance(X, KernelBank):
            return X
        if kernels is None:
            return KernelBank.from_stack(X, memory=self.memory)
        return KernelBank(kernels, X, memory=self.memory)

    def _keep(self, space):
        if isinstance(space, LinearSpace):
            weights = [space.weights[columns] for columns in space.columns]
            self.coef_ = self._one([w[:, :-1].copy() for w in weights])
            self.intercept_ = self._one([w[:, -1].copy() for w in weights])
            return
        self.support_ = np.flatnonzero(space.weights.any(axis=1))
        self.dual_coef_ = self._one([space.weights[self.support_, columns] for columns in space.columns])
        self.bank_support_ = self.support_

    # ------------------------------------------------------------------ prediction

    def _scores(self, X):
        """Scores of all labels, one matrix per attribute."""
        if self.kernels is None:
            X = validate_data(self, X, dtype=FLOATS, reset=False)
            return self._linear_scores(X)
        if not self._precomputed():
            validate_data(self, X, reset=False, skip_check_array=hasattr(X, "iloc"), dtype=FLOATS)
        given = self._stacks(X) if self._precomputed() else self.banks_
        coefs, weights, scores = self._list(self.dual_coef_), self._list(self.kernel_weights_), []
        for kernels, coef, w in zip(given, coefs, weights, strict=True):
            if self._precomputed():
                K = self._checked_stack(kernels, w)
                part = combine(K[:, :, self.support_], w, np.float64) @ coef
            else:
                part = combined_scores(kernels.cross(X, support=self.bank_support_), coef, w)
            scores.append(part + coef.sum(axis=0))  # the constant feature
        return scores

    def _checked_stack(self, K, weights):
        K = np.asarray(K)
        F, n = len(weights), self.n_features_in_
        K = K[None] if K.ndim == 2 and F == 1 else K
        if K.ndim != 3 or (K.shape[0], K.shape[2]) != (F, n) or not np.isfinite(K).all():
            raise ValueError(f"X must be a finite stack of shape ({F}, n, {n}), got {K.shape}")
        return K

    def summary(self):
        """What each kernel is worth, as of the classes of `cuelearn.mkl`: here all weigh the same.

        Several attributes follow each other (column attribute: its number). ValueError without kernels.
        """
        check_is_fitted(self, "classes_")
        if self.kernels is None:
            raise ValueError("MMS without kernels has none to weigh")
        coefs, tables = self._list(self.dual_coef_), []
        for p, (coef, weights) in enumerate(zip(coefs, self._list(self.kernel_weights_), strict=True)):
            names, norms = [f"k{j}" for j in range(len(weights))], np.full(len(weights), np.nan)
            if not self._precomputed():
                bank = self.banks_[p]
                whole = np.zeros((bank.n_samples, coef.shape[1]))
                whole[self.bank_support_] = coef
                names, norms = bank.names, weights * np.sqrt(quadratic_forms(bank, whole).sum(axis=1))
            table = kernel_summary(names, weights[None], norms, len(coef))
            tables.append(table if len(coefs) == 1 else table.assign(attribute=p))
        return pd.concat(tables, ignore_index=True)

    # ------------------------------------------------------------------ saving

    def _score_ones(self):
        if not self._precomputed():
            return super()._score_ones()
        weights = self._list(self.kernel_weights_)
        return self._one(self._scores([np.ones((len(w), 1, self.n_features_in_)) for w in weights]))

    def _saved_parameters(self):
        parameters = super()._saved_parameters()
        if hasattr(self, "banks_"):  # with the numbers for gamma and for columns that `fit` found
            parameters["kernels"] = [bank.triples for bank in self.banks_]
        return parameters

    def _fitted_state(self):
        """The banks are cut to the support."""
        state = super()._fitted_state()
        if hasattr(self, "banks_"):
            support = self.bank_support_ if self.support_.size else [0]
            state["banks_"] = [bank.restrict(support, resident=False) for bank in self.banks_]
            state["bank_support_"] = np.arange(len(self.support_))
        return state
