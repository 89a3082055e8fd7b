"""The Maximum Margin Set classifier (thesis 5.4; Jie and Orabona, NIPS 2010), and the base of all learners of
bags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from cuelearn.core.docs import documented
from cuelearn.core.estimator import COUNT, NON_NEGATIVE, Estimator, StrOptions, parameters, validated
from cuelearn.core.samples import FLOATS, InputLike, as_generator, check_sample_weight, validate_samples
from cuelearn.expect import expect_shape, warn_user
from cuelearn.kernels import FeatureScaleWarning, KernelBank
from cuelearn.kernels.rows import combine, combined_scores, quadratic_forms
from cuelearn.kernels.specifications import as_samples, check_kernels
from cuelearn.kernels.stack import KernelStack, checked_cross, new_kernels, refuse_kernels, training_bank
from cuelearn.kernels.types import ArrayLike, Callback, KernelList, RandomState, SampleWeight
from cuelearn.mkl.base import kernel_summary
from cuelearn.mms.candidates import CandidateSet, check_bag_weights, check_candidates, named, once_or_each
from cuelearn.mms.convex import FINEST, KernelSpace, LinearSpace, mean_weights
from cuelearn.mms.inference import METHODS, MOST_NODES, Inference, best_labelings
from cuelearn.mms.solver import solve_mms

__all__ = ["BagClassifier", "MMS"]


class BagClassifier(Estimator):
    """Base; subclasses have `classes_`, `n_attributes_` and ``_scores(X)``, one matrix per attribute."""

    classes_: np.ndarray | Any

    def _one(self, values):
        if self.n_attributes_ == 1:
            return values[0]
        return values

    def _list(self, value):
        if self.n_attributes_ == 1:
            return [value]
        return value

    def _possible(self, scores):
        """Scores for the choice of labels without candidates."""
        return scores

    def _score_ones(self):
        return self._one(self._possible(self._list(super()._score_ones())))

    def _check_new(self, X):
        check_is_fitted(self)
        return validate_data(self, X, dtype=FLOATS, reset=False)

    def _linear_scores(self, X):
        pairs = zip(self._list(self.coef_), self._list(self.intercept_), strict=True)
        return [X @ coef.T + intercept for coef, intercept in pairs]

    def _within(self, X, candidates):
        scores = self._scores(X)
        check_candidates(candidates, len(scores[0]))
        return best_labelings(scores, candidates)

    def decision_function(self, X: InputLike) -> np.ndarray | Any:
        """Scores of all labels.

        Parameters
        ----------
        X : as in `fit`, of new instances; for precomputed kernels (n_kernels, n, n_train)

        Returns
        -------
        ndarray, shape (n, n_labels), or a list of these for several attributes
        """
        check_is_fitted(self, "classes_")
        return self._one(self._scores(X))

    def predict(self, X: InputLike, candidates: CandidateSet | None = None) -> np.ndarray:
        """Labels of instances, each by itself or within candidates.

        Parameters
        ----------
        X : as in `decision_function`
        candidates : CandidateSet, optional
            Of the bags of these instances (their captions); the prediction is then the first best candidate.

        Returns
        -------
        ndarray, shape (n,), or for several attributes (n, n_attributes) of objects
            Entries of `classes_`.
        """
        check_is_fitted(self, "classes_")
        classes = self._list(self.classes_)
        if candidates is not None:
            check_candidates(candidates, classes=classes)
            return candidates.named(self._within(X, candidates))
        return named(self._best_labels(X), classes)

    def _best_labels(self, X):
        scores = self._possible(self._scores(X))
        return np.stack([np.argmax(s, axis=1) for s in scores], axis=1)

    def score(
        self,
        X: InputLike,
        y: ArrayLike | CandidateSet,
        candidates: CandidateSet | None = None,
        sample_weight: SampleWeight = None,
    ) -> float:
        """Share of labels predicted correctly.

        Parameters
        ----------
        X : as in `decision_function`
        y : array-like of names in `classes_`, shaped as the result of `predict`; or CandidateSet
            The truth. For a CandidateSet the score is 1 minus the mean ambiguous loss, by which Cour, Sapp
            and Taskar (Learning from partial labels, JMLR 2011) bound the true error.
        candidates : CandidateSet, optional
            As in `predict`.
        sample_weight : array-like of float >= 0, shape (n,), optional
            Of the instances; if y is a CandidateSet, of the bags, as in `MMS.fit`.

        Returns
        -------
        float
        """
        if isinstance(y, CandidateSet):
            return self._agreement(X, y, candidates, sample_weight)
        predicted = self.predict(X, candidates)
        y = np.asarray(y)
        expect_shape("y", y, predicted.shape)
        weights = check_sample_weight(sample_weight, len(y))
        right = (predicted == y).reshape(len(y), -1)
        if weights is not None:
            weights = np.repeat(weights[:, None], right.shape[1], axis=1)
        return float(np.average(right, weights=weights))

    def _agreement(self, X, y, candidates, sample_weight):
        check_is_fitted(self, "classes_")
        if candidates is None:
            numbers = self._best_labels(X)
        else:
            numbers = self._within(X, candidates)
        check_candidates(y, len(numbers), self._list(self.classes_))
        losses = [y.loss(i, own) for i, own in enumerate(np.split(numbers, y.bag_starts[1:-1]))]
        weights = check_bag_weights(sample_weight, y)
        if weights is None:
            weights = np.ones(y.n_bags, dtype=int)
        slots = numbers.shape[1] * y.bag_sizes
        return float(1.0 - weights @ losses / (weights @ slots))


#: Parameters passed on to `solve_mms`.
OPTIONS = ("solver", "n_init", "n_rounds", "n_epochs", "tol", "inference", "verbose")


def is_listing(value):
    return isinstance(value, (list, tuple))


def is_one_list(kernels):
    """Whether kernels are those of all attributes."""
    return len(kernels) == 0 or not all(is_listing(k) and len(k) > 0 and is_listing(k[0]) for k in kernels)


#: Raw pixels from 0 to 16 (digits) took seven times as long as the same divided by 16.
LARGE_ENTRIES = 5.0


@documented
@parameters
class MMS(BagClassifier):
    r"""Maximum Margin Set: multiclass hyperplanes from bags whose possible labelings are known.

    .. math:: \min_w \frac\lambda2 \|w\|^2 + \frac1N \sum_{i=1}^N \Big| \max_{\bar Z \notin \mathcal Z_i}
        \big(\Delta_A(\bar Z, \mathcal Z_i) + S_w(\mathcal X_i, \bar Z)\big)
        - \max_{Z \in \mathcal Z_i} S_w(\mathcal X_i, Z) \Big|_+

    with :math:`\lambda = 1/(C N)` for N bags, :math:`S_w(\mathcal X, Z) = \sum_m \sum_p w_{z_m^{(p)}} \cdot
    \phi^{(p)}(x_m)`, and :math:`\Delta_A` the least number of labels in which a labeling differs from a
    candidate. Weights :math:`s_i` in `fit` replace the mean by :math:`\frac1W \sum_i s_i |\cdot|_+` and N in
    :math:`\lambda` by their sum W. Algorithm 8 fixes the best candidates (in the first round all), solves the
    remaining convex problem, and repeats. A constant feature is appended (1 is added to a kernel), as in the
    thesis.

    Parameters
    ----------
    kernels : list of (name, kernel, columns), list of such lists (one per attribute), "precomputed", or None
        None is the linear form on the features. The kernels of an attribute, of unit diagonal, are averaged.
    C : float > 0, default 1.0
        The thesis sets lambda to 1/N throughout, which is C = 1.
    solver : {"frank-wolfe", "pegasos"}
        Dual steps with line search up to a certified gap, or the papers' stochastic subgradient steps
        (Algorithm 9).
    n_init : int, default 1
        Starts: the first from the mean of all candidates, others from a random candidate of every bag.
    n_rounds : int or None, default None
        Most rounds of a start. None: 10 for "pegasos", else 50.
    n_epochs : int or None, default None
        Passes over the bags in a round, each in a new order; for "frank-wolfe" at most. None: 20 for
        "pegasos", else 300, or 100,000 visits of bags if these are more.
    tol : float >= 0, default 1e-2
        A round of "frank-wolfe" ends at this relative duality gap, or once it cannot lower the objective by
        more; the rounds of either solver end when it falls by at most a tenth of this.
    inference : {"auto", "exact", "lp", "algorithm-10"}
        Search of `most_violating`: "lp" misses few, "algorithm-10" more. "auto" is Algorithm 10 for
        "pegasos", else "exact", and "lp" if a bag has more than twelve labels, or more than 1,000 in all its
        listed candidates.
    memory : float, default 2e9
        Bytes for one attribute's kernel matrix; beyond, rows are computed when needed.
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
        Of the kept round; the gap bounds its convex problem's distance from the optimum. NaN for indefinite
        kernels, and where a search did not prove its losses the largest.
    history_ : DataFrame
        A row per round: start, step, n_epochs, seconds, objective, relaxed (value of the convex problem 5.5,
        by the search used), dual_bound (below its optimum, or NaN), dual_gap, n_changed (bags whose best
        candidates changed), n_updates, n_projections, n_unproven (bags that may have a larger loss).
    visits_ : ndarray of int, shape (n_passes, n_bags); of "pegasos"
        Bags in the order of the visits, over all rounds.
    n_iter_ : int
        Rounds, of all starts.
    converged_ : bool
        Whether the gap is certified and at most `tol`, and no further round would have lowered the objective.
    n_attributes_, n_features_in_ : int

    Warns
    -----
    ConvergenceWarning
        If the objective did not settle, rose in a round or is not below that of w = 0, if the gap is NaN,
        above `tol` or negative (the search has missed losses), or if exact searches ended without proof.
    IndefiniteKernelWarning
        If a kernel is not positive semidefinite.

    Raises
    ------
    ValueError
        If X and the candidates differ in instances, or Pegasos steps overflow on features of large scale.

    See Also
    --------
    most_violating : The search of a step.
    common_objective : The objective of any linear model.

    Notes
    -----
    A pass costs one product of X with the hyperplanes, O(n d K), inner products within blocks of b instances,
    O(n b d), and a search per bag. Memory: X, 16 n K bytes, the kernel matrices, and for "frank-wolfe" 4
    bytes per slot of each violating labeling found.

    "frank-wolfe" averages listed candidates whose scores differ by at most the round's gap, as their order is
    rounding; "pegasos" and matchings average those within 1e-9. Problems of a few bags have many minima,
    which `n_init` explores. A lower objective is a larger margin, not always a better labeling.

    The same data and seed give the same model on one machine. Ties within 1e-9 go to the first labeling;
    still, as many hyperplanes are within a gap of 1%, the data's last bit may matter: with 120 bags of 5
    letters it altered 5 to 11% of the predictions (4 to 11% with ``tol=1e-3``), with equal accuracy.

    With exact inference a certified round never raises the objective. Without, the objective is a lower
    estimate, which may rise a little and end some percent from that of an exact search. The round with the
    least objective is kept; two rounds in a row above it end the training without convergence.

    References
    ----------
    Thesis section 5.4, Algorithms 8 (`solver`), 9 (`pegasos`) and 10 (`inference`); section 7.2.2
    (`relaxation`). Dual steps (`frank_wolfe`): Lacoste-Julien, Jaggi, Schmidt and Pletscher, ICML 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import MMS, CandidateSet
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.1, 1.0]])
    >>> sets = CandidateSet([[[0, 1], [1, 0]], [[0, 1]]])  # the first bag could be either way round
    >>> MMS(random_state=0).fit(X, sets).predict(X)
    array([0, 1, 0, 1])
    """

    _parameter_constraints = {
        "kernels": [list, tuple, StrOptions({"precomputed"}), None],
        "solver": [StrOptions({"pegasos", "frank-wolfe"})],
        "n_init": COUNT,
        "n_rounds": [*COUNT, None],
        "n_epochs": [*COUNT, None],
        "tol": NON_NEGATIVE,
        "inference": [StrOptions({"auto", *METHODS})],
    }

    kernels: KernelList | Sequence[KernelList] = field(default=None, kw_only=False)
    C: float = 1.0
    solver: Literal["frank-wolfe", "pegasos"] = "frank-wolfe"
    n_init: int = 1
    n_rounds: int | None = None
    n_epochs: int | None = None
    tol: float = 1e-2
    inference: Inference = "auto"
    memory: float = 2e9
    random_state: RandomState = None
    callback: Callback = None
    verbose: bool = False

    @validated
    def fit(self, X: InputLike, candidates: CandidateSet, sample_weight: SampleWeight = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_instances, n_features)
            Bag after bag. If precomputed, a stack (n_kernels, n, n), KernelBank or KernelStack, or a list of
            one per attribute.
        candidates : CandidateSet
        sample_weight : array-like, shape (n_bags,), or (n_instances,), the same within each bag; optional
            Weights of the *bags*: 2 repeats a bag, 0 leaves it out (but for kernel parameters set by rule).
            In cross-validation give ``w[candidates.bag_of]``.

        Returns
        -------
        self
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # forget an earlier fit
        check_candidates(candidates)
        bag_weights = check_bag_weights(sample_weight, candidates)
        self.n_attributes_: int = candidates.n_attributes
        space = (self._linear_space if self.kernels is None else self._kernel_space)(X, candidates)
        self.classes_ = self._one([np.asarray(c) for c in candidates.classes])

        def callback(space, number):
            self._keep(space)
            return self.callback(self, number)

        result = solve_mms(
            space,
            candidates,
            lam=1.0 / (self.C * (candidates.n_bags if bag_weights is None else bag_weights.sum())),
            sample_weight=bag_weights,
            rng=as_generator(self.random_state),
            callback=self.callback and callback,
            **{name: getattr(self, name) for name in OPTIONS},
        )
        self._keep(space)
        self.objective_: float = result.objective
        self.history_: pd.DataFrame = result.history
        self.n_iter_: int = len(result.history)
        self.dual_gap_: float = float(result.history["dual_gap"][result.kept])
        if self.solver == "pegasos":
            self.visits_: np.ndarray = result.visits
        wanted = self.tol * max(result.history["dual_bound"][result.kept], FINEST)
        self.converged_: bool = result.converged and abs(self.dual_gap_) <= wanted
        for doubt in () if space.indefinite else self._doubts(result, wanted):
            warn_user(doubt, ConvergenceWarning)
        return self

    def _doubts(self, result, wanted):
        kept = self.history_.loc[result.kept]
        rounds = self.history_.loc[self.history_["start"] == kept["start"], "objective"]
        better = "raise n_epochs, lower C"
        if self.solver == "pegasos":
            better += " or take solver='frank-wolfe'"
        gap = kept["relaxed"] - kept["dual_bound"]
        rise = rounds.diff().max()
        if not (result.converged or result.ended or self.n_rounds == 1):
            yield f"MMS did not converge in {len(rounds)} rounds; raise n_rounds, n_epochs or tol"
        if np.isnan(gap):
            yield f"MMS has no certificate, its duality gap is {gap}; take solver='frank-wolfe'"
        elif gap > wanted:
            yield (
                f"the last convex problem of MMS is far from solved, duality gap {gap:.3g}, objective "
                f"{self.objective_:.3g}, requested {wanted:.3g}; {better} or raise tol"
            )
        elif gap < -wanted and not result.unfinished:
            yield f"the search missed losses, {-gap:.3g} at least; inference='exact' finds them"
        if result.unfinished:
            yield (
                f"most violating labelings may be missed: {MOST_NODES} partial labelings do not prove those "
                f"of {result.unfinished} bags; inference='lp' is faster"
            )
        if result.at_zero == 0.0:
            yield "MMS has learned nothing: every labeling is a candidate of its bag"
        elif self.objective_ >= result.at_zero:
            yield (
                f"the objective of MMS, {self.objective_:.3g}, is not below that of w = 0, "
                f"{result.at_zero:.3g}; {better}, raise n_init or standardise the features"
            )
        if rise > self.tol * FINEST:  # NaN after one round
            yield f"the objective of MMS rose by {rise:.3g} in a round; {better}"

    def _linear_space(self, X, candidates):
        X = validate_data(self, X, dtype=FLOATS)
        check_candidates(candidates, len(X))
        size = np.sqrt(np.mean(np.square(X, dtype=np.float64)))
        if size > LARGE_ENTRIES:
            message = (
                f"the root mean square of X is {size:.3g}: with entries of size 1 MMS is several times "
                "faster, and C means the same as elsewhere; scale X, for instance by StandardScaler"
            )
            warn_user(message, FeatureScaleWarning)
        return LinearSpace(np.column_stack([X, np.ones(len(X), dtype=X.dtype)]), candidates.n_labels)

    def _precomputed(self):
        return isinstance(self.kernels, str)

    def _stacks(self, X):
        return once_or_each("X", X, self.n_attributes_, lambda X: not is_listing(X))

    def _kernel_space(self, X, candidates):
        if self._precomputed():
            pairs = [(stack, None) for stack in self._stacks(X)]
        else:
            refuse_kernels(X)
            lists = once_or_each("kernels", self.kernels, self.n_attributes_, is_one_list)
            X = as_samples(X)
            validate_samples(self, X, used=lambda: sum(map(check_kernels, lists), []), dtype=FLOATS)
            pairs = [(X, kernels) for kernels in lists]
        shared = {}
        banks = []
        for X, kernels in pairs:
            key = id(X), id(kernels)
            if key not in shared and kernels is None:
                shared[key] = training_bank(X, self.memory)
            elif key not in shared:
                shared[key] = KernelBank(kernels, X, memory=self.memory)
            banks.append(shared[key])
        for bank in banks:
            check_candidates(candidates, bank.n_samples)
        if self._precomputed():
            self.n_features_in_ = banks[0].n_samples
        else:
            self.banks_ = banks
        self.kernel_weights_: np.ndarray | Any = self._one([mean_weights(bank) for bank in banks])
        return KernelSpace(banks, candidates.n_labels, self.memory)

    def _keep(self, space):
        if isinstance(space, LinearSpace):
            weights = [space.weights[columns] for columns in space.columns]
            self.coef_: np.ndarray | Any = self._one([w[:, :-1].copy() for w in weights])
            self.intercept_: np.ndarray | Any = self._one([w[:, -1].copy() for w in weights])
            return
        self.support_: np.ndarray = np.flatnonzero(space.weights.any(axis=1))
        self.dual_coef_ = self._one([space.weights[self.support_, columns] for columns in space.columns])
        self.bank_support_ = self.support_

    def _scores(self, X):
        if self.kernels is None:
            X = validate_data(self, X, dtype=FLOATS, reset=False)
            return self._linear_scores(X)
        if self._precomputed():
            given = self._stacks(X)
        else:
            given = self.banks_
            X = as_samples(X)
            options = {"reset": False, "skip_check_array": hasattr(X, "iloc"), "dtype": FLOATS}
            validate_samples(self, X, used=lambda: sum((b.triples for b in given), []), **options)
        coefs = self._list(self.dual_coef_)
        weights = self._list(self.kernel_weights_)
        scores = []
        for kernels, coef, w in zip(given, coefs, weights, strict=True):
            if isinstance(kernels, KernelStack):
                cross = checked_cross(kernels.cross(), len(w), self.n_features_in_)
                part = combined_scores(cross.select(np.arange(len(w)), self.support_), coef, w)
            elif self._precomputed():
                K = new_kernels(kernels, len(w), self.n_features_in_)
                part = combine(K[:, :, self.support_], w, np.float64) @ coef
            else:
                part = combined_scores(kernels.cross(X, support=self.bank_support_), coef, w)
            scores.append(part + coef.sum(axis=0))  # the constant feature
        return scores

    def summary(self) -> pd.DataFrame:
        """Contribution of each kernel, as in `cuelearn.mkl`, for one attribute after another."""
        check_is_fitted(self, "classes_")
        if self.kernels is None:
            raise ValueError("summary needs kernels; this MMS is linear")
        coefs = self._list(self.dual_coef_)
        tables = []
        for p, (coef, weights) in enumerate(zip(coefs, self._list(self.kernel_weights_), strict=True)):
            names = [f"k{j}" for j in range(len(weights))]
            norms = np.full(len(weights), np.nan)
            if not self._precomputed():
                bank = self.banks_[p]
                forms = quadratic_forms(bank, coef, self.bank_support_)
                names = bank.names
                norms = weights * np.sqrt(forms.sum(axis=1))
            table = kernel_summary(names, weights[None], norms, len(coef))
            tables.append(table if len(coefs) == 1 else table.assign(attribute=p))
        return pd.concat(tables, ignore_index=True)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed()
        return tags

    def _score_ones(self):
        if not self._precomputed():
            return super()._score_ones()
        weights = self._list(self.kernel_weights_)
        return self._one(self._scores([np.ones((len(w), 1, self.n_features_in_)) for w in weights]))

    def _saved_parameters(self):
        parameters = super()._saved_parameters()
        if hasattr(self, "banks_"):  # scales and columns resolved by `fit`
            parameters["kernels"] = [bank.triples for bank in self.banks_]
        return parameters

    def _fitted_state(self):
        state = super()._fitted_state()
        if hasattr(self, "banks_"):
            support = self.bank_support_
            if self.support_.size == 0:
                support = [0]
            state["banks_"] = [bank.restrict(support, resident=False) for bank in self.banks_]
            state["bank_support_"] = np.arange(len(self.support_))
        return state
