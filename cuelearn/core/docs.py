"""Texts of constructor parameters and fitted attributes that many estimators share."""

import inspect
import re
import textwrap

__all__ = ["TEXTS", "documented"]

#: name -> (type and range, what it is). The default comes from the constructor itself.
TEXTS = {
    "kernels": (
        'list of (name, kernel, columns), "precomputed" or None',
        "Cues, as in ColumnTransformer; a kernel is one of `cuelearn.kernels`, a name of its `KERNELS`, or a "
        "function f(A, B) that returns the matrix; ``kernels__<name>__gamma`` is its parameter in a grid. "
        "None is one `RBF` over all columns; columns that no cue uses may hold anything. "
        'With "precomputed", X has shape (n_kernels, n, n).',
    ),
    "p": (
        'float in (1, 2] or "auto"',
        'Group norm; towards 1 few kernels are used, 2 weighs all alike. "auto" is ``q = 2 ln F``.',
    ),
    "C": ("float > 0", "Weight of the losses: lambda = 1/(C n)."),
    "priors": (
        "list of (name, prior) or (name, prior, columns), or None",
        "What is known already. A prior is a fitted estimator with `decision_function` (or else "
        '`predict_proba`), trained on any features, or the word "passthrough": the columns are scores '
        "themselves. `columns` of X are its features (all by default). More scores can be given to `fit` and "
        "`predict` as plain numbers. A clone keeps its priors as they are; in a parameter grid wrap them in "
        "`sklearn.frozen.FrozenEstimator`.",
    ),
    "scaling": (
        '{"rms", "max", None}',
        "Scores are divided by their root mean square on the training samples, so that each score kernel has"
        ' mean diagonal 1 like normalised kernels; "max" by the largest absolute value; None takes them as '
        "they are, as the thesis prints.",
    ),
    "n_epochs": ("int >= 1", "Passes over the data, each in an order of its own."),
    "tol": ("float or None", "Stop when the duality gap falls to `tol` times the objective."),
    "max_iter": ("int >= 1", "Rounds at most."),
    "shuffle": ("bool", "Permute the first pass too."),
    "class_weight": (
        'None, "balanced" or dict',
        "Factors on the losses of the samples of each class, 1 where a dict names none; with an indicator "
        'matrix, of the positive samples of a column. "balanced" gives all classes, or both sides of one '
        "against the rest, equal total weight.",
    ),
    "normalize": ("bool", "Scale kernels computed from X to unit diagonal; the bounds assume it."),
    "memory": (
        "float >= 0",
        "Bytes the kernel bank may hold; methods that train on one matrix of all n samples need some 8 n^2 "
        "besides, and warn where that is more.",
    ),
    "n_jobs": ("int", "Threads; results are the same bits for any number. -1 means one for each core."),
    "random_state": ("int, Generator or None", "Of the order of the samples."),
    "folds": (
        "list of (train, test) or None",
        "Positions of samples, where related ones must stay on one side; None: five stratified folds, fewer "
        "where a class has fewer samples.",
    ),
    "callback": (
        "callable(estimator, step)",
        "Called after every epoch or round with the estimator, ready to predict, and the number of visits or "
        "rounds; a true return value ends the run. The clock of `history_` stops meanwhile.",
    ),
    "verbose": ("bool", "Show a progress bar on runs that take more than two seconds."),
    "sample_weight": (
        "array-like of float >= 0, shape (n,), or None",
        "Factors on the losses of the samples: 0 is the sample left out; 2 the sample twice where the "
        "objective is minimised, but for a kernel's mean distance, which counts every sample once.",
    ),
    "classes_": ("ndarray, shape (n_classes,)", ""),
    "kernel_weights_": (
        "ndarray, shape (n_kernels,)",
        "alpha_j: class scores are ``sum_j kernel_weights_[j] * K_j[:, support_] @ dual_coef_``.",
    ),
    "dual_coef_": ("ndarray, shape (n_support, n_classes)", ""),
    "support_": ("ndarray of int", "Training samples with a coefficient."),
    "intercept_": ("ndarray, shape (n_classes,)", ""),
    "n_updates_": ("int", "Visits that changed the model."),
    "history_": (
        "DataFrame",
        "Columns step, epoch, seconds, n_updates, n_support, online_error, objective, dual_gap.",
    ),
    "objective_": ("float", "Of the primal problem; `common_objective` compares methods in one."),
    "dual_gap_": (
        "float",
        "The objective is at most this far above the optimum; NaN where a kernel is indefinite.",
    ),
    "online_errors_": ("ndarray of bool", "Whether each visit was a mistake; a tie is one."),
    "folds_": (
        "list of (train, test)",
        "As of ``StratifiedKFold(shuffle=True, random_state=random_state)`` where none are given.",
    ),
    "kernel_accuracy_": ("ndarray, shape (n_kernels,)", "Cross-validated accuracy of every kernel alone."),
    "visits_": ("ndarray of int", "The sample of each visit."),
    "n_iter_": ("int", "Rounds."),
    "converged_": ("bool", "Whether the gap reached `tol`."),
    "prior_names_": ("list of str", "Names of the columns of scores."),
    "score_scale_": ("ndarray, shape (K,)", "Divisors of the columns of scores."),
    "path_": (
        "ndarray, shape (n_iter + 1, n_classes, n_kernels)",
        "Kernel weights at the start and after each round; entry t + 1 belongs to row t of `history_`.",
    ),
    "objectives_": (
        "ndarray, shape (n_classes,), or (1,) for two class labels, which are one problem",
        "Of every class, NaN for skipped ones; `objective_` is their sum.",
    ),
    "dual_gaps_": (
        "as `objectives_`",
        "Their certified distances from the optima; `dual_gap_` is their sum.",
    ),
    "skipped_classes_": (
        "ndarray of int",
        "Classes of an indicator matrix without positive or without negative samples.",
    ),
    "n_solved_": ("int", "SVMs solved."),
}

MARKS = re.compile(r"^( *)\$(\w+(?: \$\w+)*)$", re.MULTILINE)


def documented(cls, texts=None):
    """Decorator of classes and methods: a docstring's lines ``$C $p`` become the entries of `TEXTS` and of a
    chapter's `texts`, with defaults from the constructor's signature."""
    if cls.__doc__ is None:  # python -OO
        return cls
    texts = {**TEXTS, **(texts or {})}
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
            lines += textwrap.wrap(
                text, 105, initial_indent=indent + "    ", subsequent_indent=indent + "    "
            )
        return "\n".join(lines)

    cls.__doc__ = MARKS.sub(entries, cls.__doc__)
    return cls
