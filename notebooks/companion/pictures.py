"""Emoji as the chapters' real pictures: which drawings take part, and their cues, kept on disk.

What is drawn at random here is drawn once, by `SEED`: what varies over runs are the splits.
"""

import hashlib
import os
from functools import cache
from pathlib import Path

import joblib
import numpy as np

import cuelearn
from companion import CHECKOUT
from companion.run.sweep import file_lock
from cuelearn.datasets import image_cues, load_emoji
from cuelearn.datasets.base import CueData, data_directory
from cuelearn.datasets.cues import CUES, VALUES, describe
from cuelearn.datasets.descriptors import BagOfWords

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
