"""Texts of shared constructor parameters and fitted attributes."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import TypeVar

#: name -> (type and range, text); defaults come from the constructor.
TEXTS = {
    "kernels": (
        'list of (name, kernel, columns), of kernels or of names, a kernel, "precomputed" or None',
        "Cues, as in ColumnTransformer; a kernel is one of `cuelearn.kernels`, a name in its `KERNELS`, or a "
        "function f(A, B) that returns the matrix; its grid parameter is ``kernels__<name>__gamma``. "
        'Kernels or names alone, as in ``["rbf", "linear"]``, use all columns, and so does None, one `RBF`; '
        'unused columns may hold anything. With "precomputed", X has shape (n_kernels, n, n). All but `MMS`, '
        "`OKS` and its variants take sparse X: `Linear`, `Poly`, `RBF` and Euclidean distances use it as it "
        "is, other kernels make up to 1,000 columns dense.",
    ),
    "p": (
        'float in (1, 2] or "auto"',
        'Group norm: near 1 selects few kernels, 2 weights all equally. "auto" is ``q = 2 ln F``.',
    ),
    "C": ("float > 0", "Weight of the losses, lambda = 1/(C n)."),
    "priors": (
        "list of (name, prior) or (name, prior, columns), or None",
        "Prior knowledge. A prior is a fitted estimator with `decision_function` (or else `predict_proba`), "
        'trained on any features, or "passthrough": the columns are scores. `columns` of X are its features '
        "(all by default). It must not be trained on the new samples, on which its scores would be too good. "
        "`fit` and `predict` also take scores as arrays. A clone keeps its priors; in a parameter grid wrap "
        "them in `sklearn.frozen.FrozenEstimator`.",
    ),
    "scaling": (
        '{"rms", "max", None}',
        "Divisor of scores on the training samples: their root mean square, so that each score kernel has "
        'mean diagonal 1 like normalised kernels; "max": the largest absolute value; None: no scaling, as in '
        "the thesis.",
    ),
    "n_epochs": ("int >= 1", "Passes over the data, each in a new order."),
    "tol": ("float or None", "Stop when the duality gap is at most `tol` times the objective."),
    "max_iter": ("int >= 1", "Maximal number of rounds."),
    "query": (
        "MarginQuery, ThresholdQuery, RandomQuery or None",
        "Which labels are requested, by the margin of the scores; other visits change nothing. Mistakes are "
        "then known, and counted, only where the label was requested. None requests all.",
    ),
    "queried_": ("ndarray of bool", "Whether each visit requested the label."),
    "n_queries_": ("int", "Number of visits that requested the label."),
    "shuffle": ("bool", "Also permute the first pass."),
    "class_weight": (
        'None, "balanced" or dict',
        "Factors on the losses of each class, by default 1 in a dict; with an indicator matrix, of the "
        'positive samples of a column. "balanced" gives all classes, or both sides of a one-against-rest '
        "problem, equal total weight.",
    ),
    "normalize": ("bool", "Scale kernels computed from X to unit diagonal, as the bounds assume."),
    "missing": (
        '"error" or "zero"',
        '"zero": a sample whose columns of a cue, or row of a precomputed kernel, are all NaN lacks it. Its '
        "kernels are then 0 with all samples and itself, also in prediction, its score in `OMCL` is 0, and "
        "scales come from the other samples. A sample without any cue and NaN in some columns of a cue are "
        "errors. What a sparse X does not store is zero, not missing.",
    ),
    "memory": (
        "float >= 0",
        "Bytes of the kernel bank; methods that train on one matrix of all n samples need about 8 n^2 more, "
        "and warn if that exceeds it.",
    ),
    "n_jobs": ("int", "Threads, -1 for one per core; results are bitwise equal for any number."),
    "random_state": ("int, Generator or None", "Seed of the order of samples."),
    "folds": (
        "list of (train, test) or None",
        "Positions of samples, for related samples that must stay on one side; None: five stratified folds, "
        "fewer if a class has fewer samples.",
    ),
    "callback": (
        "callable(estimator, step)",
        "Called after every epoch or round with the estimator, which can predict, and the number of visits "
        "or rounds; a true return value stops training. `history_` excludes its time.",
    ),
    "verbose": ("bool", "Show a progress bar after two seconds."),
    "sample_weight": (
        "array-like of float >= 0, shape (n,), or None",
        "Factors on the losses of the samples: 0 omits a sample; where the objective is minimised, 2 "
        "duplicates it.",
    ),
    "classes_": ("ndarray, shape (n_classes,)", ""),
    "kernel_weights_": (
        "ndarray, shape (n_kernels,)",
        "alpha_j: class scores are ``sum_j kernel_weights_[j] * K_j[:, support_] @ dual_coef_``.",
    ),
    "dual_coef_": ("ndarray, shape (n_support, n_classes)", ""),
    "support_": ("ndarray of int", "Training samples with coefficients."),
    "intercept_": ("ndarray, shape (n_classes,)", ""),
    "n_updates_": ("int", "Number of visits that changed the model."),
    "history_": (
        "DataFrame",
        "Columns step, epoch, seconds, n_updates, n_support, online_error, objective, dual_gap.",
    ),
    "objective_": ("float", "Primal objective; compare methods by `common_objective`."),
    "dual_gap_": (
        "float",
        "Certified bound on the distance of the objective from the optimum; NaN if a kernel is indefinite.",
    ),
    "online_errors_": ("ndarray of bool", "Whether each visit was a mistake; ties count as mistakes."),
    "folds_": (
        "list of (train, test)",
        "By default from ``StratifiedKFold(shuffle=True, random_state=random_state)``.",
    ),
    "kernel_accuracy_": ("ndarray, shape (n_kernels,)", "Cross-validated accuracy of each kernel."),
    "visits_": ("ndarray of int", "The sample of each visit."),
    "n_iter_": ("int", "Number of rounds."),
    "converged_": ("bool", "Whether the gap reached `tol`."),
    "prior_names_": ("list of str", "Names of the score columns."),
    "score_scale_": ("ndarray, shape (K,)", "Divisors of the score columns."),
    "path_": (
        "ndarray, shape (n_iter + 1, n_classes, n_kernels)",
        "Initial kernel weights, and those after each round; entry t + 1 belongs to row t of `history_`.",
    ),
    "objectives_": (
        "ndarray, shape (n_classes,), or (1,) for two class labels",
        "Objective of every class, NaN for skipped ones; `objective_` is their sum.",
    ),
    "dual_gaps_": ("as `objectives_`", "Duality gaps of the classes; `dual_gap_` is their sum."),
    "skipped_classes_": (
        "ndarray of int",
        "Classes of an indicator matrix without positive or without negative samples.",
    ),
    "n_solved_": ("int", "Number of SVMs solved."),
}

#: Several entries by one name.
GROUPS = {
    "rounds": "$C $class_weight $tol $max_iter $missing $normalize $memory",
    "run": "$missing $normalize $memory $random_state $callback $verbose",
    "of_run_": "$dual_coef_ $support_ $kernel_weights_ $n_updates_ $history_ $objective_ $dual_gap_",
    "of_classes_": "$classes_ $kernel_weights_ $dual_coef_ $support_ $path_ $objectives_ $dual_gaps_ "
    "$history_ $objective_ $dual_gap_ $skipped_classes_ $n_solved_ $n_updates_ $n_iter_ $converged_",
    "shared_": "$classes_ $dual_coef_ $support_ $skipped_classes_ $class_objectives_ $history_ $n_iter_ "
    "$n_solved_ $n_updates_ $converged_",
}
MARKS = re.compile(r"^( *)\$(\w+(?: \$\w+)*)$", re.MULTILINE)


T = TypeVar("T", bound=Callable)


def documented(cls: T, texts=None, groups=None) -> T:
    """Class decorator: docstring lines ``$C $p`` become the entries of `TEXTS` and `texts`, with defaults
    from the constructor; a name of `GROUPS` or `groups` stands for several."""
    if cls.__doc__ is None:  # python -OO
        return cls
    texts = {**TEXTS, **(texts or {})}
    groups = {**GROUPS, **(groups or {})}
    defaults = {name: p.default for name, p in inspect.signature(cls).parameters.items()}

    def entries(match):
        indent = match[1]
        lines = []
        for name in match[2].split(" $"):
            kind, text = texts[name]
            default = defaults.get(name, inspect.Parameter.empty)
            if default is not inspect.Parameter.empty:
                kind += f", default {default:g}" if name == "memory" else f", default {default!r}"
            lines.append(f"{indent}{name} : {kind}".replace("'", '"'))
            lines += textwrap.indent(textwrap.fill(text, 101 - len(indent)), indent + "    ").splitlines()
        return "\n".join(lines)

    separate = re.sub(r"\$(\w+)", lambda mark: groups.get(mark[1], mark[0]), cls.__doc__)
    cls.__doc__ = MARKS.sub(entries, separate)
    return cls
