r"""EM over candidate labelings: what the Gaussian mixture (GMM) and the distance-based model (DIST) of thesis
section 5.7 share.

Both hold that a bag's labeling is drawn from its candidates and that the labels then draw the appearances,

.. math:: p(\mathcal X_i \mid \mathcal Z_i)
    = \sum_{Z \in \mathcal Z_i} p(Z) \prod_m \prod_p p_p\bigl(x_m^{(p)} \mid z_m^{(p)}\bigr).

They differ in what a label's appearance model is: `gmm.Gaussians` or `dist.Exemplars`, which give the scores
:math:`\log p_p(x \mid k)` of the E-step and are updated from its responsibilities.
"""

import math
import time

import numpy as np
import pandas as pd
from numba import njit
from scipy.special import logsumexp
from sklearn.utils.validation import check_array

from cuelearn.core.estimator import NON_NEGATIVE, Estimator, StrOptions, validated
from cuelearn.mms.base import FLOATS, BagClassifier
from cuelearn.mms.candidates import check_candidates
from cuelearn.mms.inference import write_listed, write_words
from cuelearn.mms.matching import matching_best, matching_posterior, word_values

__all__ = ["EMNaming", "evenly_spaced", "once_or_each"]

#: Responsibilities that add up to less leave a label's appearance as it was.
NO_MASS = 1e-12


@njit(cache=True, nogil=True)
def listed_values(packed, i, scores, values):
    """Logarithm of weight times likelihood of the candidates of bag i into `values`; returns the number of
    the first largest."""
    first, P = packed.row[i], packed.n_attributes
    n_slots = (packed.row[i + 1] - first) * P
    best, at = 0, packed.start[i]
    for c in range(packed.count[i]):
        weight = packed.weight[packed.listed_start[i] + c]
        total = math.log(weight) if weight > 0.0 else -np.inf
        for s in range(n_slots):
            total += scores[first + s // P, packed.labels[at + s]]
        at += n_slots
        values[c] = total
        if total > values[best]:
            best = c
    return best


@njit(cache=True, nogil=True)
def expect(packed, scores, posterior):
    """The E-step: from log p(x | label), shape (n_instances, n_columns), the posterior probability of every
    label of every slot, given the candidates, into zeros of that shape; returns log sum_Z w(Z) p(X | Z) of
    every bag, with the candidates' weights w (1 for those of a `Matching`).
    """
    n_bags, P = packed.count.shape[0], packed.n_attributes
    totals, values = np.empty(n_bags), np.empty(max(1, packed.count.max()))
    for i in range(n_bags):
        first, last = packed.row[i], packed.row[i + 1]
        if packed.n_words[i] > 0:
            of_words = word_values(packed, i, scores[first:last])
            totals[i] = matching_posterior(packed, i, of_words, posterior[first:last])
            continue
        top, number = values[listed_values(packed, i, scores, values)], 0.0
        for c in range(packed.count[i]):
            values[c] = math.exp(values[c] - top)
            number += values[c]
        totals[i] = top + math.log(number)
        n_slots, at = (last - first) * P, packed.start[i]
        for c in range(packed.count[i]):
            share = values[c] / number
            for s in range(n_slots):
                posterior[first + s // P, packed.labels[at + s]] += share
            at += n_slots
    return totals


@njit(cache=True, nogil=True)
def choose(packed, scores, columns):
    """Write the first best candidate of every bag, as columns (n_instances, n_attributes); returns
    max_Z log w(Z) p(X | Z) of every bag."""
    n_bags, P = packed.count.shape[0], packed.n_attributes
    totals, values = np.empty(n_bags), np.empty(max(1, packed.count.max()))
    labels = columns.reshape(-1)
    for i in range(n_bags):
        first, last = packed.row[i], packed.row[i + 1]
        own = labels[first * P : last * P]
        if packed.n_words[i] > 0:
            totals[i], words = matching_best(packed, i, word_values(packed, i, scores[first:last]))
            write_words(packed, i, words, own)
        else:
            best = listed_values(packed, i, scores, values)
            totals[i] = values[best]
            write_listed(packed, i, best, own)
    return totals


def log_weights(candidates):
    """Logarithm of the sum of the weights of each bag's candidates, shape (n_bags,)."""
    packed = candidates.packed
    out = np.array([math.log(number) for number in candidates.n_candidates])
    listed = np.flatnonzero(packed.count > 0)
    if listed.size:
        out[listed] = np.log(np.add.reduceat(packed.weight, packed.listed_start[listed]))
    return out


def once_or_each(name, value, P, once):
    """A parameter given once or once per attribute, as a list of P; `once` says what counts as given once."""
    values = [value] * P if once(value) else list(value) if hasattr(value, "__len__") else None
    if values is None or len(values) != P:
        raise ValueError(f"{name} must be given once or once for each of the {P} attributes, got {value!r}")
    return values


def is_one_choice(columns):
    """Whether these are columns of one attribute rather than a sequence of such."""
    if isinstance(columns, slice):
        return True
    return len(columns) > 0 and all(isinstance(c, (int, np.integer, np.bool_)) for c in columns)


def evenly_spaced(n, most):
    """Numbers below n, all of them or `most` evenly spaced."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(int)


class EMNaming(BagClassifier):
    """Base: the EM loop and the predictions.

    Subclasses implement ``_models(parts, candidates)``, one appearance model per attribute with
    ``update(responsibilities)``, ``scores()`` of the training instances and ``log_prior()``;
    ``_finish(models, responsibilities)``, which keeps what predictions need; and ``_appearance(parts)``, the
    scores of other instances.
    """

    _parameter_constraints = {
        **Estimator._parameter_constraints,
        "assignment": [StrOptions({"soft", "hard"})],
        "columns": [slice, list, tuple, np.ndarray, None],
        "tol": NON_NEGATIVE,
    }

    @validated
    def fit(self, X, candidates):
        """Estimate the appearance of every label and the labeling of every bag.

        Parameters
        ----------
        X : array-like, shape (n_instances, n_features), or list of n_attributes such arrays
            The instances of all bags in order; a list has an array of its own for each attribute (`columns`
            then chooses in each).
        candidates : CandidateSet
            A single mode is that of one attribute, ``candidates.attribute(p)``.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If `candidates` is not a CandidateSet.
        ValueError
            If rows, columns or parameters do not fit, or X is not finite.
        """
        begun = time.perf_counter()
        check_candidates(candidates)
        n, P = candidates.n_instances, candidates.n_attributes
        self.n_attributes_ = P
        parts = self._parts(X, candidates)
        packed, hard = candidates.packed, self.assignment == "hard"
        first = packed.column
        log_size, columns = log_weights(candidates), np.empty((n, P), dtype=np.int64)

        def e_step(scores, hard):
            """Responsibilities of each attribute's labels, and the log-likelihood."""
            posterior = np.zeros((n, first[-1]))
            if hard:
                totals = choose(packed, scores, columns)
                posterior[np.arange(n)[:, None], columns] = 1.0
            else:
                totals = expect(packed, scores, posterior)
            shares = [posterior[:, first[p] : first[p + 1]] for p in range(P)]
            return shares, float(np.sum(totals - log_size))

        models = self._models(parts, candidates)
        shares, _ = e_step(np.zeros((n, first[-1])), False)  # by the priors alone
        history, self.converged_ = [], False
        for iteration in range(self.max_iter + 1):
            for model, share in zip(models, shares, strict=True):
                model.update(share)
            scores = np.hstack([model.scores() for model in models])
            shares, likelihood = e_step(scores, hard)
            objective = likelihood + sum(model.log_prior() for model in models)
            history.append((iteration, likelihood, objective, time.perf_counter() - begun))
            if iteration > 0 and objective - history[-2][2] <= self.tol * max(1.0, abs(objective)):
                self.converged_ = True
                break
        choose(packed, scores, columns)
        self.classes_ = self._one(list(candidates.classes))
        self.null_ = candidates.null
        self.n_features_ = tuple(part.shape[1] for part in parts)
        self.assignment_ = candidates.named(columns - first[:-1])
        self.responsibilities_ = self._one(shares)
        self.label_weights_ = self._one([share.mean(axis=0) for share in shares])
        self.history_ = pd.DataFrame(history, columns=["iteration", "log_likelihood", "objective", "seconds"])
        self.n_iter_ = len(history) - 1
        self._finish(models, shares)
        return self

    def _parts(self, X, candidates=None):
        """The columns of each attribute: list of P arrays."""
        P = self.n_attributes_
        matrices = (
            isinstance(X, (list, tuple)) and len(X) > 0 and all(getattr(part, "ndim", 0) == 2 for part in X)
        )
        if matrices and len(X) != P:
            raise ValueError(
                f"X must be one array or a list of {P}, one for each attribute, got a list of {len(X)}"
            )
        names = [f"X[{p}]" for p in range(P)] if matrices else ["X"]
        arrays = [
            check_array(part, dtype=FLOATS, input_name=name)
            for name, part in zip(names, X if matrices else [X], strict=True)
        ]
        for name, array in zip(names, arrays, strict=True):
            if candidates is not None:
                check_candidates(candidates, len(array), name=name)
            elif len(array) != len(arrays[0]):
                raise ValueError(f"{name} must have as many rows as X[0], {len(arrays[0])}, got {len(array)}")
        arrays = arrays if matrices else arrays * P
        if self.columns is None:
            return arrays
        chosen = []
        for array, columns in zip(
            arrays, once_or_each("columns", self.columns, P, is_one_choice), strict=True
        ):
            try:
                part = array[:, columns if isinstance(columns, slice) else np.asarray(columns)]
            except (IndexError, TypeError):
                part = array[:, :0]
            if part.ndim != 2 or part.shape[1] == 0:
                have = f"the {array.shape[1]} columns of X for each attribute"
                raise ValueError(f"columns must choose from {have}, got {columns!r}")
            chosen.append(part)
        return chosen

    def _new_parts(self, X, candidates=None):
        """`_parts` of other instances, with the widths of those of `fit`."""
        parts = self._parts(X, candidates)
        for part, width in zip(parts, self.n_features_, strict=True):
            if part.shape[1] != width:
                raise ValueError(
                    f"X must have {width} columns for an attribute, as in fit, got {part.shape[1]}"
                )
        return parts

    def _log_priors(self):
        """Logarithm of each label's share of the training instances, -inf where none takes it."""
        with np.errstate(divide="ignore"):
            return [np.log(weights) for weights in self._list(self.label_weights_)]

    def _scores(self, X):
        """Logarithm of the probability of every label."""
        appearances = self._calibrated(self._appearance(self._new_parts(X)))
        joints = [scores + prior for scores, prior in zip(appearances, self._log_priors(), strict=True)]
        return [joint - logsumexp(joint, axis=1, keepdims=True) for joint in joints]

    def _calibrated(self, scores):
        return scores

    def _within(self, X, candidates):
        parts = self._new_parts(X, candidates)
        columns = np.empty((candidates.n_instances, candidates.n_attributes), dtype=np.int64)
        choose(candidates.packed, np.hstack(self._appearance(parts)), columns)
        return columns - candidates.packed.column[:-1]
