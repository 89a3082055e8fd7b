"""GMM (Berg et al. 2004; thesis 5.7.3)."""

import math
from numbers import Integral, Real

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from sklearn.decomposition import PCA

from cuelearn.core.estimator import COUNT, POSITIVE, Number, parameters
from cuelearn.expect import expect
from cuelearn.mms.candidates import once_or_each
from cuelearn.mms.em import NO_MASS, EMNaming, documented_naming

__all__ = ["GMMNaming"]


def log_densities(X, means, covariance):
    """log p(x | label) of Gaussians with one covariance, shape (n, n_labels)."""
    root = cholesky(covariance, lower=True)
    X, means = (solve_triangular(root, part.T, lower=True).T for part in (X, means))
    log_det = 2.0 * np.log(np.diag(root)).sum()
    distance = X**2 @ np.ones_like(means).T - 2.0 * (X @ means.T) + (means**2).sum(axis=1)
    return -0.5 * (np.maximum(distance, 0.0) + log_det + X.shape[1] * math.log(2.0 * math.pi))


def moments(X, weights):
    weights = (weights * (len(X) / weights.sum()))[:, None]
    mean = (weights * X).mean(axis=0)
    return mean, (weights * (X - mean) ** 2).mean(axis=0)


class GaussianModel:
    """Appearance model of one attribute; `strength` is `regularization`."""

    def __init__(self, X, n_labels, strength, weights):
        self.X = X
        self.strength = strength
        mean, variance = moments(X, weights)
        typical = float(variance.mean())
        self.spread = np.maximum(variance, 1e-6 * typical) if typical > 0.0 else np.ones(X.shape[1])
        self.means = np.zeros((n_labels, X.shape[1])) + mean

    def update(self, responsibilities):
        """The M-step."""
        X = self.X
        mass = responsibilities.sum(axis=0)
        sums = responsibilities.T @ X
        taken = mass > NO_MASS
        means = np.where(taken[:, None], sums / np.where(taken, mass, 1.0)[:, None], self.means)
        rest = means.T @ sums
        scatter = (X.T * responsibilities.sum(axis=1)) @ X - rest - rest.T + (means.T * mass) @ means
        scatter = 0.5 * (scatter + scatter.T) + self.strength * np.diag(self.spread)
        count = mass.cumsum()[-1] + self.strength
        self.means = means
        self.covariance = scatter / count

    def scores(self):
        return log_densities(self.X, self.means, self.covariance)

    def log_prior(self):
        """Log-density of the covariance, up to a constant."""
        root = cholesky(self.covariance, lower=True)
        inverse = solve_triangular(root, np.diag(np.sqrt(self.spread)), lower=True)
        return -0.5 * self.strength * (2.0 * np.log(np.diag(root)).sum() + np.sum(inverse**2))


@documented_naming
@parameters
class GMMNaming(EMNaming):
    r"""GMM: a Gaussian for every label including null, fitted by EM over the candidate labelings.

    .. math::
        \max_{\mu, \Sigma} \; \sum_i \log \sum_{Z \in \mathcal Z_i} p(Z)
        \prod_{m, p} N\bigl(x_{i,m}^{(p)}; \mu_{z}, \Sigma\bigr) + \log p(\Sigma), \qquad z = z_m^{(p)}

    All labels share a covariance. EM starts from all candidates with their priors; nothing is random.
    `decision_function` is the logarithm of a label's probability, -inf if no instance took it.

    Parameters
    ----------
    n_components_pca : float in (0, 1), int >= 1 or None, or a sequence with one per attribute; default 0.95
        Project on principal components first: the share of variance to keep, or their number.
    regularization : float > 0, default 1
        The covariance's prior counts as this many instances with the variances of the whole data.
    $assignment $columns $max_iter $tol $random_state

    Attributes
    ----------
    $classes_ $assignment_ $responsibilities_ $label_weights_
    means_, covariances_ : list with one per attribute
        Shapes (n_labels, d) and (1, d, d), after the projection. A label that no instance takes keeps its
        mean, or has the overall mean if it is in no candidate.
    history_ : DataFrame
        step, seconds, log_likelihood, objective (with the prior's logarithm). The objective never falls.
    $converged_ $n_iter_

    Notes
    -----
    An iteration costs O((n + K) d^2 + n K d + d^3), and the E-step O(number of candidates times their
    length), or O(M W 2^W) for a `Matching`.

    Berg et al. first project faces by kernel PCA and linear discriminants and fix the covariance, which is
    estimated here. As in the thesis their language model is left out; `CandidateSet` takes such weights as
    `priors`.

    References
    ----------
    Berg, Berg, Edwards, Forsyth: Who's in the Picture, NIPS 2004, section 2.3; thesis section 5.7.3, "GMM".

    Examples
    --------
    >>> import numpy as np
    >>> from cuelearn.mms import CandidateSet, GMMNaming
    >>> X = np.array([[0.0], [5.0], [0.1], [5.1], [0.2]])
    >>> either = [[0, 1], [1, 0]]
    >>> GMMNaming().fit(X, CandidateSet([either, either, [[0]]])).assignment_
    array([0, 1, 0, 1, 0])
    """

    _parameter_constraints = {
        **EMNaming._parameter_constraints,
        "n_components_pca": [*COUNT, Number(Real, 0, 1, closed="neither"), list, tuple, None],
        "regularization": POSITIVE,
    }

    n_components_pca: object = 0.95
    regularization: float = 1.0

    def _models(self, parts, candidates, weights):
        P = len(parts)
        given = self.n_components_pca
        numbers = once_or_each("n_components_pca", given, P, lambda n: n is None or np.isscalar(n))
        self.projections_ = [projection(part, k, weights) for part, k in zip(parts, numbers, strict=True)]
        pairs = zip(self._projected(parts), candidates.n_labels, strict=True)
        return [GaussianModel(X, size, float(self.regularization), weights) for X, size in pairs]

    def _projected(self, parts):
        projected = []
        for part, (mean, axes) in zip(parts, self.projections_, strict=True):
            centred = np.asarray(part, dtype=np.float64) - mean
            projected.append(centred if axes is None else centred @ axes)
        return projected

    def _finish(self, models, shares):
        self.means_ = [model.means for model in models]
        self.covariances_ = [model.covariance[None] for model in models]

    def _appearance(self, parts):
        fitted = zip(self.means_, self.covariances_, self._projected(parts), strict=True)
        return [log_densities(X, means, covariances[0]) for means, covariances, X in fitted]


def projection(part, number, weights):
    """Weighted mean and principal components (d, r), or None."""
    part = np.asarray(part, dtype=np.float64)
    mean, variance = moments(part, weights)
    share = isinstance(number, Real) and not isinstance(number, Integral) and 0.0 < number < 1.0
    if number is None or (share and not np.any(variance > 0.0)):
        return mean, None
    if not share:
        expect("n_components_pca", number, kind="whole", low=1, high=min(part.shape))
    solver = "full"
    if part.shape[0] > part.shape[1]:
        solver = "covariance_eigh"
    pca = PCA(n_components=float(number) if share else int(number), svd_solver=solver)
    if np.all(weights == weights[0]):
        return mean, pca.fit(part).components_.T
    rows = np.sqrt(weights)[:, None] * (part - mean)
    return mean, pca.fit(np.vstack([rows, -rows])).components_.T  # both signs: their mean is 0
