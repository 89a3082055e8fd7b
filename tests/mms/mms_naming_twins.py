"""Plain twins of the EM methods over candidate labelings: loops over bags, candidates, instances and labels.

A bag's candidates are a list of labelings, ``labeling[m][p]``; `weights` a list of their priors or None.
"""

import math

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal


def random_bags(rng, n_bags, n_labels, most=3, n_candidates=5):
    """Bags of 1 to `most` instances with 1 to `n_candidates` distinct labelings."""
    bags = []
    for _ in range(n_bags):
        size = int(rng.integers(1, most + 1))
        number = int(rng.integers(1, n_candidates + 1))
        found = {
            tuple(tuple(int(rng.integers(k)) for k in n_labels) for _ in range(size)) for _ in range(number)
        }
        bags.append(sorted(found))
    return bags


def expectation(bags, weights, log_p, hard):
    """Responsibilities, one (n, K) per attribute, and the log-likelihood; `log_p[p][i][k]`."""
    shares = [np.zeros(np.shape(table)) for table in log_p]
    total, first = 0.0, 0
    for b, bag in enumerate(bags):
        prior = [1.0] * len(bag) if weights is None or weights[b] is None else list(weights[b])
        values = []
        for labeling, weight in zip(bag, prior, strict=True):
            value = math.log(weight / sum(prior)) if weight > 0.0 else -math.inf
            for m, labels in enumerate(labeling):
                for p, k in enumerate(labels):
                    value += log_p[p][first + m][k]
            values.append(value)
        top = max(values)
        if hard:
            posterior = [1.0 if c == values.index(top) else 0.0 for c in range(len(bag))]
            total += top
        else:
            posterior = [math.exp(value - top) for value in values]
            total += top + math.log(sum(posterior))
            posterior = [value / sum(posterior) for value in posterior]
        for labeling, share in zip(bag, posterior, strict=True):
            for m, labels in enumerate(labeling):
                for p, k in enumerate(labels):
                    shares[p][first + m][k] += share
        first += len(bag[0])
    return shares, total


def best_candidates(bags, weights, log_p):
    shares, _ = expectation(bags, weights, log_p, hard=True)
    return np.stack([share.argmax(axis=1) for share in shares], axis=1)


def nothing_known(n, n_labels):
    return [np.zeros((n, K)) for K in n_labels]


def spread_of(X):
    variance = X.var(axis=0)
    typical = variance.mean()
    return np.maximum(variance, 1e-6 * typical) if typical > 0.0 else np.ones(X.shape[1])


def gaussians(X, R, means, strength):
    """New means (n_labels, d) and the covariance matrix (d, d)."""
    means = means.copy()
    scatter = strength * np.diag(spread_of(X))
    for k, shares in enumerate(R.T):
        if shares.sum() > 1e-12:
            means[k] = np.average(X, axis=0, weights=shares)
        differences = X - means[k]
        scatter = scatter + differences.T @ (shares[:, None] * differences)
    return means, scatter / (strength + R.sum())


def log_densities(X, means, covariance):
    return np.stack([multivariate_normal.logpdf(X, mean, covariance) for mean in means], axis=1)


def log_prior(X, covariance, strength):
    """Of the covariance, up to a constant."""
    inverse, (_, log_det) = np.linalg.inv(covariance), np.linalg.slogdet(covariance)
    return -0.5 * strength * (log_det + np.trace(inverse @ np.diag(spread_of(X))))


def gmm_em(Xs, bags, n_labels, *, strength, n_iter, hard, weights=None):
    """EM from all candidates: means, covariances, responsibilities, log-densities, both objectives."""
    Xs = [X - X.mean(axis=0) for X in Xs]
    shares, _ = expectation(bags, weights, nothing_known(len(Xs[0]), n_labels), hard=False)
    means = [np.zeros((K, X.shape[1])) for K, X in zip(n_labels, Xs, strict=True)]
    covariances = [None] * len(Xs)
    history = []
    for _ in range(n_iter + 1):
        for p, X in enumerate(Xs):
            means[p], covariances[p] = gaussians(X, shares[p], means[p], strength)
        log_p = [log_densities(X, m, c) for X, m, c in zip(Xs, means, covariances, strict=True)]
        shares, likelihood = expectation(bags, weights, log_p, hard)
        prior = sum(log_prior(X, c, strength) for X, c in zip(Xs, covariances, strict=True))
        history.append((likelihood, likelihood + prior))
    return means, covariances, shares, log_p, np.array(history)


def others(D):
    """Distances of training instances, each to all but itself."""
    return D[~np.eye(len(D), dtype=bool)].reshape(len(D), -1)


def scale_by_rule(D, rule):
    return others(D).mean() if rule == "mean" else 0.5 * others(D).std()


def null_scores(D, scale):
    """log of what distances to training instances say of null, for every row of D."""
    return logsumexp(-D / scale, axis=1) - np.log(D.shape[1])


def label_score(row, weights, scale, null, own=None):
    """log p(x | label) - log p(x | null) from the distances of x to exemplars; at place `own`, x itself, it
    is as near as null."""
    near = np.exp(-row / scale - null)
    if own is not None:
        near[own] = 1.0
    return math.log(max(weights @ near, 1e-300))


def exemplar_scores(D, W, scale, null, levels, own=True):
    out = np.zeros((len(D), W.shape[1]))
    for i in range(len(D)):
        for k in range(W.shape[1]):
            if k != null and W[:, k].sum() > 0.0:
                out[i, k] = label_score(D[i], W[:, k], scale, levels[i], i if own else None)
    return out


def dist_em(Ds, bags, n_labels, *, scales, nulls, n_iter, hard, weights=None):
    """Generalised EM; returns weights (n, K), responsibilities, scores, log-likelihoods, shortened steps."""
    n, P = len(Ds[0]), len(Ds)
    levels = [null_scores(others(D), scale) for D, scale in zip(Ds, scales, strict=True)]
    shares, _ = expectation(bags, weights, nothing_known(n, n_labels), hard=False)
    W = [np.zeros((n, K)) for K in n_labels]
    history, shortened = [], 0
    for _iteration in range(n_iter + 1):
        for p in range(P):
            for k in range(n_labels[p]):
                mine = shares[p][:, k]
                if k == nulls[p] or mine.sum() <= 1e-12:
                    continue
                goal = mine / mine.sum()
                if W[p][:, k].sum() > 0.0:

                    def expected(w, p=p, mine=mine):
                        total = 0.0
                        for i in np.flatnonzero(mine):
                            total += mine[i] * label_score(Ds[p][i], w, scales[p], levels[p][i], i)
                        return total

                    before = expected(W[p][:, k])
                    for halving in range(8):
                        step = 0.5**halving
                        mixed = (1.0 - step) * W[p][:, k] + step * goal
                        if expected(mixed) >= before - 1e-12 * abs(before):
                            W[p][:, k] = mixed
                            break
                    shortened += halving > 0
                else:
                    W[p][:, k] = goal
        scores = [exemplar_scores(Ds[p], W[p], scales[p], nulls[p], levels[p]) for p in range(P)]
        shares, likelihood = expectation(bags, weights, scores, hard)
        history.append(likelihood)
    return W, shares, scores, np.array(history), shortened
