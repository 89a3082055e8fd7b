"""Experiments of the MKTL chapter (thesis chapter 6): tasks, methods and their comparison, training time.

Sizes and grids are fixed before a run: grids are the thesis's (6.5), in quick up to C = 100, for all methods;
numbers of draws come from the spread of earlier runs.

A task has a few new classes on one cue, and priors for other classes, trained on other cues. Which classes
are new, and what trains the priors, is drawn once from fixed seeds; `draw` splits the drawings of the new
classes into training and tests. Parameters are chosen on a task of other classes with the same priors
(`others`), so that no split can leak into them. No prior, and no class that parameters are chosen on, is a
near-duplicate of a new class (`_near_duplicates`). Tasks are kept, and not to be changed.

A further method takes one line in `METHODS`.
"""

import itertools
import re
import tracemalloc
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.class_weight import compute_sample_weight
from threadpoolctl import threadpool_limits

from companion import pictures, protocol, study
from companion.originals import AWA_TEST_CLASSES
from companion.protocol import fitted, grid_points, load_set, made_here, settings_of, timed
from companion.study import Study, interval
from cuelearn.core.formulas import first_best
from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl import AverageKernelSVM
from cuelearn.mktl import MKTL, P_RANGE, AverageTL, MultiKT, NoTransfer, PriorFeatures

C_RANGE = (0.1, 1.0, 10.0, 100.0, 1000.0)
#: Beside it for the two weighted methods of figure 6.2, which often want its smallest value.
C_WIDER = (0.001, 0.01, *C_RANGE, 10_000.0)
#: An end of a grid that nothing lies beyond: at p = 1.01 one group takes nearly all.
NATURAL = {"p": (1.01,)}
#: Multiclass tasks of figure 6.3; with the original data present, "awa" comes first.
BUNDLED = ("animals", "objects")
#: Background samples beside the few of the target: many, as in the thesis, whose number is not printed.
N_NEGATIVE = 80

#: For the notes of figures.
DRAWN = "emoji; 8 drawings of a new thing in 4 mildly changed views, 5 to train and 3 to test"
VALIDATED = (
    "C and p of every method chosen on other things with the same priors, by draws of the same kind, "
    "each run by a sample of these with replacement"
)
SIMULATED = made_here("random samples and scores", "companion.mktl.random_problem")
USELESS = made_here("useless scores", "companion.mktl.useless_scores")

_AWA = ((1, 5), (1, 5, 10, 20, 50), (1, 5, 10, 20, 30, 50))
_FINE_P = (1.01, 1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.6, 1.75, 2.0)
# samples per class: up to five are as many drawings, from there on further views of these
_FEW = (1, 5, 20)
_ALL = (1, 2, 3, 5, 10, 15, 20)
# smoke, quick, full
TABLE = {
    "C": ((10.0,), C_RANGE[:-1], C_RANGE),
    "wider C": ((1.0, 10.0), C_WIDER[1:-2], C_WIDER),
    # quick: the conjugate exponents q are 21 and 4.3
    "p": ((1.05, 1.5), (1.05, 1.3), P_RANGE),
    # 0: ascent in the dual from zero; at a gap of 1% accuracies would still depend on where a solver stops
    "effort": {"n_epochs": (0, 0, 0), "tol": (1e-2, 1e-3, 1e-3)},
    "binary": {
        "n_positive": ((1, 5), _FEW, _ALL),
        "seeds": (2, 3, 24),  # draws of each target, of its own
        "targets": (2, 12, 30),
        "draws": (1, 1, 2),  # of each target that parameters are chosen on
    },
    "multiclass": {
        "animals": ((1, 5), _FEW, _ALL),
        "objects": ((1, 5), _FEW, _ALL),
        "awa": _AWA,
        "seeds": (2, 5, 50),
        "more_seeds": (3, 24, 250),  # of MKTL alone, where two numbers of priors are compared
        "draws": (1, 2, 6),  # that parameters are chosen on
    },
    "classes": {
        "splits": (2, 3, 12),  # into new and known classes, each with models and parameters of its own
        "n_per_class": ((5,), (5,), (5, 20)),
        "seeds": (1, 1, 2),
        "draws": (1, 1, 2),
    },
    "priors": {
        "n_priors": ((14, 23), (10, 23, 100), (10, 14, 23, 35, 50, 75, 100)),
        "n_per_class": (5, 10, 10),
        "seeds": (2, 3, 20),
        "draws": (1, 2, 4),
    },
    "negative": {
        "n_per_class": ((1, 5), (1, 5), (1, 2, 5, 20)),
        "n_noise": ((0, 40), (0, 100), (0, 40, 100)),
        "seeds": (2, 3, 20),
        "draws": (1, 2, 4),
    },
    "path": {
        "p": ((1.01, 1.1, 1.5, 2.0), tuple(p for p in _FINE_P if p not in (1.15, 1.4, 1.6, 1.75)), _FINE_P),
        "n_per_class": (5, 10, 10),
        "seeds": (2, 3, 10),
    },
    "timing": {"n_per_class": ((20,), (100,), (25, 50, 75, 100)), "sparse": ((1.0,), (1.0,), C_RANGE)},
}
#: Sizes for a profile, "smoke", "quick" or "full".
settings = partial(settings_of, TABLE)


# --- tasks --------------------------------------------------------------------------------------------------

#: Pictures of each drawing: itself and mild changes, always on the same side of a split.
N_VIEWS = 4
#: C of all priors that are SVMs: the middle of the thesis's range for C, not tuned.
PRIOR_C = 10.0
#: AwA's photographs of each class that training samples are drawn from, at most half; the others are tests.
AWA_POOL = 50
#: Of the binary tasks: targets, targets that parameters are chosen on, and their cues. The thesis takes the
#: four of Tommasi et al. (2010), one behind the other: PHOG, words of SIFT, LBP, and covariances of
#: derivatives, whose place their histogram takes.
N_TARGETS = 30
N_OTHERS = 6
BINARY_CUES = ("PHOG 2", "words 1x1", "LBP 1x1", "derivatives 1x1")
#: Things of the background: behind the priors; and 80 for training, 48 for tests, once more for the others.
PRIOR_THINGS = 96
BACKGROUND_THINGS = 128
#: Words of names that do not say which kind of thing it is.
_PLAIN_WORDS = {"and", "face", "in", "of", "on", "oncoming", "with", "without"}
#: Things that styles draw alike though neither names nor keywords say so.
_DRAWN_ALIKE = (
    ("cow", "ox", "water buffalo"),
    ("horse", "donkey"),
    ("white flower", "rosette"),
    ("tiger face", "bear"),
    ("ox", "llama"),
    ("donkey", "goat"),
    ("donkey", "llama"),
    ("goat", "ram"),
)
# first entries of the seeds of this file's draws, so that no two draws share a stream
_SPLIT, _DRAW, _CLASSES, _BACKGROUND = 60, 61, 62, 65


class Setup(NamedTuple):
    """A multiclass task: the new classes' cue, models of known classes, and the sets of priors compared."""

    cue: str
    models: tuple  # of (learner, cues, number of classes)
    sizes: tuple  # numbers of priors in figure 6.3, the first of all columns


_SIFT_LBP = ("words 1x1", "LBP 1x1")
_OF_DERIVATIVES = ("derivatives 1x1", "words 1x1", "gist")  # for region covariances, SIFT and V1S+ (Gabor)
#: Multiclass tasks of figure 6.3 by name; learners and cues are the thesis's, for objects those of
#: Caltech-256: plants, animals, vehicles, mixed things, and 77 more. "awa" is the thesis's own data.
TASKS = {
    # colour histogram and words, as the thesis's colour histogram and SURF
    "animals": Setup("PHOG 2", (("SVM", ("HSV 1x1", "words 1x1"), 40),), (40,)),
    "objects": Setup(
        "PHOG 2",
        (
            ("boosted trees", _SIFT_LBP, 4),
            ("boosted trees", _OF_DERIVATIVES, 6),
            ("SVM", ("words 1x1",), 4),
            ("SVM", _SIFT_LBP, 9),
            ("SVM", _SIFT_LBP, 77),
        ),
        (14, 23),
    ),
    # rgsift in place of the thesis's colour histogram, which is not in the file
    "awa": Setup("phog", (("SVM", ("rgsift", "surf"), 40),), (40,)),
}


class Prior(NamedTuple):
    """A fitted model of known classes, one per column of its scores; a binary one has a single class."""

    name: str
    classes: tuple
    columns: list  # of the data's X that `model` takes
    model: object
    train: np.ndarray
    accuracy: float  # on other drawings of its own classes

    def scores(self, X):
        """Scores of rows of the data's X, shape (n, number of classes)."""
        return self.model.decision_function(X[:, self.columns]).reshape(len(X), -1)


class TransferTask(NamedTuple):
    """A task with few samples, and what priors say of its samples."""

    X: np.ndarray  # (n, d): the new task's cue, for all rows of its classes
    y: np.ndarray  # names of the new classes; in a binary task 0 for the background and 1 for the target
    scores: np.ndarray  # (n, K), of priors on other cues, by other learners
    same: np.ndarray  # (n, K), of priors of the same classes on the new task's cue with its kernel
    prior_names: tuple  # the known class that each of the K columns stands for
    drawing: np.ndarray  # (n,): views of one drawing have the same number
    test: object  # rows of X for tests; None where `draw` splits the drawings
    data: object
    rows: np.ndarray  # rows and columns of data.X that those of X are
    columns: list
    priors: tuple  # the models behind `scores` and `same`
    same_priors: tuple
    width: float  # width of `same` and of all methods: the mean squared distance among the priors' samples


def _subgroup(things, start):
    return np.char.startswith(pictures.emoji().subgroup[things].astype(str), start)


@cache
def _near_duplicates():
    """Which things show the same kind of thing, (things, things): a word of one's name is a word of the
    other's name or one of its keywords, as of cow and cow face, tiger and cat, or they are drawn alike."""
    emoji = pictures.emoji()
    names = [set(re.split("[ -]", name.lower())) - _PLAIN_WORDS for name in emoji.names.tolist()]
    keywords = [emoji.keyword_names[row > 0].tolist() for row in emoji.keywords]
    words = [name.union(more) for name, more in zip(names, keywords, strict=True)]
    near = np.array([[not name.isdisjoint(other) for other in words] for name in names])
    near |= emoji.family[:, None] == emoji.family
    for alike in _DRAWN_ALIKE:
        rows = np.isin(emoji.names, alike)
        near |= np.outer(rows, rows)
    return near | near.T


def _unlike(things, others):
    """Of these things those that are near-duplicates of none of the others."""
    return things[~_near_duplicates()[np.ix_(things, others)].any(axis=1)]


def _apart(things, n, others):
    """The first `n` of these things that are near-duplicates of none before them, nor of the others."""
    chosen = np.array(others, dtype=int)
    for thing in things:
        chosen = np.append(chosen, _unlike(np.array([thing]), chosen))
    return chosen[len(others) :][:n]


def _all_animals():
    """Animals with at least six drawings, and those with four or five."""
    emoji = pictures.emoji()
    is_animal = _subgroup(np.arange(len(emoji.names)), "animal-")
    animals = emoji.unlike(pictures.things(6, is_animal))
    return animals, np.setdiff1d(emoji.unlike(pictures.things(4, is_animal)), animals)


def _animals(split=0):
    """Ten new animals and ten others, with eight drawings, and 40 known, those with six and more first."""
    emoji = pictures.emoji()
    animals, fewer = _all_animals()
    seed = [_CLASSES, 0, split] if split else [_CLASSES, 0]
    animals = np.random.default_rng(seed).permutation(animals)
    whole = animals[emoji.n_drawings()[animals] == 8]
    new = whole[:10]
    others = _apart(whole, 10, new)
    known = _unlike(np.concatenate([animals, fewer]), np.concatenate([new, others]))
    return new, others, [known[:40]]


def _objects():
    """Three new plants, animals and vehicles, three others of each, and the known ones by model."""
    order = pictures.objects(len(pictures.emoji().names))
    kinds = [order[_subgroup(order, kind)] for kind in ("plant-", "animal-", "transport-")]
    new = np.concatenate([own[:3] for own in kinds])
    others = np.concatenate([_unlike(own, new)[:3] for own in kinds])
    unlike = _unlike(order, np.concatenate([new, others]))
    sizes = [size for _, _, size in TASKS["objects"].models]
    known = [unlike[np.isin(unlike, own)][:size] for own, size in zip(kinds, sizes, strict=False)]
    rest = unlike[~np.isin(unlike, np.concatenate(known))]
    known += np.split(rest, np.cumsum(sizes[3:]))[:2]
    return new, others, known


@cache
def _binary_things():
    """Things that are targets, others that parameters are chosen on, and the background's, in three parts;
    no two targets are near-duplicates, nor is a thing of the background that of a target."""
    emoji = pictures.emoji()
    targets = _apart(pictures.objects(len(emoji.names)), N_TARGETS + N_OTHERS, [])
    rest = _unlike(emoji.unlike(pictures.things()), targets)
    rest = np.random.default_rng([_CLASSES, 1]).permutation(rest)
    ends = np.cumsum([PRIOR_THINGS, BACKGROUND_THINGS, BACKGROUND_THINGS])
    return targets[:N_TARGETS], targets[N_TARGETS:], np.split(rest[: ends[-1]], ends[:-1])


def faces(names, n=1):
    """Pictures of things by name, in their first `n` styles: (things, n, height, width, 4)."""
    emoji = pictures.emoji()
    labels = [emoji.names.tolist().index(name) for name in names]
    return np.stack([emoji.pictures[pictures.drawings_of([label])[:n]] for label in labels])


def _columns(data, cues):
    """Columns of some cues, and the triples of one RBF per cue among these columns."""
    columns = []
    triples = []
    for cue in cues:
        start = len(columns)
        columns += range(*data.cues[cue].indices(data.X.shape[1]))
        triples.append((cue, RBF(), slice(start, len(columns))))
    return columns, triples


def _svm(width):
    """A prior of the kind that Multi-KT needs: with the new task's features and kernel."""
    return AverageKernelSVM([("all", RBF(scale=width), slice(None))], C=PRIOR_C)


def _prior(name, classes, data, columns, labels, model, train, rest):
    model.fit(data.X[np.ix_(train, columns)], labels[train])
    accuracy = model.score(data.X[np.ix_(rest, columns)], labels[rest])
    return Prior(name, tuple(classes), columns, model, train, float(accuracy))


def _known_rows(data, drawing, label):
    """Rows of a known class that train its prior, and those of an eighth of its drawings, at least one."""
    rows = np.flatnonzero(data.y == label)
    drawings = np.random.default_rng([_SPLIT, label]).permutation(np.unique(drawing[rows]))
    held = np.isin(drawing[rows], drawings[: max(1, len(drawings) // 8)])
    return rows[~held], rows[held]


def _width(data, columns, rows):
    """The mean squared distance that ``RBF(scale="mean")`` would take from these rows."""
    bank = KernelBank([("all", RBF(), slice(None))], data.X[np.ix_(rows, columns)], memory=0)
    return float(bank.triples[0][1].scale)


def _scores(priors, data, rows):
    X = data.X[rows]
    with threadpool_limits(1, user_api="blas"):  # the same bits for any number of threads
        return np.hstack([prior.scores(X) for prior in priors])


def _task(data, drawing, rows, y, priors, same, width, test=None):
    """A task on some rows of the data."""
    columns = same[0].columns
    scores = _scores(priors, data, rows)
    return TransferTask(
        X=data.X[np.ix_(rows, columns)].astype(np.float64),
        y=y,
        scores=scores,
        same=scores if same is priors else _scores(same, data, rows),
        prior_names=tuple(name for prior in priors for name in prior.classes),
        drawing=drawing[rows],
        test=test,
        data=data,
        rows=rows,
        columns=columns,
        priors=tuple(priors),
        same_priors=tuple(same),
        width=width,
    )


def described(name, n_jobs=1):
    """Pictures of a task, or of the "binary" ones, and the drawing of each; kept on disk. Of animals all, as
    others are new in other splits."""
    if name == "binary":
        targets, others, background = _binary_things()
        rng = np.random.default_rng(_BACKGROUND)
        rows = [rng.choice(pictures.drawings_of([thing])) for thing in np.sort(np.concatenate(background))]
        rows = np.r_[pictures.drawings_of(np.concatenate([targets, others])), rows]
        cues = BINARY_CUES
    else:
        things = _all_animals()
        if name == "objects":
            new, others, known = _objects()
            things = [new, others, *known]
        rows = pictures.drawings_of(np.concatenate(things))
        cues = dict.fromkeys([TASKS[name].cue, *(cue for _, own, _ in TASKS[name].models for cue in own)])
    data = pictures.described(rows, cues, n_views=N_VIEWS, n_jobs=n_jobs)
    return data, np.repeat(rows, N_VIEWS)


def _split(name):
    """A task's name, and which classes are new in it: "animals 3" has the third split of all, "animals" the
    first choice, that of figure 6.3."""
    name, _, split = name.partition(" ")
    return name, int(split or 0)


@cache
def _known(name):
    """Data, the drawing of each row, labels of the new and the other classes, and what both tasks share."""
    name, split = _split(name)
    cue, models, _ = TASKS[name]
    if name == "awa":
        data = load_set(name)
        drawing = np.arange(len(data.y))
        new = np.array([data.target_names.index(c) for c in AWA_TEST_CLASSES])
        if split:
            order = np.random.default_rng([_CLASSES, 2, split]).permutation(len(data.target_names))
            new = np.sort(order[: len(new)])
        others = new
        known = [np.setdiff1d(np.arange(len(data.target_names)), new)]
    else:
        new, others, known = _animals(split) if name == "animals" else _objects()
        data, drawing = described(name)
    labels = np.array(data.target_names)[data.y]
    columns, _ = _columns(data, (cue,))
    split = []
    for classes in known:
        train, rest = zip(*(_known_rows(data, drawing, label) for label in classes), strict=True)
        split.append((np.concatenate(train), np.concatenate(rest)))
    width = _width(data, columns, np.concatenate([train for train, _ in split]))
    priors = []
    same = []
    for (learner, cues, _), classes, rows in zip(models, known, split, strict=True):
        names = sorted(data.target_names[label] for label in classes)  # as a fitted model's columns
        own, triples = _columns(data, cues)
        model = AverageKernelSVM(triples, C=PRIOR_C)
        if learner == "boosted trees":
            # stumps: a deeper tree fits few samples at once, and boosting would end
            stump = DecisionTreeClassifier(max_depth=1)
            model = AdaBoostClassifier(stump, n_estimators=100, random_state=0)
        priors.append(_prior(f"{learner} on {', '.join(cues)}", names, data, own, labels, model, *rows))
        same.append(_prior(f"SVM on {cue}", names, data, columns, labels, _svm(width), *rows))
    return data, drawing, new, others, priors, same, width


@cache
def load_task(name, others=False):
    """A `TransferTask` of figure 6.3; `others`: the task that parameters are chosen on, of as many other
    classes with the same priors, of awa the same ten classes without the test samples. A number behind the
    name, as in "animals 3", makes other classes new."""
    data, drawing, new, other, *models = _known(name)
    rows = np.flatnonzero(np.isin(data.y, other if others else new))
    test = None
    if _split(name)[0] == "awa":
        parts = [np.random.default_rng([_SPLIT, k]).permutation(np.flatnonzero(data.y == k)) for k in new]
        pool = np.concatenate([part[: min(AWA_POOL, len(part) // 2)] for part in parts])
        if others:
            rows = np.sort(pool)
        else:
            test = np.flatnonzero(~np.isin(rows, pool))
    return _task(data, drawing, rows, np.array(data.target_names)[data.y[rows]], *models, test)


def known_models(names):
    """What the priors of each task know, and how well; beside them those of Multi-KT's own kind."""
    rows = []
    for name in names:
        task = load_task(name)
        for prior, same in zip(task.priors, task.same_priors, strict=True):
            known = len(prior.classes), " ".join(prior.classes[:20]), prior.train.size
            rows.append((name, prior.name, *known, prior.accuracy, same.accuracy))
    columns = ["task", "prior", "classes", "knows", "samples", "right", "on PHOG"]
    return pd.DataFrame(rows, columns=columns).set_index("task").round(2)


def binary_targets(others=False):
    """Names of the 30 things that are targets in turn, or of six others that parameters are chosen on."""
    return pictures.emoji().names[_binary_things()[int(others)]].tolist()


@cache
def _shared():
    """What all targets share: data, the drawing of each row, priors by name, their width."""
    targets, _, background = _binary_things()
    data, drawing = described("binary")
    split = {label: _known_rows(data, drawing, label) for label in targets}
    behind = np.flatnonzero(np.isin(data.y, background[0]))
    last = np.isin(data.y[behind], background[0][-len(background[0]) // 8 :])
    behind = behind[~last], behind[last]
    train = np.concatenate([behind[0], *(own for own, _ in split.values())])
    # each cue weighs the same: its mean squared distance is 1
    spread = [2.0 * data.X[train, part].var(axis=0).sum() for part in data.cues.values()]
    scale = np.concatenate([np.full(s.stop - s.start, v**-0.5) for s, v in zip(data.cues.values(), spread)])
    data = data._replace(X=(data.X * scale).astype(np.float32))
    columns = list(range(data.X.shape[1]))
    width = _width(data, columns, train)
    priors = {}
    for label, own in split.items():
        name = data.target_names[label]
        rows = [np.concatenate(both) for both in zip(own, behind, strict=True)]
        is_target = (data.y == label).astype(int)
        title = f"SVM of {name} against the background"
        priors[name] = _prior(title, (name,), data, columns, is_target, _svm(width), *rows)
    return data, drawing, priors, width


@cache
def binary_task(target):
    """A thing against a background of other things (figure 6.2), with 29 priors for other things against
    another background, on the same four cues and kernel."""
    data, drawing, priors, width = _shared()
    known = [prior for name, prior in priors.items() if name != target][: N_TARGETS - 1]
    label = data.target_names.index(target)
    background = _binary_things()[2][1 + (target in binary_targets(others=True))]
    rows = np.flatnonzero(np.isin(data.y, [label, *background]))
    return _task(data, drawing, rows, (data.y[rows] == label).astype(int), known, known, width)


def _ordered(task, label, rng):
    """Rows of a class for training, a view of every drawing before a second one of any, and for tests."""
    rows = rng.permutation(np.flatnonzero(task.y == label))
    drawings, drawing = np.unique(task.drawing[rows], return_inverse=True)
    place = rng.permutation(drawings.size)[drawing]
    train = place < np.ceil(drawings.size * 5 / 8)
    if task.test is not None:
        train = ~np.isin(rows, task.test)
    view = pd.Series(place).groupby(place).cumcount().to_numpy()
    return rows[train][np.lexsort((place[train], view[train]))], rows[~train]


def draw(task, n, seed):
    """Rows of a task's X to train on, at most `n` of each class (or by class), and rows for tests; a smaller
    draw of the same seed is a part of a larger one."""
    rng = np.random.default_rng([_DRAW, seed])
    train = []
    test = []
    for label in np.unique(task.y).tolist():
        rows, rest = _ordered(task, label, rng)
        train.append(rows[: n[label] if isinstance(n, dict) else n])
        test.append(rest)
    turns = np.concatenate([np.arange(len(rows)) for rows in train])
    return np.concatenate(train)[np.argsort(turns, kind="stable")], np.sort(np.concatenate(test))


# --- comparisons --------------------------------------------------------------------------------------------

FIRST_VALIDATION_SEED = 10_000  # far from those of the figures
CHOSEN = ("C", "p", "class_weight")  # as columns of the results

#: The estimator of each method, and its options.
METHODS = {
    "NoTransfer": (NoTransfer, {}),
    "PriorFeatures": (PriorFeatures, {}),
    "MultiKT": (MultiKT, {}),
    "AverageTL": (AverageTL, {}),
    "MKTL": (MKTL, {}),
    "MKTL auto": (MKTL, {"p": "auto"}),
    "MKTL auto-priors": (MKTL, {"p": "auto-priors"}),
    "MKTL weighted": (MKTL, {"class_weight": "positive"}),
    "NoTransfer weighted": (NoTransfer, {"class_weight": "balanced"}),
    "PriorFeatures weighted": (PriorFeatures, {"class_weight": "balanced"}),
    "AverageTL weighted": (AverageTL, {"class_weight": "balanced"}),
}
#: Methods of figures 6.3 and 6.2. The thesis weighs the classes in Multi-KT and MKTL only.
MULTICLASS = tuple(method for method in METHODS if "weighted" not in method)
BINARY = tuple(method for method in METHODS if "auto" not in method)
#: Methods whose p is chosen, too.
HAVE_P = ("MKTL", "MKTL weighted")


def model_of(method, chosen, effort, seed):
    """A method's estimator on precomputed kernels, with the parameters that were chosen for it."""
    cls, options = METHODS[method]
    chosen = {name: chosen[name] for name in CHOSEN if chosen.get(name, "") != ""}
    if cls is MKTL:
        options = {"random_state": seed, **effort, **options}
    return cls("precomputed", **chosen, **options)


def candidates(method, grids):
    """All parameters of a method, in the order in which ties are decided: the C nearest to 10, the middle of
    the thesis's range; the largest p ("" where it has none); class_weight where there is a choice."""
    C = sorted(map(float, grids["C"]), key=lambda C: (abs(np.log10(C / 10.0)), C))
    p = sorted(map(float, grids["p"]), reverse=True) if method in HAVE_P else [""]
    weights = {"class_weight": ("balanced", None)} if method == "MultiKT" else {}
    return grid_points(C=C, p=p, **weights)


class Trial:
    """One training set (rows `train`) with the kernel that all methods share, and the samples of `judged`; of
    the scores the first `n_priors` columns, or those `replaced` by others."""

    def __init__(self, task, train, judged, n_priors=None, replaced=None):
        self.bank = KernelBank([("new", RBF(scale=task.width), slice(None))], task.X[train])
        self.rows = np.ascontiguousarray(next(iter(self.bank.cross(task.X[judged]).blocks(memory=4e9)))[1])
        self.y = task.y[train]
        self.y_judged = task.y[judged]
        self.weight = compute_sample_weight("balanced", self.y_judged)
        self.train = train, slice(n_priors)
        self.judged = judged, slice(n_priors)
        self.scores = task.scores if replaced is None else replaced
        self.same = task.same if replaced is None else replaced

    def scores_for(self, method):
        """Scores of the training samples and of the judged: of Multi-KT those of priors of its own kind."""
        scores = self.same if method == "MultiKT" else self.scores
        return scores[self.train], scores[self.judged]

    def fitted(self, method, chosen, effort, seed=0):
        model = model_of(method, chosen, effort, seed)
        return fitted(model, self.bank, self.y, scores=self.scores_for(method)[0])

    def share_right(self, method, model):
        """Share of the judged samples that are right, mean over their classes."""
        scores = self.scores_for(method)[1]
        return float(model.score(self.rows, self.y_judged, sample_weight=self.weight, scores=scores))

    def accuracy(self, method, chosen, effort, seed=0):
        return self.share_right(method, self.fitted(method, chosen, effort, seed))


def multiclass_trial(name, n_per_class, n_priors, useless, seed, others=False):
    """A draw of figure 6.3; `others`: of the task that parameters are chosen on."""
    task = load_task(name, others)
    return Trial(task, *draw(task, n_per_class, seed), n_priors, useless_scores(task, useless, seed))


def binary_trial(target, n_positive, seed):
    """A draw of figure 6.2; both sides of the tests, target and background, count the same."""
    task = binary_task(target)
    return Trial(task, *draw(task, {0: N_NEGATIVE, 1: n_positive}, seed))


def accuracies(seed, chosen, effort, **place):
    """Test accuracies and relative gaps of methods trained on the same samples, `chosen` by name."""
    make_trial = binary_trial if "target" in place else multiclass_trial
    trial = make_trial(seed=seed, **place)
    rows = []
    for method, parameters in chosen.items():
        model = trial.fitted(method, parameters, effort, seed)
        gap = model.dual_gap_ / model.objective_ if getattr(model, "objective_", 0.0) else np.nan
        rows.append({"method": method, "accuracy": trial.share_right(method, model), "gap": gap})
    return pd.DataFrame(rows)


def validated(method, grids, effort, draws, seed, **place):
    """Accuracies of a method's `candidates` on draws of other things, none of a new class, (n, draws)."""
    seeds = [FIRST_VALIDATION_SEED + 100 * seed + k for k in range(draws)]
    if "n_positive" in place:
        targets = binary_targets(others=True)
        trials = [binary_trial(target, seed=s, **place) for target in targets for s in seeds]
    else:
        trials = [multiclass_trial(seed=s, others=True, **place) for s in seeds]
    points = candidates(method, grids)
    return {"tried": [[trial.accuracy(method, point, effort) for trial in trials] for point in points]}


def picked(validation, method, grids, seed):
    """A method's parameters for the run of a seed: the best on a sample of the validation's draws with
    replacement, so that the spread over runs has that of the choice in it."""
    tried = np.array(validation["tried"])
    points = candidates(method, grids)
    taken = np.random.default_rng([66, seed]).integers(tried.shape[1], size=tried.shape[1])
    best = first_best(tried[:, taken].mean(axis=1))
    return points[best]


def edges(table, grids):
    """Whose C or p lies at an end of its grid, and in how many of its runs, in words for a note."""
    at_ends = study.edges(table, grids, NATURAL, by="method")
    return f"at the ends of the grids: {at_ends}" if at_ends else "no choice at an end of its grid"


def grids_of(run, C="C"):
    return {"C": list(run.size[C]), "p": list(run.size["p"])}


def _compared(run, label, points, by, data, C="C"):
    """Accuracies at `points`, pairs with their methods; parameters are chosen once for the values `by`."""
    size = run.size[label]
    grids = grids_of(run, C)
    effort = run.size["effort"]
    choosing = {"grids": grids, "effort": effort, "draws": size["draws"], "seed": run.seed}

    def pick(validation, method, point):
        return picked(validation, method, grids, point["seed"])

    how = {"by": by, "choosing": choosing, "comparing": {"effort": effort}, "columns": CHOSEN, "pick": pick}
    return Study(run.sweep, label, accuracies, validated, **how, data=data).table(points)


def multiclass(run, label, places, seeds=None):
    """Methods' accuracies in all draws at places of figure 6.3, pairs with the methods there; `label` names
    their sizes in `settings`."""
    seeds = run.seeds(run.size[label]) if seeds is None else seeds
    points = [({**place, "seed": seed}, methods) for place, methods in places for seed in seeds]
    data = [load_task(name).data for name in dict.fromkeys(place["name"] for place, _ in places)]
    return _compared(run, label, points, ["name", "n_per_class", "n_priors", "useless"], data)


def other_classes(run, names):
    """Methods' accuracies with other new classes: of each split means over draws and numbers of samples."""
    size = run.size["classes"]
    methods = ("NoTransfer", "PriorFeatures", "AverageTL", "MultiKT", "MKTL")
    places = []
    for name, split in itertools.product(names, range(1, size["splits"] + 1)):
        place = {"name": f"{name} {split}", "n_priors": None, "useless": ""}
        places += [({**place, "n_per_class": n}, methods) for n in size["n_per_class"]]
    table = multiclass(run, "classes", places)
    table[["name", "split"]] = table["name"].str.split(" ", expand=True)
    return table


def places_of_figure(run, names, methods=MULTICLASS):
    """Places of figure 6.3 and the methods there; No-Transfer needs no priors, and is there once."""
    places = []
    for name in names:
        for n, k in itertools.product(run.size["multiclass"][name], TASKS[name].sizes):
            compared_here = [m for m in methods if k == max(TASKS[name].sizes) or m != "NoTransfer"]
            places.append(({"name": name, "n_per_class": n, "n_priors": k, "useless": ""}, compared_here))
    return places


def useless_scores(task, kind, seed):
    """Scores, (n, K), that say nothing of a sample, in place of a task's; None where `kind` is "".

    "shuffled": the task's own, dealt out at random; "noise K": K normal columns; "none": no columns.
    """
    if not kind:
        return None
    rng = np.random.default_rng([63, seed])
    n = len(task.y)
    if kind == "none":
        return np.zeros((n, 0))
    if kind == "shuffled":
        return task.scores[rng.permutation(n)]
    return rng.normal(size=(n, int(kind.split()[1])))


def lost(table):
    """What each method loses to No-Transfer on the same samples, in points, with useless priors."""
    places = ["useless", "method", "n_per_class"]
    runs = 100.0 * table.pivot(index="seed", columns=places, values="accuracy").sort_index(axis=1)
    alone = runs["none", "NoTransfer"]
    others = [place for place in runs if place[1] != "NoTransfer"]
    rows = [(*place, *interval((runs[place] - alone[place[2]]).to_numpy())) for place in others]
    return pd.DataFrame(rows, columns=[*places, "difference", "low", "high"])


def binary(run, methods=BINARY, C="C"):
    """All points of figure 6.2, C chosen from the grid of this name; every target has seeds of its own, so
    that targets share neither samples of the background nor a choice of parameters."""
    size = run.size["binary"]
    seeds = run.seeds(size)
    targets = binary_targets()[: size["targets"]]
    points = [
        ({"target": target, "seed": seed + k * len(seeds), "n_positive": n}, methods)
        for k, target in enumerate(targets)
        for seed in seeds
        for n in size["n_positive"]
    ]
    return _compared(run, "binary", points, ["n_positive"], binary_task(targets[0]).data, C)


def transfer_weights(name, seed, n_per_class, chosen, effort, n_priors=None):
    """From where MKTL transfers to which class: weight, for scaled scores; kernel, the norm of its block."""
    trial = multiclass_trial(name, n_per_class, n_priors, "", seed)
    model = trial.fitted("MKTL", chosen, effort, seed)
    pairs = grid_points(new=model.classes_.tolist(), prior=load_task(name).prior_names[:n_priors])
    weights = model.transfer_weights_.ravel()
    return pd.DataFrame(pairs).assign(weight=weights, kernel=float(model.block_norms_[0]))


def along_p(name, seed, n_per_class, p, C, effort):
    """Accuracy and certified gap for one p, and how many priors each new class uses (of a weight of at least
    a hundredth of the largest), on average."""
    trial = multiclass_trial(name, n_per_class, None, "", seed)
    model = trial.fitted("MKTL", {"C": C, "p": p}, {**effort, "tol": min(effort["tol"], 1e-3)}, seed)
    weights = np.abs(model.transfer_weights_)
    used = (weights > 0.0) & (weights >= 0.01 * weights.max())
    return {
        "accuracy": trial.share_right("MKTL", model),
        "used": float(used.sum(axis=1).mean()),
        "gap": float(model.dual_gap_),
        "objective": float(model.objective_),
        "p_found": model.p_,
    }


def confusion(curves, name, n_per_class, methods, effort):
    """How often the pictures of a class are called which, in all runs of a place of figure 6.3's table."""
    tables = []
    place = protocol.where(curves, name=name, n_per_class=n_per_class)
    for (seed, n_priors), runs in place.groupby(["seed", "n_priors"]):
        trial = multiclass_trial(name, n_per_class, n_priors, "", seed)
        for run in runs[runs["method"].isin(methods)].to_dict("records"):
            model = trial.fitted(run["method"], run, effort, seed)
            predicted = model.predict(trial.rows, scores=trial.scores_for(run["method"])[1])
            tables.append(pd.DataFrame({"method": run["method"], "true": trial.y_judged, "said": predicted}))
    share = pd.concat(tables).groupby(["method", "true"])["said"].value_counts(normalize=True)
    return share.rename("share").reset_index()


# --- training time ------------------------------------------------------------------------------------------


def random_problem(n_classes, n_priors, n_per_class, seed):
    """Classes on random means, and priors of which 15% know something of a class, scores around -1."""
    rng = np.random.default_rng([seed, 64])
    y = np.repeat(np.arange(n_classes), n_per_class)
    X = rng.normal(size=(y.size, 20)) + rng.normal(size=(n_classes, 20))[y]
    known = rng.normal(size=(n_classes, n_priors)) * (rng.random((n_classes, n_priors)) < 0.15)
    return X, y, 0.5 * (known[y] + rng.normal(size=(y.size, n_priors))) - 1.0


def training_time(kind, method, n_per_class, C, p, effort, seed, memory=False):
    """CPU seconds of a training on "random" or "awa", kernel matrix included, after a small one.

    Memory: bytes at the peak of a training beside what went in, NaN where it is not measured.
    """
    if kind == "random":
        X, y, scores = random_problem(10, 40, n_per_class, seed)
    else:  # all images of the ten classes, training and test together: 100 each
        task = load_task("awa")
        rows = np.concatenate([np.flatnonzero(task.y == name)[:n_per_class] for name in np.unique(task.y)])
        X, y, scores = task.X[rows], task.y[rows], task.scores[rows]

    def train(rows=slice(None)):
        model = model_of(method, {"C": C, "p": p}, effort, seed)
        return model.fit(KernelBank(None, X[rows]), y[rows], scores=scores[rows])

    train(slice(None, None, 5))
    model, seconds = timed(train)
    peak = np.nan
    if memory:
        tracemalloc.start()
        train()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    gap = getattr(model, "dual_gap_", np.nan)
    objective = getattr(model, "objective_", np.nan)
    return {"seconds": seconds, "gap": gap, "objective": objective, "memory": peak}
