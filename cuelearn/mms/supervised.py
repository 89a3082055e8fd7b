"""MC-SVM on true labels (thesis 5.6)."""

import numpy as np
from sklearn.utils.validation import validate_data

from cuelearn.core.checks import FLOATS, classes_and_labels, labels_of
from cuelearn.core.docs import documented
from cuelearn.core.estimator import COUNT, POSITIVE, StrOptions, parameters, validated
from cuelearn.core.weights import check_sample_weight, loss_weights
from cuelearn.mms.base import BagClassifier
from cuelearn.mms.candidates import CandidateSet, check_bag_weights, check_candidates

__all__ = ["SupervisedSVM"]

# score of a label absent in training
NEVER = -1e9


@documented
@parameters
class SupervisedSVM(BagClassifier):
    """Linear multiclass SVM on true labels, by liblinear; its lead over `MMS` is the cost of candidate sets.

    Parameters
    ----------
    C : float > 0, default 1.0
        Weight of the sum of losses.
    multi_class : {"crammer_singer", "ovr"}, default "crammer_singer"
        One multiclass SVM (MC-SVM), or one-vs-all with the hinge loss (1vA-SVM).
    class_weight : None, "balanced" or dict, default None
        Weights of the classes' losses; "balanced" gives all classes the same total.
    tol : float > 0, default 1e-2
        Of liblinear's stopping rule.
    max_iter : int >= 1, default 500
    random_state : int or None, default 0
        Of liblinear's order of visits.

    Attributes
    ----------
    classes_ : ndarray
    coef_ : ndarray, shape (n_labels, n_features)
    intercept_ : ndarray, shape (n_labels,)
        -1e9 for labels absent in training.
    n_features_in_ : int

    References
    ----------
    Thesis 5.6; Crammer and Singer (2002); Fan et al., LIBLINEAR, JMLR 9 (2008).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cuelearn.mms import SupervisedSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> SupervisedSVM(C=1, max_iter=5000).fit(X, y).score(X, y) > 0.9
    True
    """

    _parameter_constraints = {
        "multi_class": [StrOptions({"crammer_singer", "ovr"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "tol": POSITIVE,
        "max_iter": COUNT,
    }

    C: float = 1.0
    multi_class: str = "crammer_singer"
    class_weight: object = None
    tol: float = 1e-2
    max_iter: int = 500
    random_state: object = 0

    @validated
    def fit(self, X, y, sample_weight=None):
        """Train.

        Parameters
        ----------
        X : array-like, shape (n, n_features)
        y : array-like, shape (n,), or a CandidateSet with one candidate per bag and one attribute
        sample_weight : array-like, shape (n,), or (n_bags,) with a CandidateSet; optional
            Factors on C of the samples or bags: 2 repeats one, 0 leaves it out.

        Returns
        -------
        self
        """
        from sklearn.svm import LinearSVC  # a slow import

        X = validate_data(self, X, dtype=FLOATS)
        labels = self._labels(y, len(X))
        if isinstance(y, CandidateSet):
            weights = check_bag_weights(sample_weight, y)
            if weights is not None:
                weights = weights[y.bag_of]
        else:
            weights = check_sample_weight(sample_weight, len(X))
        if weights is not None:
            kept = weights > 0.0
            X = X[kept]
            labels = labels[kept]
            weights = weights[kept]
        present, numbers = np.unique(labels, return_inverse=True)
        weights = loss_weights(weights, self.class_weight, self.classes_[present], numbers)
        options = {"loss": "hinge", "multi_class": self.multi_class, "tol": self.tol}
        svm = LinearSVC(C=self.C, max_iter=self.max_iter, random_state=self.random_state, **options)
        svm.fit(X, labels, sample_weight=weights)
        shown = svm.classes_
        coef = svm.coef_
        intercept = svm.intercept_
        if len(coef) == 1:  # two classes
            coef = np.concatenate([-coef, coef])
            intercept = np.concatenate([-intercept, intercept])
        self.coef_ = np.zeros((len(self.classes_), X.shape[1]))
        self.intercept_ = np.full(len(self.classes_), NEVER)
        self.coef_[shown] = coef
        self.intercept_[shown] = intercept
        return self

    def _labels(self, y, n_samples):
        self.n_attributes_ = 1
        if not isinstance(y, CandidateSet):
            self.classes_, labels = classes_and_labels(labels_of(self, y, n_samples))
            return labels
        check_candidates(y, n_samples)
        if max(y.n_candidates) > 1 or y.n_attributes > 1:
            raise ValueError("candidates must hold one candidate per bag, the true labeling")
        self.classes_ = y.classes[0]
        return np.concatenate([y.bag(i)[0, :, 0] for i in range(y.n_bags)])

    def _scores(self, X):
        return self._linear_scores(self._check_new(X))
