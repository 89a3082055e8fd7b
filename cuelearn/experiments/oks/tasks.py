"""Pairs of keywords and of categories of emoji, with 60 kernels: 15 kinds of features times four.

The rule: a label takes part if 100 drawings of ten families or more have it, and a pair if as much is left on
either side without the things that have both. Of these pairs a seed draws one after the other, no label
twice. The side with more drawings is cut to the other's number, so that chance is one half; a third of the
families tests. The papers' own pairs are those of Corel5k.
"""

from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold

from cuelearn.datasets.grids import KIND_CUES
from cuelearn.experiments.pictures import described, drawings_of, emoji, things
from cuelearn.experiments.protocol import load_set
from cuelearn.oks.sources import kind_kernels, with_widths

SEED = 0  # of the pairs; what varies with the chapter's seed are the splits
LEAST_DRAWINGS, LEAST_FAMILIES = 100, 10
TEST_PARTS = 3  # a third of the families tests; of Corel5k's pictures a tenth, as in the paper
HELD_PARTS = 4  # a quarter of the training families is held back; where each picture is alone, a tenth
TENTH = 10


class Pair(NamedTuple):
    """A binary task, labels 0 and 1; `kernels` are (name, kernel, columns) with numbers for gamma.

    `families` of the training samples are on one side wherever some are held back. `drawings` are the rows of
    the emoji that train, then those that test.
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    kernels: list
    families: np.ndarray
    drawings: tuple = ()


@cache
def _labelled(kind):
    """Names of all labels of a kind, and which things have each: bool (n_things, n_labels)."""
    if kind == "keyword":
        return emoji().keyword_names.tolist(), emoji().keywords.astype(bool)
    names = np.unique(emoji().subgroup)
    return names.tolist(), emoji().subgroup[:, None] == names


def _only(kind, one, other=None):
    """Things that have a label and not the other."""
    names, has = _labelled(kind)
    mine = has[:, names.index(one)]
    return things(among=mine if other is None else mine & ~has[:, names.index(other)])


def _many(some):
    """Whether things are enough for one side of a pair."""
    enough = emoji().n_drawings()[some].sum() >= LEAST_DRAWINGS
    return enough and np.unique(emoji().family[some]).size >= LEAST_FAMILIES


@cache
def pairs(kind, n):
    """The first n tasks of the rule, such as "keyword bird/fruit"; of kind "keyword" or "category"."""
    labels = [name for name in _labelled(kind)[0] if _many(_only(kind, name))]
    fit = [p for p in combinations(labels, 2) if _many(_only(kind, *p)) and _many(_only(kind, *p[::-1]))]
    found, taken = [], set()
    for k in np.random.default_rng([SEED, kind == "keyword"]).permutation(len(fit)):
        if not taken & {*fit[k]}:
            found.append(f"{kind} {'/'.join(fit[k])}")
            taken |= {*fit[k]}
    return found[:n]


def apart(labels, groups, n_parts, rng):
    """Rows that learn, and one of n_parts that does not: whole groups, of each class as many as they let."""
    folds = StratifiedGroupKFold(n_parts, shuffle=True, random_state=int(rng.integers(2**31)))
    return list(folds.split(labels, labels, groups))[int(rng.integers(n_parts))]


def held_apart(pair, rng):
    """Training rows of a pair that learn, and that choose parameters."""
    alone = np.unique(pair.families).size == pair.families.size
    return apart(pair.y_train, pair.families, TENTH if alone else HELD_PARTS, rng)


def drawings(name, n_drawings, rng):
    """Rows of a pair's drawings, as many on either side, n_drawings at most, and their labels."""
    kind, _, rest = name.partition(" ")
    one, two = rest.split("/")
    sides = [rng.permutation(drawings_of(_only(kind, *p))) for p in ((one, two), (two, one))]
    n = min(n_drawings, *map(len, sides))
    return np.concatenate([side[:n] for side in sides]), np.repeat([0, 1], n)


def _of_corel5k(name, n_drawings, rng):
    """Images with one of two keywords, not both, described by their visual terms."""
    data = load_set(name)
    one, two = (list(data.target_names).index(word) for word in name.partition(" ")[2].split("/"))
    rows = np.flatnonzero(data.y[:, one] != data.y[:, two])
    labels = data.y[rows, two].astype(np.int64)
    train, test = apart(labels, rows, TENTH, rng)
    train, X = rng.permutation(train)[: 2 * n_drawings], data.X[rows].astype(np.float64)
    kernels = with_widths(kind_kernels({"terms": slice(0, 499)}), X[train])
    return Pair(X[train], labels[train], X[test], labels[test], kernels, rows[train])


def describe_pairs(names, seed, n_drawings, n_views=1, n_jobs=1):
    """A `Pair` for each task, by name, from one description of all drawings in any of them.

    The seed is of the choice of drawings and of the splits by family. Training samples are all views of a
    drawing, in an order drawn at random; test samples the drawings themselves.
    """
    rngs = {name: np.random.default_rng([seed, 4, k]) for k, name in enumerate(names)}
    parts = {n: drawings(n, n_drawings, rngs[n]) for n in names if not n.startswith("corel5k")}
    if parts:
        union = np.unique(np.concatenate([rows for rows, _ in parts.values()]))
        data = described(union, KIND_CUES, n_views=n_views, n_jobs=n_jobs)
        X = data.X.reshape(union.size, n_views, -1)
    out = {}
    for name in names:
        if name not in parts:
            out[name] = _of_corel5k(name, n_drawings, rngs[name])
            continue
        rows, labels = parts[name]
        families = emoji().family[emoji().thing[rows]]
        train, test = apart(labels, families, TEST_PARTS, rngs[name])
        train = rngs[name].permutation(
            np.repeat(train, n_views) * n_views + np.tile(range(n_views), train.size)
        )
        train, view = np.divmod(train, n_views)
        place = np.searchsorted(union, rows)
        mine, theirs = X[place[train], view], X[place[test], 0]
        kernels = with_widths(kind_kernels(data.cues), mine)
        sides = rows[train], rows[test]
        out[name] = Pair(mine, labels[train], theirs, labels[test], kernels, families[train], sides)
    return out
