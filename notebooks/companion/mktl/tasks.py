"""Transfer tasks: a few new classes on one cue, and priors for other classes, trained on other cues.

Which classes are new, and what trains the priors, is drawn once from fixed seeds; `draw` splits the drawings
of the new classes into training and tests. Parameters are chosen on a task of other classes with the same
priors (`others`), so that no split can leak into them. No prior, and no class that parameters are chosen on,
is a near-duplicate of a new class (`_near_duplicates`). Tasks are kept, and not to be changed.
"""

import re
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from companion import pictures
from companion.data.originals import AWA_TEST_CLASSES
from companion.protocol import load_set
from cuelearn.kernels import RBF, KernelBank
from cuelearn.mkl import AverageKernelSVM

#: Pictures of each drawing: itself and mild changes, always on the same side of a split.
N_VIEWS = 4
#: C of all priors that are SVMs: the middle of the thesis's range for C, not tuned.
PRIOR_C = 10.0
#: AwA's photographs of each class that training samples are drawn from; the others are for tests.
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
_DRAWN_ALIKE = (("cow", "ox", "water buffalo"), ("horse", "donkey"), ("white flower", "rosette"))
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


def _animals():
    """Ten new animals and ten others, with eight drawings, and 40 known, those with six and more first."""
    emoji = pictures.emoji()
    is_animal = _subgroup(np.arange(len(emoji.names)), "animal-")
    animals = emoji.unlike(pictures.things(6, is_animal))
    fewer = np.setdiff1d(emoji.unlike(pictures.things(4, is_animal)), animals)
    animals = np.random.default_rng([_CLASSES, 0]).permutation(animals)
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


_THINGS = {"animals": _animals, "objects": _objects}


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
    """Pictures of a task, or of the "binary" ones, and the drawing of each; kept on disk."""
    if name == "binary":
        targets, others, background = _binary_things()
        rng = np.random.default_rng(_BACKGROUND)
        rows = [rng.choice(pictures.drawings_of([thing])) for thing in np.sort(np.concatenate(background))]
        rows = np.r_[pictures.drawings_of(np.concatenate([targets, others])), rows]
        cues = BINARY_CUES
    else:
        new, others, known = _THINGS[name]()
        rows = pictures.drawings_of(np.concatenate([new, others, *known]))
        cues = dict.fromkeys([TASKS[name].cue, *(cue for _, own, _ in TASKS[name].models for cue in own)])
    data = pictures.described(rows, cues, n_views=N_VIEWS, n_jobs=n_jobs)
    return data, np.repeat(rows, N_VIEWS)


@cache
def _known(name):
    """Data, the drawing of each row, labels of the new and the other classes, and what both tasks share."""
    cue, models, _ = TASKS[name]
    if name == "awa":
        data = load_set(name)
        drawing = np.arange(len(data.y))
        new = others = np.array([data.target_names.index(c) for c in AWA_TEST_CLASSES])
        known = [np.setdiff1d(np.arange(len(data.target_names)), new)]
    else:
        new, others, known = _THINGS[name]()
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
    classes with the same priors, of awa the same ten classes without the test samples."""
    data, drawing, new, other, *models = _known(name)
    rows = np.flatnonzero(np.isin(data.y, other if others else new))
    test = None
    if name == "awa":
        parts = [np.random.default_rng([_SPLIT, k]).permutation(np.flatnonzero(data.y == k)) for k in new]
        pool = np.concatenate([part[:AWA_POOL] for part in parts])
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
