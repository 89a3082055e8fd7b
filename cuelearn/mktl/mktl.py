r"""MKTL: multi kernel transfer learning (thesis chapter 6)."""

import numbers
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from cuelearn.core.checks import as_generator, check_count, check_non_negative, check_positive
from cuelearn.core.groupnorm import resolve_p
from cuelearn.mkl.dual import ROUNDS, finish_dual
from cuelearn.mkl.obscure import solve_obscure
from cuelearn.mkl.training import Result
from cuelearn.mktl.base import TransferClassifier, class_weights, sample_weights
from cuelearn.mktl.problem import TransferProblem

__all__ = ["MKTL", "P_RANGE", "solve_mktl"]

#: Exponents that the thesis chooses from (6.5).
P_RANGE = (1.01, 1.05, 1.10, 1.15, 1.20, 1.25, 1.30, 1.40, 1.50)


def solve_mktl(
    problem, *, tol=1e-3, finish=True, max_rounds=ROUNDS, n_epochs_online=5, n_epochs=50, **options
):
    r"""Solve a transfer problem: OBSCURE, then, where that leaves a gap, ascent in the dual.

    Parameters
    ----------
    problem : TransferProblem
    tol : float or None
        Relative duality gap to reach; None runs OBSCURE's epochs and no more.
    finish : bool
        Whether the dual ascent may follow.
    max_rounds : int
        Most rounds of the dual ascent.
    n_epochs_online, n_epochs, **options
        See `solve_obscure`.

    Returns
    -------
    Result
        `kernel_weights` holds the weights of all groups: kernels, then class by class. `extra["radius"]` as for OBSCURE.

    Warns
    -----
    ConvergenceWarning
        Where `tol` is missed.
    """
    tol = None if tol is None else check_non_negative("tol", tol)
    will_finish = finish and tol is not None
    with warnings.catch_warnings():
        if will_finish:  # that OBSCURE ends above the tolerance is what the ascent is for
            warnings.simplefilter("ignore", ConvergenceWarning)
        result = solve_obscure(
            problem, n_epochs_online=n_epochs_online, n_epochs=n_epochs, tol=tol, scores="maintain", **options
        )
    if not will_finish or result.extra["stopped"] or (result.converged and n_epochs):
        return result
    return _finished(problem, result, tol, max_rounds)


def _finished(problem, result, tol, max_rounds):
    """The result after the dual ascent, with its rounds in the history."""
    began, rows = time.perf_counter(), []
    before = 0.0 if result.history.empty else float(result.history["seconds"].iloc[-1])

    def record(number, objective, gap):
        rows.append(
            {
                "stage": "dual",
                "step": np.nan,
                "epoch": number,
                "seconds": before + time.perf_counter() - began,
                "objective": objective,
                "dual_gap": gap,
            }
        )

    n = problem.bank.n_samples
    B = result.dual_coef * (problem.regularization * n / problem.q)
    coef, weights, objective, gap, steps = finish_dual(
        problem, B, tol=tol, max_rounds=max_rounds, record=record
    )
    converged = gap <= tol * max(objective, np.finfo(float).tiny)
    if not converged:
        warnings.warn(
            f"MKTL did not reach tol={tol:g}: the relative duality gap is {gap / max(objective, np.finfo(float).tiny):.2g} after "
            f"{len(rows)} rounds of dual ascent; raise tol",
            ConvergenceWarning,
            stacklevel=3,
        )
    history = (
        pd.concat([result.history, pd.DataFrame(rows)], ignore_index=True)
        if len(result.history)
        else pd.DataFrame(rows)
    )
    extra = {**result.extra, "n_steps_dual": steps, "n_rounds_dual": len(rows)}
    return Result(
        coef,
        weights,
        history,
        objective,
        gap,
        result.n_iter,
        result.n_updates,
        converged,
        result.online_errors,
        problem.block_norms_sq(coef),
        extra,
    )


class MKTL(TransferClassifier):
    r"""Multi kernel transfer learning: new classes from few samples and from whatever scores of other models there are.

    .. math::

        \min_{\bar w} \frac\lambda2 \|\bar w\|_{2,p}^2 + \frac1n \sum_i c_i\, \ell(\bar w; x_i, y_i), \qquad
        s(x, y) = w^0_y \cdot \phi(x) + \sum_{z=1}^{K} w_{yz}\, s_p(x, z), \qquad \lambda = \frac1{Cn}

    Every pair of a new class y and a prior score z is a group of its own, beside the kernels on the new samples, so the group norm
    decides for each new class from where to transfer and how much. OBSCURE solves the problem; with p near 1 few groups are used.

    Parameters
    ----------
    kernels : list of (name, kernel, columns), "precomputed" or None
        On the new samples, see `cuelearn.mkl.OM2`; None is one RBF on all columns. Several kernels are several groups.
    priors : list of (name, prior) or (name, prior, columns), or None
        What is known already. A prior is a fitted estimator with `decision_function` (or else `predict_proba`), of any kind, trained
        on any features, or the word "passthrough": the columns are scores themselves. `columns` of X are its features (all by
        default). More scores can be given to `fit` and `predict` as plain numbers. All columns of X have to be finite numbers, those that
        only priors read too. A clone keeps its priors as they are; in a parameter grid, which clones the values, wrap them in
        `sklearn.frozen.FrozenEstimator`.
    p : float in (1, 2], "auto", "auto-priors", "cv" or sequence of floats, default "auto"
        "auto" is q = 2 ln F, with F all groups (section 6.3); "auto-priors" takes the number of prior scores, as section 6.5.2
        prints; "cv" chooses from `P_RANGE` by the accuracy in cross-validation, a sequence from itself. The scales of scores and the
        width of kernels are those of all training samples.
    C : float > 0, default 1.0
    class_weight : None, "positive", "balanced" or dict, default None
        Weight of the losses of a class. "positive" is the thesis's weighting of two classes, N-/N+ for the second in sorted order
        and 1 for the other; "balanced" as in scikit-learn.
    loss : {"auto", "multiclass", "hinge"}, default "auto"
        The hinge loss is for two classes, which then share their score groups: F = F0 + K, otherwise F0 + M K. "auto" takes it
        for two classes.
    scaling : {"rms", "max", None}, default "rms"
        Scores are divided by their root mean square on the training samples, so that each score kernel has mean diagonal 1 like
        normalised kernels and the norm does not prefer priors that shout; "max" by the largest absolute value; None takes them as
        they are, as the thesis prints.
    tol : float or None, default 1e-3
        Relative duality gap to reach.
    finish : bool, default True
        Follow OBSCURE by ascent in the dual until `tol` is reached. False is plain OBSCURE, which warns where it is not.
    n_epochs : int, default 20
        Epochs of OBSCURE's batch stage; more of them do not shorten the ascent after it.
    n_epochs_online, eta, radius, measure, shuffle, sampling, normalize, memory, random_state, callback, verbose
        See `cuelearn.mkl.OBSCURE`. `radius` bounds OBSCURE's stages, not the ascent, whose norm is the optimum's; the callback sees
        OBSCURE's epochs and may end the run there.
    cv : int, default 5
        Stratified folds for choosing p; fewer where a class has fewer samples, at least 2.

    Attributes
    ----------
    classes_, dual_coef_, support_, kernel_weights_, n_updates_, history_, objective_, dual_gap_, online_errors_, n_iter_
        As for OBSCURE; `kernel_weights_` of the kernels only. Rows of the history with stage "dual" are the ascent's.
    transfer_weights_ : ndarray, shape (n_classes, K)
        :math:`w_{yz}` for the scaled scores: from where is transferred to which class, and how much. Under the hinge loss the rows of
        the two classes are -w/2 and w/2.
    prior_names_ : list of str
        What its columns stand for.
    score_scale_ : ndarray, shape (K,)
    block_norms_ : ndarray, shape (F,)
        Primal norms of all groups: kernels first, then class by class.
    p_, q_ : float
    p_scores_ : dict
        Cross-validated accuracy of each p, where p was chosen.
    class_weight_ : dict
    radius_ : float
        OBSCURE's bound of the norm, as used.
    converged_ : bool

    Notes
    -----
    Cost: a visit O(M (F0 + K)), an update O(F0 n + F); 10 classes of 100 samples with 40 priors take 0.2 to 3 s, up to 10 s where C is
    large and p near 1. Memory for the scores: the n x K given ones, and O(M K) beside them; no kernel matrix of scores is made.

    Scikit-learn's searches and pipelines hand `scores` on to `fit` only with metadata routing:
    ``sklearn.set_config(enable_metadata_routing=True)``, ``model.set_fit_request(scores=True).set_score_request(scores=True)``. Scores
    that are columns of X ("passthrough") need none of that.

    Without priors the problem is that of `OBSCURE` on the kernels. As the regulariser may leave out every prior, useless priors
    cannot be worse than none in the objective; on new samples they can, see the chapter's notebook.

    References
    ----------
    Thesis chapter 6, equations 6.1 and 6.2, section 6.3; Algorithm 5. Jie, Tommasi, Caputo, ICCV 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from cuelearn.mktl import MKTL
    >>> X, y = load_iris(return_X_y=True)
    >>> known = SVC().fit(X[y < 2][:, :2], y[y < 2])  # setosa from versicolor, by their sepals
    >>> new = np.r_[0:5, 50:55, 100:105]
    >>> model = MKTL(priors=[("sepals", known, [0, 1])], C=10, random_state=0).fit(X[new], y[new])
    >>> model.transfer_weights_.shape, model.prior_names_
    ((3, 1), ['sepals'])
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        kernels=None,
        priors=None,
        *,
        p="auto",
        C=1.0,
        class_weight=None,
        loss="auto",
        scaling="rms",
        n_epochs_online=5,
        n_epochs=20,
        eta=0.5,
        radius="capped",
        tol=1e-3,
        finish=True,
        measure="auto",
        shuffle=True,
        sampling="permutation",
        normalize=True,
        memory=2e9,
        cv=5,
        random_state=None,
        callback=None,
        verbose=True,
    ):
        self.kernels = kernels
        self.priors = priors
        self.p = p
        self.C = C
        self.class_weight = class_weight
        self.loss = loss
        self.scaling = scaling
        self.n_epochs_online = n_epochs_online
        self.n_epochs = n_epochs
        self.eta = eta
        self.radius = radius
        self.tol = tol
        self.finish = finish
        self.measure = measure
        self.shuffle = shuffle
        self.sampling = sampling
        self.normalize = normalize
        self.memory = memory
        self.cv = cv
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def _train(self, labels, scores):
        rng = as_generator(self.random_state)
        check_positive("C", self.C)
        self.class_weight_ = class_weights(self.class_weight, self.classes_, labels)
        p = self._chosen_p(labels, scores, rng)
        problem, result = self._solve(self.bank_, labels, scores, p, rng, self._watch())
        self._take(problem, result)

    def _solve(self, bank, labels, scores, p, rng, callback=None, verbose=None):
        n_classes = self.classes_.size
        weight = sample_weights(self.class_weight_, self.classes_, labels)
        loss = ("hinge" if n_classes == 2 else "multiclass") if self.loss == "auto" else self.loss
        problem = TransferProblem(
            bank,
            labels,
            n_classes,
            scores,
            p=p,
            C=self.C,
            loss=loss,
            sample_weight=None if np.all(weight == 1.0) else weight,
        )
        result = solve_mktl(
            problem,
            tol=self.tol,
            finish=self.finish,
            n_epochs_online=self.n_epochs_online,
            n_epochs=self.n_epochs,
            eta=self.eta,
            radius=self.radius,
            measure=self.measure,
            rng=rng,
            shuffle=self.shuffle,
            sampling=self.sampling,
            callback=callback,
            verbose=self.verbose if verbose is None else verbose,
        )
        return problem, result

    def _chosen_p(self, labels, scores, rng):
        """The exponent, by cross-validation where several are given; the largest of equally good ones."""
        tried = P_RANGE if isinstance(self.p, str) and self.p == "cv" else self.p
        vars(self).pop("p_scores_", None)
        if isinstance(tried, (str, numbers.Real)) or not hasattr(tried, "__iter__"):
            return tried
        given = list(tried)
        tried = [resolve_p(p, 1)[0] for p in given]
        if not tried:
            raise ValueError("p must hold at least one exponent to choose from, got an empty sequence")
        if any(isinstance(p, str) for p in given):
            raise ValueError(f"p must be one word or a sequence of numbers in (1, 2], got {self.p!r}")
        smallest = int(np.bincount(labels).min())
        if smallest < 2:
            raise ValueError(
                "y must hold at least 2 samples of every class to choose p by cross-validation; give one p or 'auto'"
            )
        folds = StratifiedKFold(
            min(check_count("cv", self.cv, 2), smallest),
            shuffle=True,
            random_state=int(rng.integers(2**31 - 1)),
        )
        accuracy = dict.fromkeys(tried, 0.0)
        for train, test in folds.split(labels, labels):
            bank, cross = self.bank_.restrict(train), self.bank_.rows(test)[:, :, train]
            for p in tried:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    problem, result = self._solve(
                        bank, labels[train], scores[train], p, np.random.default_rng(0), verbose=False
                    )
                of_kernels, of_scores = problem.split(result.kernel_weights)
                held = scores[test] @ (of_scores * problem.score_blocks(result.dual_coef)).T
                held += np.tensordot(of_kernels, cross, axes=1) @ result.dual_coef
                accuracy[p] += float(np.sum(np.argmax(held, axis=1) == labels[test])) / labels.size
        self.p_scores_ = accuracy
        return max(tried, key=lambda p: (accuracy[p], p))

    def _show(self, problem, coef, group_weights):
        of_kernels, of_scores = problem.split(group_weights)
        blocks = problem.factor * problem.score_blocks(coef)
        self._set(problem.factor * coef, of_kernels.copy(), of_scores * blocks)

    def _take(self, problem, result):
        self._show(problem, result.dual_coef, result.kernel_weights)
        self.block_norms_ = result.kernel_weights * np.sqrt(result.block_norms_sq)
        self.p_, self.q_ = problem.p, problem.q
        self.n_updates_, self.n_iter_ = result.n_updates, result.n_iter
        self.history_ = result.history
        self.objective_, self.dual_gap_ = result.objective, result.dual_gap
        self.online_errors_ = result.online_errors
        self.converged_ = result.converged
        self.radius_ = result.extra["radius"]
