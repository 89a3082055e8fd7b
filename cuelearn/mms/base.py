"""Base of estimators that learn from bags."""

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from cuelearn.core.checks import FLOATS
from cuelearn.core.estimator import Estimator
from cuelearn.core.weights import check_sample_weight
from cuelearn.mms.candidates import CandidateSet, check_bag_weights, check_candidates, named
from cuelearn.mms.inference import best_labelings

__all__ = ["BagClassifier"]


class BagClassifier(Estimator):
    """Base; subclasses have `classes_`, `n_attributes_` and ``_scores(X)``, one matrix per attribute."""

    def _one(self, values):
        """The list, or its entry for a single attribute."""
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

    def decision_function(self, X):
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

    def predict(self, X, candidates=None):
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
        scores = self._possible(self._scores(X))
        return named(np.stack([np.argmax(s, axis=1) for s in scores], axis=1), classes)

    def score(self, X, y, candidates=None, sample_weight=None):
        """Share of labels predicted correctly.

        Parameters
        ----------
        X : as in `decision_function`
        y : array-like of names in `classes_`, shaped as the result of `predict`; or CandidateSet
            The truth. For a CandidateSet the score is 1 minus the mean ambiguous loss, i.e. against the
            nearest candidates (Cour, Sapp, Taskar: Learning from partial labels, JMLR 2011, bound the true
            error by it).
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
        if y.shape != predicted.shape:
            raise ValueError(f"y must have shape {predicted.shape}, got {y.shape}")
        weights = check_sample_weight(sample_weight, len(y))
        right = (predicted == y).reshape(len(y), -1)
        if weights is not None:
            weights = np.repeat(weights[:, None], right.shape[1], axis=1)
        return float(np.average(right, weights=weights))

    def _agreement(self, X, y, candidates, sample_weight):
        check_is_fitted(self, "classes_")
        if candidates is None:
            scores = self._possible(self._scores(X))
            numbers = np.stack([np.argmax(s, axis=1) for s in scores], axis=1)
        else:
            numbers = self._within(X, candidates)
        check_candidates(y, len(numbers), self._list(self.classes_))
        ends = zip(y.bag_starts[:-1], y.bag_starts[1:], strict=True)
        losses = [y.loss(i, numbers[start:end]) for i, (start, end) in enumerate(ends)]
        weights = check_bag_weights(sample_weight, y)
        if weights is None:
            weights = np.ones(y.n_bags, dtype=int)
        slots = numbers.shape[1] * np.diff(y.bag_starts)
        return float(1.0 - weights @ losses / (weights @ slots))
