"""Pairs of keywords and of categories of emoji, 15 kinds of features times four kernels; pairs of leaves.

A label takes part if 100 drawings of ten families have it (`full`: 60 of eight), and a pair if as much is
left on either side without the things that have both. A seed draws pairs, no label twice; the larger side is
cut, so that chance is one half. Of the hundred species of leaves groups of four are drawn, and a pair is one
group against the next. The paper's own pairs are those of Corel5k.
"""

from functools import cache, lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold

from companion.pictures import described, drawings_of, emoji, things
from companion.protocol import load_set
from cuelearn.datasets import KIND_CUES
from cuelearn.oks.kernels import kind_kernels, with_widths

SEED = 0  # of the pairs and their drawings; what varies with the seeds of a run are the splits
LEAST = (100, 10)  # drawings and families of a label
TEST_PARTS = 3  # a third of the families, or of the leaves of each species, tests
HELD_PARTS = 4  # a quarter of the training families is held back
TENTH = 10  # as in the paper, of Corel5k's pictures a tenth tests, and a tenth is held back
GROUP = 4  # species on either side of a pair of leaves


class Pair(NamedTuple):
    """A binary task, labels 0 and 1; `kernels` with numbers for scale."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    kernels: list
    families: np.ndarray  # of the training samples: one is never on both sides
    half: np.ndarray  # 0 or 1 of each test sample: what is ranked on one half is judged on the other
    held_parts: int = HELD_PARTS
    drawings: tuple = ()  # rows of the emoji


def _has(kind, label):
    """Which things have a label."""
    if kind == "keyword":
        return emoji().keywords[:, emoji().keyword_names.tolist().index(label)] == 1
    return emoji().subgroup == label


@cache
def _only(kind, label, other=None):
    """Things that have a label and not the other."""
    among = _has(kind, label)
    return things(among=among if other is None else among & ~_has(kind, other))


def _many(side, least):
    """Whether things are enough for one side of a pair."""
    enough = emoji().n_drawings()[side].sum() >= least[0]
    return enough and np.unique(emoji().family[side]).size >= least[1]


@cache
def pairs(kind, n, least=LEAST):
    """The first n tasks of the rule, such as "keyword bird/fruit"; "leaves 3/4" are groups of species."""
    if kind == "leaves":
        return [f"leaves {k}/{k + 1}" for k in range(1, 2 * n, 2)]
    labels = emoji().keyword_names.tolist() if kind == "keyword" else np.unique(emoji().subgroup).tolist()
    labels = [label for label in labels if _many(_only(kind, label), least)]
    fit = [p for p in combinations(labels, 2) if all(_many(_only(kind, *q), least) for q in (p, p[::-1]))]
    chosen = []
    taken = set()
    for k in np.random.default_rng([SEED, kind == "keyword"]).permutation(len(fit)):
        if taken.isdisjoint(fit[k]):
            chosen.append(f"{kind} {'/'.join(fit[k])}")
            taken.update(fit[k])
    return chosen[:n]


def apart(labels, groups, n_parts, rng):
    """Rows that learn, and one of n_parts that does not: whole groups, of each class as many as they let."""
    folds = StratifiedGroupKFold(n_parts, shuffle=True, random_state=int(rng.integers(2**31)))
    return list(folds.split(labels, labels, groups))[int(rng.integers(n_parts))]


def held_apart(pair, rng):
    """Training rows of a pair that learn, and that choose parameters."""
    return apart(pair.y_train, pair.families, pair.held_parts, rng)


def _pair(X_train, y_train, X_test, y_test, kernels, families, test_families, rng, **more):
    """A `Pair`; its halves have whole families, or single samples where one would lack a label."""
    for groups in (test_families, np.arange(y_test.size)):
        half = np.zeros(y_test.size, dtype=int)
        half[apart(y_test, groups, 2, rng)[1]] = 1
        if np.unique(np.stack([y_test, half]), axis=1).shape[1] == 2 * np.unique(y_test).size:
            break
    return Pair(X_train, y_train, X_test, y_test, with_widths(kernels, X_train), families, half, **more)


def _of_corel5k(name, n_pictures, rng):
    """Images with one of two keywords, not both, described by their visual terms."""
    data = load_set("corel5k")
    first, second = (list(data.target_names).index(word) for word in name.partition(" ")[2].split("/"))
    rows = np.flatnonzero(data.y[:, first] != data.y[:, second])
    labels = data.y[rows, second].astype(np.int64)
    X = data.X[rows].astype(np.float64)
    train, test = apart(labels, rows, TENTH, rng)
    train = rng.permutation(train)[:n_pictures]
    kernels = kind_kernels({"terms": slice(0, 499)})
    samples = X[train], labels[train], X[test], labels[test]
    return _pair(*samples, kernels, rows[train], test, rng, held_parts=TENTH)


def _species(group):
    """The species of a group, counted from 1."""
    rng = np.random.default_rng([SEED, 2])
    species = np.unique(load_set("leaves").y)
    drawn, group = divmod(group - 1, species.size // GROUP // 2 * 2)
    order = [rng.permutation(species) for _ in range(drawn + 1)][-1]
    return order[GROUP * group : GROUP * (group + 1)]


def _of_leaves(name, rng):
    """Leaves of one group of species and of another; of each species as many test."""
    data = load_set("leaves")
    sides = [_species(int(group)) for group in name.partition(" ")[2].split("/")]
    rows = np.flatnonzero(np.isin(data.y, sides))
    labels = np.isin(data.y[rows], sides[1]).astype(np.int64)
    X = data.X[rows]
    train, test = apart(data.y[rows], rows, TEST_PARTS, rng)
    train = rng.permutation(train)
    samples = X[train], labels[train], X[test], labels[test]
    return _pair(*samples, kind_kernels(data.cues), rows[train], test, rng)


def drawings(name, n_drawings, rng):
    """Rows of a pair's drawings, as many on either side, n_drawings at most, and their labels."""
    kind, _, rest = name.partition(" ")
    words = rest.split("/")
    sides = [rng.permutation(drawings_of(_only(kind, *pair))) for pair in (words, words[::-1])]
    n = min(n_drawings, *map(len, sides))
    return np.concatenate([side[:n] for side in sides]), np.repeat([0, 1], n)


@lru_cache(maxsize=1)
def _all_emoji(places, n_drawings, n_views, n_jobs):
    """Drawings and labels by name of a pair, all drawings, their description: the same for every split."""
    parts = {name: drawings(name, n_drawings, np.random.default_rng([SEED, 4, k])) for k, name in places}
    union = np.unique(np.concatenate([rows for rows, _ in parts.values()]))
    return parts, union, described(union, KIND_CUES, n_views=n_views, n_jobs=n_jobs)


def _of_emoji(name, n_views, rng, parts, union, data):
    """Training samples are all views of a drawing, in a random order; test samples the drawings."""
    rows, labels = parts[name]
    families = emoji().family[emoji().thing[rows]]
    X = data.X.reshape(union.size, n_views, -1)[np.searchsorted(union, rows)]
    train, test = apart(labels, families, TEST_PARTS, rng)
    views = rng.permutation((train[:, None] * n_views + np.arange(n_views)).ravel())
    train, view = np.divmod(views, n_views)
    samples = X[train, view], labels[train], X[test, 0], labels[test]
    sides = {"drawings": (rows[train], rows[test])}
    return _pair(*samples, kind_kernels(data.cues), families[train], families[test], rng, **sides)


def describe_pairs(names, seed, n_drawings, n_views=1, n_pictures=None, n_jobs=1, only=None):
    """A `Pair` for each task by name, or for `only` some; the seed is of the splits by family."""
    numbered = list(enumerate(names))
    places = tuple((k, name) for k, name in numbered if name.split()[0] in ("keyword", "category"))
    pairs_by_name = {}
    for k, name in numbered:
        if only is not None and name not in only:
            continue
        rng = np.random.default_rng([seed, 6, k])
        if name.startswith("leaves"):
            pairs_by_name[name] = _of_leaves(name, rng)
        elif name.startswith("corel5k"):
            pairs_by_name[name] = _of_corel5k(name, n_pictures, rng)
        else:
            described_emoji = _all_emoji(places, n_drawings, n_views, n_jobs)
            pairs_by_name[name] = _of_emoji(name, n_views, rng, *described_emoji)
    return pairs_by_name
