"""Emoji as the chapters' real pictures: which drawings take part, and their cues, kept on disk.

What is drawn at random here is drawn once, by `SEED`: what varies over runs are the splits.
"""

import hashlib
import os
from functools import cache
from pathlib import Path

import numpy as np

import cuelearn
from cuelearn.core.storage import atomic_write
from cuelearn.datasets import image_cues, load_emoji
from cuelearn.datasets.base import CueData
from cuelearn.datasets.cues import CUES, describe
from cuelearn.datasets.grids import VALUES
from cuelearn.datasets.words import BagOfWords

CHECKOUT = Path(cuelearn.__file__).resolve().parents[1]
#: Folders of the package that describe no picture.
OTHERS = ("book", "experiments", "kernels", "mkl", "mktl", "mms", "oks", "omcl", "plots")
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
    found = emoji().unlike(things(least))
    names, sizes = np.unique(emoji().subgroup[found], return_counts=True)
    most = np.sort(names[np.argsort(-sizes, kind="stable")[:n]]).tolist()
    return {name: found[emoji().subgroup[found] == name] for name in most}


def described(rows, cues, *, n_views=1, n_jobs=1):
    """A `CueData` of drawings before their backgrounds, `y` the thing: a row for each view of each drawing.

    Visual words are learnt from `word_things`, whatever is described. What was found is kept under
    ``.cache/cues``, and made anew where a source or the pictures changed.
    """
    rows, cues = np.asarray(rows), list(cues)
    vocabularies = {CUES[cue].words: cue for cue in cues if CUES[cue].words}

    def describe_all():
        images = emoji().on_backgrounds(rows=rows, n_views=n_views, random_state=SEED)
        words = {name: _vocabulary(name, cue, n_jobs) for name, cue in vocabularies.items()}
        data = image_cues(images, cues, vocabulary=words, n_jobs=n_jobs)
        return np.array([part.stop for part in data.cues.values()]), data.X

    identity = rows.tolist(), cues, n_views, list(vocabularies)
    ends, X = _kept(describe_all, ("ends", "X"), *identity)
    ends = ends.tolist()
    columns = {cue: slice(a, b) for cue, a, b in zip(cues, [0, *ends], ends, strict=False)}
    names = [f"{cue} {k}" for cue, part in columns.items() for k in range(part.stop - part.start)]
    y = np.repeat(emoji().thing[rows], n_views)
    told = f"{emoji().description.removesuffix('.')}, before plain colours.", emoji().provenance
    return CueData(X, y, columns, None, None, names, emoji().names.tolist(), *told)


def _vocabulary(name, cue, n_jobs):
    """Words learnt from the drawings of `word_things`, as one of their cues describes these."""
    bag = BagOfWords(N_WORDS, step=STEP)

    def learn():
        images = emoji().on_backgrounds(rows=drawings_of(word_things()), random_state=SEED)
        found = describe(images, [cue], step=STEP, n_jobs=n_jobs)[cue]
        return (bag.fit([one.descriptors for one in found]).words_,)

    (bag.words_,) = _kept(learn, ("words",), name)
    return bag


def _kept(make, names, *identity):
    """Arrays, as named, that `make` makes or made before: mapped, so that processes share them, unread."""
    key = f"{_sources()} {emoji().provenance.sha256} {(SEED, N_WORDS, STEP, *identity)}"
    place = Path(os.environ.get("CUELEARN_CACHE") or CHECKOUT / ".cache") / "cues"
    short = hashlib.sha256(key.encode()).hexdigest()[:24]
    files = [place / f"{short}-{name}.npy" for name in names]
    if not all(file.is_file() for file in files):
        place.mkdir(parents=True, exist_ok=True)
        for file, array in zip(files, make(), strict=True):
            atomic_write(file, lambda out, array=array: np.save(out, array))
    return [np.load(file, mmap_mode="c").view(np.ndarray) for file in files]


@cache
def _sources():
    """Fingerprint of what describes pictures."""
    return cuelearn.source_hash(tuple(f"{name}/*" for name in OTHERS), code_only=True)
