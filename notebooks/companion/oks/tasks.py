"""Pairs of keywords and of categories of emoji, 15 kinds of features times four kernels; pairs of leaves.

A label takes part if 100 drawings of ten families have it (`full`: 60 of eight), and a pair if as much is
left on either side without the things that have both. A seed draws pairs, no label twice; the larger side is
cut, so that chance is one half. Of the hundred species of leaves groups of four are drawn, and a pair is one
group against the next. A third of the families, or of the leaves of each species, tests. The paper's own
pairs are those of Corel5k.
"""

from functools import cache, lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold

from companion.pictures import described, drawings_of, emoji, things
from companion.protocol import load_set
from cuelearn.datasets import KIND_CUES
from cuelearn.oks.sources import kind_kernels, with_widths

SEED = 0  # of the pairs and their drawings; what varies with the seeds of a run are the splits
LEAST = (100, 10)  # drawings and families of a label
TEST_PARTS = 3  # a third of the families tests; of Corel5k's pictures a tenth, as in the paper
HELD_PARTS = 4  # a quarter of the training families is held back; of Corel5k's pictures a tenth
TENTH = 10
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


@cache
def _labelled(kind):
    """Names of all labels of a kind, and which things have each: bool (n_things, n_labels)."""
    if kind == "keyword":
        return emoji().keyword_names.tolist(), emoji().keywords.astype(bool)
    names = np.unique(emoji().subgroup)
    return names.tolist(), emoji().subgroup[:, None] == names


def _only(kind, label, other=None):
    """Things that have a label and not the other."""
    names, has = _labelled(kind)
    among = has[:, names.index(label)]
    return things(among=among if other is None else among & ~has[:, names.index(other)])


def _many(side, least):
    """Whether things are enough for one side of a pair."""
    enough = emoji().n_drawings()[side].sum() >= least[0]
    return enough and np.unique(emoji().family[side]).size >= least[1]


@cache
def pairs(kind, n, least=LEAST):
    """The first n tasks of the rule, such as "keyword bird/fruit"; "leaves 3/4" are groups of species."""
    if kind == "leaves":
        return [f"leaves {k}/{k + 1}" for k in range(1, 2 * n, 2)]
    labels = [name for name in _labelled(kind)[0] if _many(_only(kind, name), least)]
    fit = combinations(labels, 2)
    fit = [p for p in fit if all(_many(_only(kind, *sides), least) for sides in (p, p[::-1]))]
    chosen, taken = [], set()
    for k in np.random.default_rng([SEED, kind == "keyword"]).permutation(len(fit)):
        if not taken & {*fit[k]}:
            chosen.append(f"{kind} {'/'.join(fit[k])}")
            taken |= {*fit[k]}
    return chosen[:n]


def apart(labels, groups, n_parts, rng):
    """Rows that learn, and one of n_parts that does not: whole groups, of each class as many as they let."""
    folds = StratifiedGroupKFold(n_parts, shuffle=True, random_state=int(rng.integers(2**31)))
    return list(folds.split(labels, labels, groups))[int(rng.integers(n_parts))]


def held_apart(pair, rng):
    """Training rows of a pair that learn, and that choose parameters."""
    return apart(pair.y_train, pair.families, pair.held_parts, rng)


def _halves(labels, groups, rng):
    """0 or 1 for each sample: whole groups apart, or single samples where a half would lack a label."""
    for apart_are in (groups, np.arange(labels.size)):
        half = np.zeros(labels.size, dtype=int)
        half[apart(labels, apart_are, 2, rng)[1]] = 1
        if np.unique(np.stack([labels, half]), axis=1).shape[1] == 2 * np.unique(labels).size:
            break
    return half


def drawings(name, n_drawings, rng):
    """Rows of a pair's drawings, as many on either side, n_drawings at most, and their labels."""
    kind, _, rest = name.partition(" ")
    words = rest.split("/")
    sides = [rng.permutation(drawings_of(_only(kind, *pair))) for pair in (words, words[::-1])]
    n = min(n_drawings, *map(len, sides))
    return np.concatenate([side[:n] for side in sides]), np.repeat([0, 1], n)


def _widths(kernels, X):
    """Numbers for gamma, the columns as slices."""
    numbers = with_widths(kernels, X)
    return [(name, k, columns) for (name, k, _), (_, _, columns) in zip(numbers, kernels, strict=True)]


def _of_corel5k(name, n_pictures, rng):
    """Images with one of two keywords, not both, described by their visual terms."""
    data = load_set("corel5k")
    first, second = (list(data.target_names).index(word) for word in name.partition(" ")[2].split("/"))
    rows = np.flatnonzero(data.y[:, first] != data.y[:, second])
    labels = data.y[rows, second].astype(np.int64)
    train, test = apart(labels, rows, TENTH, rng)
    train, X = rng.permutation(train)[:n_pictures], data.X[rows].astype(np.float64)
    kernels = _widths(kind_kernels({"terms": slice(0, 499)}), X[train])
    half = _halves(labels[test], test, rng)
    return Pair(X[train], labels[train], X[test], labels[test], kernels, rows[train], half, TENTH)


def _species(group):
    """The species of a group, counted from 1."""
    rng, species = np.random.default_rng([SEED, 2]), np.unique(load_set("leaves").y)
    drawn, group = divmod(group - 1, species.size // GROUP // 2 * 2)
    order = [rng.permutation(species) for _ in range(drawn + 1)][-1]
    return order[GROUP * group : GROUP * (group + 1)]


def _of_leaves(name, rng):
    """Leaves of one group of species and of another; of each species as many test."""
    data = load_set("leaves")
    sides = [_species(int(group)) for group in name.partition(" ")[2].split("/")]
    rows = np.flatnonzero(np.isin(data.y, sides))
    species, labels, X = data.y[rows], np.isin(data.y[rows], sides[1]).astype(np.int64), data.X[rows]
    train, test = apart(species, rows, TEST_PARTS, rng)
    train, half = rng.permutation(train), _halves(labels[test], test, rng)
    kernels = _widths(kind_kernels(data.cues), X[train])
    return Pair(X[train], labels[train], X[test], labels[test], kernels, rows[train], half)


@lru_cache(maxsize=1)
def _emoji_of(places, n_drawings, n_views, n_jobs):
    """Drawings and labels by name of a pair, all drawings, their description: the same for every split."""
    parts = {n: drawings(n, n_drawings, np.random.default_rng([SEED, 4, k])) for k, n in places}
    union = np.unique(np.concatenate([rows for rows, _ in parts.values()]))
    return parts, union, described(union, KIND_CUES, n_views=n_views, n_jobs=n_jobs)


def describe_pairs(names, seed, n_drawings, n_views=1, n_pictures=None, n_jobs=1, only=None):
    """A `Pair` for each task by name, or for `only` some; the seed is of the splits by family.

    Training samples are all views of a drawing, in a random order; test samples the drawings themselves.
    """
    rngs = {name: np.random.default_rng([seed, 6, k]) for k, name in enumerate(names)}
    own = {"corel5k": lambda name, rng: _of_corel5k(name, n_pictures, rng), "leaves": _of_leaves}
    places, parts, out = tuple((k, n) for k, n in enumerate(names) if n.split()[0] not in own), {}, {}
    wanted = names if only is None else only
    if any(name.split()[0] not in own for name in wanted):
        parts, union, data = _emoji_of(places, n_drawings, n_views, n_jobs)
        X = data.X.reshape(union.size, n_views, -1)
    for name in wanted:
        if name not in parts:
            out[name] = own[name.split()[0]](name, rngs[name])
            continue
        rows, labels = parts[name]
        families = emoji().family[emoji().thing[rows]]
        train, test = apart(labels, families, TEST_PARTS, rngs[name])
        train = rngs[name].permutation(
            np.repeat(train, n_views) * n_views + np.tile(range(n_views), train.size)
        )
        train, view = np.divmod(train, n_views)
        place = np.searchsorted(union, rows)
        X_train, X_test = X[place[train], view], X[place[test], 0]
        half = _halves(labels[test], families[test], rngs[name])
        kernels = _widths(kind_kernels(data.cues), X_train)
        sides = rows[train], rows[test]
        out[name] = Pair(
            X_train, labels[train], X_test, labels[test], kernels, families[train], half, drawings=sides
        )
    return out
