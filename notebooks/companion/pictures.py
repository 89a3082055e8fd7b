"""Pictures and tables -> samples by cue -> permutations -> distances -> kernels.

*Emoji* are the chapters' real pictures. What is drawn at random of them is drawn once, by `SEED`: what varies
over runs are the splits. ETH-80's protocol (thesis 3.4.2) on them: its eight categories are the things of
`OBJECTS`, its ten objects of each are *drawings* of these things, its 41 views mildly changed pictures of a
drawing, which stay on one side of every split (`object_split`).

- By drawing, the thesis's split: six drawings of each category are for training, and two of these for
  validation; all others are for tests, which count every category alike.
- By thing: three tenths of a category's things are for tests, with all their drawings; six drawings of the
  others are for training. Things that some style draws alike (red and green apple) count as one. Apple,
  tomato and pear have one thing each: they are split by drawing.

*Categories*: the 30 subgroups of Unicode with most things, one of each family, split by thing; 30 drawings of
each are for training.

*Oxford Flowers-17* (appendix A): the papers take distances that the data's authors published, of segmented
flowers. Here the cues are extracted anew from the photographs, without segmentation, and splits are drawn, of
the published sizes: accuracies compare methods with each other, not with the papers' numbers.
"""

import hashlib
import itertools
import os
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
from sklearn.model_selection import train_test_split

import cuelearn
from companion import CHECKOUT
from companion.folders import LASER_FEATURE_NAMES, laser_features
from companion.originals import load_original
from companion.protocol import MEMORY_MANY, Task
from companion.run.sweep import file_lock
from cuelearn import datasets
from cuelearn.core.formulas import first_best
from cuelearn.datasets import image_cues, load_emoji
from cuelearn.datasets.base import CueData, data_directory
from cuelearn.datasets.cues import CUES, OBJECT_CUES, PHOTO_CUES, VALUES, describe
from cuelearn.datasets.descriptors import BagOfWords, count_words
from cuelearn.kernels import ExpDistance, KernelBank, distance_matrix, mean_rule
from cuelearn.omcl import KernelPerceptron

#: Folders of the package that describe no picture.
OTHERS = ("kernels", "mkl", "mktl", "mms", "oks", "omcl")
SEED = 0
WORD_THINGS = 80  # whose drawings the visual words are learnt from; they take part in nothing else
WORD_STYLES = 4  # such a thing has so many drawings at most
N_WORDS, STEP = 100, 4  # of patches of 16 pixels, every fourth pixel
#: Cues that are no histograms: a Gaussian kernel suits them, the others an exponential chi-squared one.
PLAIN = (*VALUES, "shape")
N_OBJECTS = 102  # as many as Caltech-101 has classes
N_CATEGORIES = 30  # subgroups; the smallest of them has things of nine families


@cache
def emoji():
    """The pictures, loaded once."""
    return load_emoji()


def drawings_of(things):
    """Rows of all drawings of these things, ascending."""
    return np.flatnonzero(np.isin(emoji().thing, things))


@cache
def word_things():
    """Things that no other set holds: of few drawings, from families of their own."""
    families, counts = emoji().family, emoji().n_drawings()
    alone = np.bincount(families, minlength=families.size)[families] == 1
    few = np.flatnonzero(alone & (counts <= WORD_STYLES))
    return np.sort(np.random.default_rng([SEED, 1]).permutation(few)[:WORD_THINGS])


def things(least=1, among=None):
    """Things with at least so many drawings, besides `word_things`; `among`: a mask of all things."""
    wanted = emoji().n_drawings() >= least
    wanted[word_things()] = False
    return np.flatnonzero(wanted if among is None else wanted & among)


@cache
def objects(n=N_OBJECTS):
    """Things drawn in all eight styles, no two of a family, drawn at random; fewer are the first of these."""
    whole = emoji().unlike(things(least=8))
    return np.random.default_rng([SEED, 2]).permutation(whole)[:n]


@cache
def categories(n=N_CATEGORIES, least=1):
    """Names of the subgroups with the most families -> things of so many drawings, one of each family."""
    chosen = emoji().unlike(things(least))
    names, sizes = np.unique(emoji().subgroup[chosen], return_counts=True)
    most = np.sort(names[np.argsort(-sizes, kind="stable")[:n]]).tolist()
    return {name: chosen[emoji().subgroup[chosen] == name] for name in most}


def seen(rows, n_views, seed):
    """Drawings (rows of the emoji) on backgrounds, each in so many views: an `ImageData`."""
    return emoji().on_backgrounds(rows=rows, n_views=n_views, random_state=seed)


def described(rows, cues, *, n_views=1, n_jobs=1):
    """A `CueData` of drawings before their backgrounds, `y` the thing: a row for each view of each drawing.

    Visual words are learnt from `word_things`, whatever is described.
    """
    return kept(_described, np.asarray(rows), list(cues), n_views, n_jobs=n_jobs)


def _described(rows, cues, n_views, n_jobs):
    vocabularies = {CUES[cue].words: cue for cue in cues if CUES[cue].words}
    words = {name: kept(_vocabulary, cue, n_jobs=n_jobs) for name, cue in vocabularies.items()}
    data = image_cues(seen(rows, n_views, SEED), cues, vocabulary=words, n_jobs=n_jobs)
    y, names = np.repeat(emoji().thing[rows], n_views), emoji().names.tolist()
    text = f"{emoji().description.removesuffix('.')}, before plain colours."
    return CueData(data.X, y, data.cues, None, None, data.feature_names, names, text, emoji().provenance)


def _vocabulary(cue, n_jobs):
    """Words learnt from the drawings of `word_things`, as a cue describes these."""
    words = describe(seen(drawings_of(word_things()), 1, SEED), [cue], step=STEP, n_jobs=n_jobs)[cue]
    return BagOfWords(N_WORDS, step=STEP).fit([picture.descriptors for picture in words])


def kept(function, *args, **named):
    """What a function returns, kept on disk until its arguments (but `n_jobs`), the emoji, or sources that
    describe pictures change. Arrays are mapped, so that processes share them."""
    place = Path(os.environ.get("CUELEARN_CACHE") or CHECKOUT / ".cache") / "cues" / _sources()
    memory = joblib.Memory(place, mmap_mode="c", verbose=0)
    ignored = [name for name in named if name == "n_jobs"]
    with file_lock(place / f"{function.__name__}-{joblib.hash(args)}.lock"):  # described by one process
        result = memory.cache(function, ignore=ignored)(*args, **named)
    if hasattr(result, "_fields"):
        mapped = {k: v for k, v in result._asdict().items() if isinstance(v, np.memmap)}
        result = result._replace(**{k: v.view(np.ndarray) for k, v in mapped.items()})
    return result


@cache
def _sources():
    """Fingerprint of what describes pictures."""
    simulators = sorted((data_directory() / "simulators").glob("*.py"))
    texts = [cuelearn.source_hash(tuple(f"{name}/*" for name in OTHERS), code_only=True)]
    texts += [emoji().provenance.sha256, *(file.read_text(encoding="utf-8") for file in simulators)]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:24]


# --- Oxford Flowers-17 --------------------------------------------------------------------------------------

WORD_CUES = tuple(cue for cue in PHOTO_CUES if CUES[cue].words)
# of the 1,400 kernels, times the mean distance: 200 for each of seven distances (thesis section 4.5.4)
WIDTHS = np.geomspace(0.01, 100.0, 200)

# per class: the published splits have 40 for training, 20 for validation (by folds here), 20 for tests
N_TRAIN, N_TEST = 60, 20
FLOWER_WORDS = 400


def flower_split(y, seed, n_train_per_class=None):
    """A training part, in random order, and a test part, ascending, balanced over the classes.

    One seed has one test part, and smaller training parts are subsets of larger ones.
    """
    n_train = N_TRAIN if n_train_per_class is None else n_train_per_class
    rng = np.random.default_rng([seed, 5])
    rows = [rng.permutation(np.flatnonzero(y == c)) for c in np.unique(y)]
    train = np.concatenate([of_class[N_TEST : N_TEST + n_train] for of_class in rows])
    return rng.permutation(train), np.sort(np.concatenate([of_class[:N_TEST] for of_class in rows]))


def distance_kernels(cues, n_train, n_kernels=None, widths=WIDTHS):
    """Kernels, as (name, ExpDistance, columns), on distances side by side, of `n_train` columns for each cue.

    By default one for each cue, of the mean distance, as in the papers' comparison. More, a multiple of the
    number of cues: so many of `widths` for every distance, spread evenly.
    """
    n_widths = (n_kernels or len(cues)) // len(cues)
    # the midpoints of n_widths equal parts of the range: all of them when there are as many parts as widths
    middle = ((np.arange(n_widths) + 0.5) * len(widths) / n_widths).astype(int)
    factors = {"": 1.0} if n_widths == 1 else {f"*{f:.4g}": f for f in np.asarray(widths)[middle].tolist()}
    kernels = []
    for j, cue in enumerate(cues):
        columns = slice(j * n_train, (j + 1) * n_train)
        for word, factor in factors.items():
            kernels.append((cue + word, ExpDistance("precomputed", factor=factor), columns))
    return kernels


def have_flowers():
    """Whether the directory that ``CUELEARN_DATA`` names has a directory flowers17."""
    place = os.environ.get("CUELEARN_DATA")
    return bool(place) and (Path(place) / "flowers17").is_dir()


@lru_cache(maxsize=1)
def described_flowers(place):
    """The photographs below `place`, which is ``CUELEARN_DATA``: classes, descriptions, plain distances."""
    images = load_original("flowers17")
    described = describe(images, PHOTO_CUES)
    plain = [distance_matrix(described[cue], "chi2") for cue in PHOTO_CUES if cue not in WORD_CUES]
    return images.y, described, plain


@lru_cache(maxsize=4)
def flower_distances(place, n_train_per_class, seed):
    """One split, the seven distances of all photographs, (7, n, n), and their classes."""
    y, described, distances = described_flowers(place)
    train, test = flower_split(y, seed, n_train_per_class)
    for cue in WORD_CUES:  # learnt from the training part alone
        words = BagOfWords(FLOWER_WORDS, random_state=seed)
        words.fit([described[cue][i].descriptors for i in np.unique(train)])
        distances = [*distances, distance_matrix(count_words(words, described[cue]), "chi2")]
    return train, test, np.stack(distances), y


def load_flowers(n_train_per_class=None, seed=0, n_kernels=len(PHOTO_CUES)):
    """A `Task` of the MKL chapter on Oxford Flowers-17, by default 1,020 training and 340 test images.

    The first call of a process describes the 1,360 images, in a minute or two; about 1 GB at most.
    """
    place = os.environ.get("CUELEARN_DATA")
    train, test, distances, y = flower_distances(place, n_train_per_class, seed)
    inside, across = (np.concatenate(distances[:, rows][:, :, train], axis=1) for rows in (train, test))
    bank = KernelBank(distance_kernels(PHOTO_CUES, train.size, n_kernels), inside, memory=MEMORY_MANY)
    return Task(bank, y[train], bank.cross(across), y[test], int(y.max()) + 1)


# --- tasks --------------------------------------------------------------------------------------------------

# widths, times the mean distance; the smallest were added, for every method alike, when first runs chose 1/8,
# then 1/32, for most cues. At 1/512 kernels of single precision vanish.
FACTORS = (1 / 256, 1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
WEATHERS = ("cloudy", "sunny", "night")
N_SUBSEQUENCES = 5
LEARNS = 7 / 10  # share of the objects that are used for training
VALIDATES = 2 / 7  # share of these that is held back
#: ETH-80's categories, as emoji; without service dogs, which teach visual words (`word_things`).
OBJECTS = {
    "apple": ("red apple", "green apple"),
    "car": (
        *("automobile", "oncoming automobile", "taxi", "oncoming taxi", "police car", "oncoming police car"),
        *("sport utility vehicle", "racing car"),
    ),
    "cow": ("cow", "cow face"),
    "cup": ("hot beverage", "teacup without handle", "sake", "beer mug", "cup with straw"),
    "dog": ("dog", "dog face", "guide dog", "poodle"),
    "horse": ("horse", "horse face", "carousel horse"),
    "pear": ("pear",),
    "tomato": ("tomato",),
}
#: Of the four cues of table 3.1, in its order, those of the camera (its CRFH is ``LxLy``), and all.
CAMERA_CUES = ("colour", "LxLy", "bow")
ROBOT_CUES = (*CAMERA_CUES, "laser")
#: Of the categories: colour, texture, self-similarity, visual words, edges, outline.
CATEGORY_CUES = ("HSV 2x2", "LBP 2x2", "self-similarity 2x2", "words 2x2", "PHOG 2", "shape")
N_ROUNDS = 20  # tests while a random order is learnt


class Split(NamedTuple):
    """One permutation."""

    train: np.ndarray  # rows for training, in their order
    test: np.ndarray
    inner: np.ndarray  # places in `train` for training while parameters are chosen
    held: np.ndarray  # the other places, for validation
    rounds: np.ndarray  # numbers of samples seen at which the predictors are tested; the last is all


def even_rounds(n):
    return np.linspace(0, n, N_ROUNDS + 1)[1:].astype(int)


def idol2_permutation(permutation):
    """Order of the weathers, and the repeat (1 or 2) for training: twelve, the repeats taking turns."""
    order = list(itertools.permutations(range(3)))[permutation % 6]
    return order, 1 + (permutation + permutation // 6) % 2


def idol2_split(frames, permutation):
    """One of twelve permutations of a robot's drives (thesis 3.4.1).

    Training is on six drives, the last of them for validation, tests on their counterparts, after each fifth
    of a drive.
    """
    order, learns = idol2_permutation(permutation)
    of_repeat = frames["repeat"] == learns
    parts = []
    sizes = []
    for session in (1, 2):
        of_session = of_repeat & (frames["session"] == session)
        for w in order:
            rows = np.flatnonzero(of_session & (frames["weather"] == WEATHERS[w]))
            parts.append(rows[np.argsort(frames["time"][rows], kind="stable")])
            sizes += [part.size for part in np.array_split(rows, N_SUBSEQUENCES)]
    train = np.concatenate(parts)
    inner, held = np.split(np.arange(train.size), [train.size - parts[-1].size])
    return Split(train, np.flatnonzero(~of_repeat), inner, held, np.cumsum(sizes))


def object_split(y, objects, permutation, seed, *, n_learn=None, things=None):
    """Permutation of the objects (thesis 3.4.2): train on as many of each category, in random order.

    `objects`, (n,), numbers what stays on one side; `n_learn` of each category are for training, by default
    seven tenths of the fewest that a category has. With `things`, (n,), where a category has two or more,
    tests are on things of which no object is for training, and validation is on things of its own as well.
    """
    rng = np.random.default_rng([seed, permutation, 3])
    least = min(np.unique(objects[y == c]).size for c in np.unique(y))
    n_learn = max(2, round(LEARNS * least)) if n_learn is None else n_learn
    train, test, validates = np.zeros((3, y.size), bool)
    for c in np.unique(y):
        of_class = y == c
        known = of_class if things is None else of_class & chosen(things, of_class, LEARNS, rng)
        numbers = rng.permutation(np.unique(objects[known]))[:n_learn]
        learns = of_class & np.isin(objects, numbers)
        by = objects if things is None or np.unique(things[learns]).size == 1 else things
        train |= learns
        test |= of_class & ~(known if np.any(of_class & ~known) else learns)
        validates |= learns & ~chosen(by, learns, 1 - VALIDATES, rng)
    rows = rng.permutation(np.flatnonzero(train))
    inner = np.flatnonzero(~validates[rows])
    held = np.flatnonzero(validates[rows])
    return Split(rows, np.flatnonzero(test), inner, held, even_rounds(rows.size))


def chosen(groups, among, share, rng):
    """Mask of a share of the groups among some rows: at least one group, and not all unless it is one."""
    numbers = rng.permutation(np.unique(groups[among]))
    n = min(max(1, round(share * numbers.size)), max(1, numbers.size - 1))
    return among & np.isin(groups, numbers[:n])


def random_split(y, n_train, n_test, permutation, seed):
    """Stratified random split; three tenths of the training part are for validation."""
    draw = {"train_size": n_train, "stratify": y, "random_state": 1000 * seed + permutation}
    train, test = train_test_split(np.arange(y.size), **draw)
    train = np.random.default_rng([seed, permutation, 4]).permutation(train)
    inner, held = np.split(np.arange(n_train), [round(0.7 * n_train)])
    return Split(train, test[:n_test], inner, held, even_rounds(n_train))


class Distances:
    """Chi-squared distances among samples: `matrix`, (n, n) float32, computed when first used."""

    def __init__(self, X, n_jobs=1):
        self.X = X
        self.n_jobs = n_jobs

    @cached_property
    def matrix(self):
        return distance_matrix(self.X, "chi2", n_jobs=self.n_jobs)


class CueTask(NamedTuple):
    """Samples by cue, distances by cue, and splits by permutation; a cue without distances has an RBF on
    columns standardised over the training part."""

    data: datasets.CueData
    distances: dict
    splits: dict


@lru_cache(maxsize=2)
def original_images(name, tier):
    """KTH-IDOL2 ("idol2") or ETH-80 ("eth80"), an `ImageData`; None if not "original" or not there."""
    if tier != "original":
        return None
    place = os.environ.get("CUELEARN_DATA")
    # what is there must be whole: a damaged copy is an error, not a reason to take others
    if place and (Path(place) / name).is_dir():
        return load_original(name)
    print(f"bundled data in place of {name}, since CUELEARN_DATA names no directory with {name}/ in it")
    return None


def emoji_objects(n_views, seed):
    """Views of all drawings of `OBJECTS`, `y` the category; `frames` numbers each drawing as an "object"."""
    drawings = emoji()
    category = {thing: c for c, things in enumerate(OBJECTS.values()) for thing in things}
    rows = drawings_of([k for k, name in enumerate(drawings.names) if name in category])
    images = kept(seen, rows, n_views, seed)
    y = np.array([category[name] for name in drawings.names[images.frames["thing"]]])
    frames = images.frames | {"object": images.frames["drawing"]}
    return images._replace(y=y, target_names=list(OBJECTS), frames=frames)


def idol2_tasks(images, permutations, n_jobs=1):
    """Place recognition: a `CueTask` for each of the two training sets among the permutations.

    The visual vocabulary and the scale of the laser features are learnt on the training drives only.
    """
    plain = {}
    tasks = []
    for learns in (1, 2):
        splits = {k: idol2_split(images.frames, k) for k in permutations if idol2_permutation(k)[1] == learns}
        if splits:
            train = np.sort(next(iter(splits.values())).train)
            data = kept(image_cues, images, list(CAMERA_CUES), train=train, n_jobs=n_jobs)
            data = with_laser(data, images, train)
            distances = chi2_distances(data, CAMERA_CUES, n_jobs) | plain
            plain = {cue: distances[cue] for cue in distances if cue != "bow"}
            tasks.append(CueTask(data, distances, splits))
    return tasks


def with_laser(data, images, train):
    """`CAMERA_CUES` of a robot's images, learnt from the rows `train`, and ``laser``: all `ROBOT_CUES`.

    Features of the scans in ``images.frames`` are standardised over the same rows.
    """
    ranges = images.frames.get("laser")
    if ranges is None:
        raise ValueError("The cue 'laser' needs laser scans, but the images have none.")
    angles = np.linspace(-np.pi / 2, np.pi / 2, ranges.shape[1])
    features = standardised(laser_features(ranges, angles, images.frames["name"]), train)
    X = np.hstack([data.X, features.astype(np.float32)])
    n_words = data.cues["bow"].stop - data.cues["bow"].start
    words = f"{n_words} words learnt from {train.size} images"
    scale = f"laser features standardised over {train.size} frames"
    return data._replace(
        X=X,
        cues=data.cues | {"laser": slice(data.X.shape[1], X.shape[1])},
        feature_names=data.feature_names + [f"laser {name}" for name in LASER_FEATURE_NAMES],
        description=f"{images.description} Described by {', '.join(ROBOT_CUES)} ({words}; {scale}).",
    )


def object_task(images, permutations, seed, n_jobs=1):
    """Objects never seen, split by object: of emoji, by drawing."""
    data = kept(image_cues, images, list(OBJECT_CUES), n_jobs=n_jobs)
    splits = {k: object_split(images.y, images.frames["object"], k, seed) for k in permutations}
    return CueTask(data, chi2_distances(data, OBJECT_CUES, n_jobs), splits)


def thing_task(task, frames, permutations, seed):
    """The same views of drawings, split by thing."""
    split = partial(object_split, task.data.y, frames["object"], seed=seed, things=frames["family"])
    return task._replace(splits={k: split(permutation=k) for k in permutations})


def category_task(n_categories, n_learn, permutations, seed, n_jobs=1):
    """Subgroups of Unicode, `n_learn` drawings each, tested on things never seen."""
    groups = categories(n_categories)
    category = {thing: c for c, things in enumerate(groups.values()) for thing in things}
    rows = drawings_of(list(category))
    data = described(rows, CATEGORY_CUES, n_jobs=n_jobs)
    things = data.y
    y = np.array([category[thing] for thing in things])
    data = data._replace(y=y, target_names=list(groups))
    splits = {k: object_split(y, rows, k, seed, n_learn=n_learn, things=things) for k in permutations}
    return CueTask(data, chi2_distances(data, CATEGORY_CUES, n_jobs), splits)


def table_task(data, n_train, n_test, permutations, seed):
    """A bundled set of real data; one RBF for each of its cues."""
    splits = {k: random_split(data.y, n_train, n_test, k, seed) for k in permutations}
    return CueTask(data, {}, splits)


def chi2_distances(data, cues, n_jobs=1):
    return {cue: Distances(data.X[:, data.cues[cue]], n_jobs) for cue in cues}


def handed(task):
    """What a sweep gives to every run, a task, and what identifies it."""

    def measured():
        for distances in task.distances.values():
            distances.matrix  # noqa: B018 (once, here, not by every worker)
        return {"task": task}

    digest = hashlib.sha256()
    for array in (task.data.X, task.data.y, *(part for split in task.splits.values() for part in split)):
        digest.update(np.ascontiguousarray(array).tobytes())
    return {"common": measured, "data": [f"{task.data.provenance.source} {digest.hexdigest()}"]}


class Permutation:
    """One split of a `CueTask`: its labels (`truth`: of the test part), cues, distances and kernels.

    While `validating`, the inner part of the training samples trains and the part held back tests.
    """

    def __init__(self, task, split):
        self.task = task
        self.data = task.data
        self.split = split
        self.cues = list(task.data.cues)
        self.n_classes = len(task.data.target_names)
        self.labels = task.data.y[split.train]
        self.truth = task.data.y[split.test]
        self.computed = {}  # distances by name, of training and test samples to the training samples

    def distances(self, name):
        """Of the training and of the test samples to the former: of a cue or one of Flat's vectors."""
        if name not in self.computed:
            train = self.split.train
            parts = train, self.split.test
            if name in self.task.distances:
                matrix = self.task.distances[name].matrix
                self.computed[name] = [matrix[np.ix_(rows, train)] for rows in parts]
            else:
                vectors = self.data.X[:, self.data.cues.get(name, slice(None))].astype(np.float64)
                if name != "vectors":
                    vectors = standardised(vectors, train)
                self.computed[name] = [squared_distances(vectors[rows], vectors[train]) for rows in parts]
        return self.computed[name]

    def apart(self, name, validating=False):
        """Distances among training samples, and of test samples to these; the former's mean."""
        inside, across = self.distances(name)
        if validating:
            inner = self.split.inner
            across = inside[np.ix_(self.split.held, inner)]
            inside = inside[np.ix_(inner, inner)]
        return inside, across, mean_rule(inside)

    def kernels(self, names, factors, validating=False):
        """Kernels among training samples, (n_kernels, n, n), and of test samples to these."""
        inside = []
        across = []
        for name in names:
            own, other, mean = self.apart(name, validating)
            own = gaussian(own, factors[name] * mean)
            inside.append(0.5 * (own + own.T))  # in single precision a product is not symmetric to the bit
            across.append(gaussian(other, factors[name] * mean))
        return np.stack(inside), np.stack(across)

    def validation_error(self, model, inside, across):
        """Of an online learner, after one pass over the inner part."""
        model.partial_fit(inside, self.labels[self.split.inner], classes=np.arange(self.n_classes))
        held = self.labels[self.split.held]
        return mean_error(model.predict(across) != held, held, self.n_classes)

    def choose_widths(self, names, widths=FACTORS):
        """For every kernel the width, of `widths`, where the Perceptron errs least on the validation part
        (ties: the one nearest to 1); and that error."""
        nearest_first = sorted(widths, key=lambda f: abs(np.log(f)))
        factors = {}
        least = {}
        for name in names:
            own, other, mean = self.apart(name, validating=True)
            errors = []
            for f in nearest_first:
                kernels = gaussian(own, f * mean), gaussian(other, f * mean)
                errors.append(self.validation_error(KernelPerceptron("precomputed"), *kernels))
            factors[name] = nearest_first[first_best(np.negative(errors))]
            least[name] = min(errors)
        return factors, least


def gaussian(distances, width):
    return np.exp(distances * np.float32(-1.0 / width))


def squared_distances(left, right):
    """Squared Euclidean distances, float32, from centred columns."""
    centre = right.mean(axis=0)
    left = (left - centre).astype(np.float32)
    right = (right - centre).astype(np.float32)
    out = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2.0 * left @ right.T
    return np.maximum(out, 0.0, out=out)


def standardised(X, train):
    """Columns with mean 0 and deviation 1 over the training rows."""
    deviation = X[train].std(axis=0)
    return (X - X[train].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def class_errors(wrong, y, n_classes):
    """Share of wrong predictions for each class; NaN for a class without samples."""
    return np.array([wrong[y == c].mean() if np.any(y == c) else np.nan for c in range(n_classes)])


def mean_error(wrong, y, n_classes):
    """Every class counts alike, as in the thesis' tables."""
    return float(np.nanmean(class_errors(wrong, y, n_classes)))
