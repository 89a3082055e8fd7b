r"""Base of the transfer learners: kernels on the new samples, scores of priors, prediction, saving.

All score a sample by equation 6.1 of the thesis in kernel form,

.. math:: s(x, y) = \sum_j \alpha_j \sum_i A_{iy}\, k_j(x_i, x) + \sum_z v_{yz}\, s_p(x, z) / c_z + b_y .
"""

import copy
import functools
from dataclasses import field

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from cuelearn.core import docs
from cuelearn.core.estimator import StrOptions, parameters, validated
from cuelearn.kernels import CrossBank
from cuelearn.kernels.definite import one_warning
from cuelearn.kernels.specifications import check_samples
from cuelearn.mkl.base import KernelClassifier, two_columns
from cuelearn.mktl.priors import PriorScores, given_scores

__all__ = ["TransferClassifier", "documented"]

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

    kernels: object = field(default=None, kw_only=False)
    priors: object = field(default=None, kw_only=False)
    C: float = 1.0
    class_weight: object = None
    scaling: object = "rms"
    normalize: bool = True

    memory = 2e9
    _uses_kernels = True

    @docs.documented
    @validated
    def fit(self, X, y, scores=None, sample_weight=None):
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

    def _begin(self, X, y, scores, sample_weight):
        """Class numbers, scaled scores of the training samples, sample weights."""
        for name in ("feature_names_in_", "n_features_in_"):
            vars(self).pop(name, None)
        labels, sample_weight = self._start(X, y, sample_weight)
        if self._is_precomputed():
            if self.priors is not None and len(self.priors):
                raise ValueError("priors need X: with kernels='precomputed' pass their scores as scores=")
            of_priors = np.zeros((labels.size, 0))
            names = []
            self._priors = None
        else:
            self._priors = self._prior_scores(self.priors)
            samples = check_samples(X)[0]
            of_priors = self._priors.columns(samples)
            self._priors.warn_of_shared_samples(samples)
            names = self._priors.names
        given, given_names = given_scores(scores, labels.size)
        self._n_given = given.shape[1]
        self.prior_names_ = [*names, *given_names]
        for i, name in enumerate(given_names):
            if name in self.prior_names_[: len(names) + i]:
                raise ValueError(f"scores must have unique names, got {name!r} twice")
        values = np.concatenate([of_priors, given], axis=1)
        self.score_scale_ = self._scale_of(values, sample_weight)
        vars(self).pop("intercept_", None)
        return labels, np.ascontiguousarray(values / self.score_scale_), sample_weight

    def _prior_scores(self, priors):
        return PriorScores(priors, self.n_features_in_, getattr(self, "feature_names_in_", None))

    def _scale_of(self, values, sample_weight):
        """Divisors; 1 for columns of zeros."""
        if sample_weight is not None:
            values = values[sample_weight > 0.0]
            sample_weight = sample_weight[sample_weight > 0.0]
        if self.scaling is None or values.shape[1] == 0:
            return np.ones(values.shape[1])
        largest = np.abs(values).max(axis=0)
        usable = np.where(largest > 0.0, largest, 1.0)
        if self.scaling == "max":
            return usable
        mean_square = np.average((values / usable) ** 2, axis=0, weights=sample_weight)
        return usable * np.sqrt(np.where(largest > 0.0, mean_square, 1.0))

    def _set(self, dual_coef, kernel_weights, transfer_weights, intercept=None):
        """Set the fitted attributes; one decision value for two classes is halved."""
        if dual_coef.shape[1] < self.classes_.size:
            dual_coef = two_columns(dual_coef)
            intercept = two_columns(intercept)
            transfer_weights = two_columns(transfer_weights, axis=0)
        self._keep(dual_coef, kernel_weights)
        self.transfer_weights_ = transfer_weights
        if intercept is not None:
            self.intercept_ = np.asarray(intercept, dtype=np.float64)

    def _scores_on(self, X, scores, n_rows):
        n_all = len(self.prior_names_)
        if n_all == self._n_given or self._priors is None:
            return given_scores(scores, n_rows, n_all)[0] / self.score_scale_
        if isinstance(X, CrossBank):
            raise ValueError("X must be samples, not a CrossBank, if priors score them")
        own = self._priors.columns(X)
        given, _ = given_scores(scores, n_rows, self._n_given)
        return np.concatenate([own, given], axis=1) / self.score_scale_

    def attach(self, priors):
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
        if self._is_precomputed():
            raise ValueError(
                "priors need X, but this model has precomputed kernels: pass their scores as scores="
            )
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

    def decision_function(self, X, scores=None):
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

    def predict(self, X, scores=None):
        """Class with the largest score, the first on ties; arguments as in `decision_function`."""
        return self._classes_of(self._class_scores(X, scores))

    def score(self, X, y, sample_weight=None, scores=None):
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
