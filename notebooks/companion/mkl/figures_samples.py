"""Many samples: explicit features beside exact kernels and linear classifiers, to a million digits; texts."""

import ast
import ctypes
import importlib.util
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from numba import njit
from scipy.spatial.distance import pdist
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from companion.plots import mkl as draw
from companion.protocol import fitted, grid_points, load_set, made_here, original, timed, where
from companion.run.figures import enumerated
from companion.run.registry import figure
from companion.study import Study, choose, edges
from cuelearn.datasets import Provenance
from cuelearn.kernels import RBF, FeatureMap
from cuelearn.kernels.features import taken
from cuelearn.mkl import OM2, UFOMKL

#: Of the Gaussian kernels on each quarter of a digit, times the mean squared distance.
WIDTHS = (0.25, 1.0, 4.0)
#: Those of MKL, and linear classifiers on the features of all cues joined.
DIGITS = {
    "OM2": "OM-2, one pass",
    "UFOMKL one pass": "UFO-MKL, one pass",
    "UFOMKL": "UFO-MKL, certified",
    "UFOMKL exact": "UFO-MKL, exact kernels, certified",
    "SGD": "SGD, one pass",
    "LinearSVC": "LinearSVC",
}
TEXTS = {
    "OM2": "OM-2, one pass",
    "UFOMKL": "UFO-MKL, certified",
    "UFOMKL documentation": "UFO-MKL, documentation alone",
    "UFOMKL code": "UFO-MKL, code alone",
    "SGD": "SGD, one pass",
    "LinearSVC": "LinearSVC",
}
#: Methods without the parameter C.
WITHOUT_C = ("OM2",)
#: Samples that are read at a time.
BATCH = 10_000
#: Which of these has a function been taken from?
LIBRARIES = ("matplotlib", "networkx", "numba", "numpy", "pandas", "scipy", "skimage", "sklearn")
MEMORY = 2e9
JITTERED = made_here("jittered digits", "companion.mkl.figures_samples.jittered_digits")
FUNCTIONS = Provenance(
    "functions of eight libraries",
    "bundled",
    "BSD",
    None,
    "documentation and code of matplotlib, networkx, numba, numpy, pandas, scipy, scikit-image, scikit-learn",
    "companion.mkl.figures_samples.corpus",
)


# --- digits -------------------------------------------------------------------------------------------------


#: Pixels of margin, by which a digit may move.
MARGIN = 2


@njit
def move_digits(images, digits, downs, rights, out):
    """Write digits that are moved within their margin, quarter by quarter as `load_mnist` has them."""
    for i in range(out.shape[0]):
        k = 0
        for quarter in range(4):
            top = downs[i] + 14 * (quarter // 2)
            left = rights[i] + 14 * (quarter % 2)
            for row in range(14):
                for column in range(14):
                    out[i, k] = images[digits[i], top + row, left + column]
                    k += 1


def jittered_digits(n):
    """The 60,000 training digits, then these moved by up to two pixels in each direction, never twice alike:
    (X, y) in batches."""
    data = load_set("mnist")
    n_digits = data.train.size
    images = np.zeros((n_digits, 28 + 2 * MARGIN, 28 + 2 * MARGIN), dtype=np.float32)
    plain = np.empty((n_digits, 784), dtype=np.float32)
    plain[:, data.pixels] = data.X[data.train]
    images[:, MARGIN:-MARGIN, MARGIN:-MARGIN] = plain.reshape(-1, 28, 28)
    width = 2 * MARGIN + 1
    unmoved = MARGIN * width + MARGIN
    others = np.delete(np.arange(width**2), unmoved)
    for start in range(0, n, BATCH):
        number = np.arange(start, min(start + BATCH, n))
        digit = number % n_digits
        turn = number // n_digits
        move = np.where(turn == 0, unmoved, others[(turn - 1 + digit) % others.size])
        X = np.empty((number.size, 784), dtype=np.float32)
        move_digits(images, digit, move // width, move % width, X)
        yield X, data.y[digit]


def digits(n, n_test, seed, held_back):
    """Training samples, as batches beyond 60,000, and others to predict: the first test digits, or
    `held_back` of the training digits."""
    data = load_set("mnist")
    new = data.test[:n_test]
    if n > data.train.size:
        return (lambda: jittered_digits(n)), None, data.X[new], data.y[new]
    rows = np.random.default_rng([seed, 1]).permutation(data.train)[:n]
    fit = rows
    if held_back:
        new, fit = np.split(rows, [held_back])
    return data.X[fit], data.y[fit], data.X[new], data.y[new]


def gaussian_kernels(X, columns_of, n_components, seed):
    """Gaussian kernels of three widths on each cue, exact, or of random Fourier features."""
    cues = []
    for cue, columns in columns_of.items():
        mean = np.mean(pdist(X[:500, columns], "sqeuclidean"))
        for width in WIDTHS:
            gamma = 1.0 / (width * mean)
            kernel = RBF(gamma=gamma)
            if n_components:
                state = 1000 * seed + len(cues)
                kernel = FeatureMap(RBFSampler(gamma=gamma, n_components=n_components, random_state=state))
            cues.append((f"{cue}, {width:g}", kernel, columns))
    return cues


def digit_kernels(X, n_components, seed):
    return gaussian_kernels(X, load_set("mnist").cues, n_components, seed)


# --- forest -------------------------------------------------------------------------------------------------

#: Columns of covtype: quantities, and what is 0 or 1.
QUANTITIES, AREAS, SOILS = slice(0, 10), slice(10, 14), slice(14, 54)


def forest(n, n_test, seed, held_back):
    """Patches of covtype to train from and to predict, quantities in standard deviations."""
    data = load_set("covtype")
    rows = np.random.default_rng([seed, 4]).permutation(data.y.size)
    new, fit = np.split(rows[: n_test + n], [n_test])
    if held_back:
        new, fit = np.split(fit, [held_back])
    X = data.X[rows[: n_test + n]]
    mean, deviation = X[:, QUANTITIES].mean(axis=0), X[:, QUANTITIES].std(axis=0)
    parts = []
    for chosen in (fit, new):
        X = np.array(data.X[chosen], dtype=np.float32)
        X[:, QUANTITIES] = (X[:, QUANTITIES] - mean) / deviation
        parts += [X, data.y[chosen]]
    return parts


def forest_kernels(X, n_components, seed):
    """Gaussian kernels of three widths on the quantities, exact or of random Fourier features, and linear
    ones on areas and soils."""
    cues = gaussian_kernels(X, {"quantities": QUANTITIES}, n_components, seed)
    plain = FeatureMap(FunctionTransformer())
    return [*cues, ("areas", plain, AREAS), ("soils", plain, SOILS)]


# --- texts --------------------------------------------------------------------------------------------------


def functions_of(library, n_files):
    """Of the functions and classes of a library with ten words of documentation or more: file, first
    paragraph, names in the code."""
    folder = Path(importlib.util.find_spec(library).origin).parent
    files = [file for file in sorted(folder.rglob("*.py")) if "test" not in str(file.relative_to(folder))]
    if n_files < len(files):
        files = [files[k] for k in np.linspace(0, len(files) - 1, n_files).astype(int)]
    rows = []
    for file in files:
        for node in ast.walk(ast.parse(file.read_bytes())):
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                continue
            text = ast.get_docstring(node) or ""
            if len(text.split()) < 10:
                continue
            names = []
            for part in ast.walk(node):
                names += [getattr(part, kind) for kind in ("id", "attr", "arg") if hasattr(part, kind)]
            code = " ".join(name for name in names if isinstance(name, str))
            rows.append((str(file), text.split("\n\n")[0], code))
    return pd.DataFrame(rows, columns=["file", "documentation", "code"]).drop_duplicates("documentation")


@lru_cache(maxsize=1)
def corpus(n_files):
    parts = [functions_of(library, n_files).assign(library=library) for library in LIBRARIES]
    return pd.concat(parts, ignore_index=True)


def texts(table, seed, held_back):
    """Two columns of texts and their library, to train from and to predict; no file is on both sides. The
    test part is a third, and with `held_back` a third of the rest."""
    rows = np.arange(len(table))
    for state in range(1 + bool(held_back)):
        split = GroupShuffleSplit(1, test_size=1 / 3, random_state=10 * seed + state)
        fit, new = next(split.split(rows, groups=table["file"].to_numpy()[rows]))
        rows, new = rows[fit], rows[new]
    rows = np.random.default_rng([seed, 3]).permutation(rows)
    X, y = table[["documentation", "code"]], table["library"].to_numpy()
    return X.iloc[rows], y[rows], X.iloc[new], y[new]


def words(n_features):
    """Transformer of a column of texts: words, and pairs of neighbours."""
    return HashingVectorizer(n_features=n_features, ngram_range=(1, 2), alternate_sign=False)


def text_kernels(n_features):
    return [(cue, FeatureMap(words(n_features)), [k]) for k, cue in enumerate(("documentation", "code"))]


# --- one fit ------------------------------------------------------------------------------------------------


def peak_memory(reset=False):
    """Bytes that the process held at most since the last reset, and what it holds; NaN where the system does
    not say so."""
    try:
        if reset:
            ctypes.CDLL(None).malloc_trim(0)  # what is free goes back to the system
            Path("/proc/self/clear_refs").write_text("5")
        lines = Path("/proc/self/status").read_text().splitlines()
    except (OSError, AttributeError):
        return np.nan, np.nan
    held = dict(line.split(":", 1) for line in lines)
    return tuple(1024.0 * int(held[name].split()[0]) for name in ("VmHWM", "VmRSS"))


def joined(cues):
    """The features of all cues side by side, each cue's about of length 1 as in MKL."""
    return make_column_transformer(*((kernel.transformer, _columns(columns)) for _, kernel, columns in cues))


def _columns(columns):
    """A column of texts is named by its number, others by a slice."""
    return columns[0] if isinstance(columns, list) else columns


def batches_of(X, y, seed):
    """Samples in batches of a random order, or as they come."""
    if callable(X):
        yield from X()
        return
    order = np.random.default_rng([seed, 2]).permutation(y.size)
    for start in range(0, order.size, BATCH):
        rows = order[start : start + BATCH]
        yield taken(X, rows), y[rows]


def train(method, cues, X, y, n, classes, C, tol, seed):
    """A fitted classifier of new samples."""
    options = {"random_state": seed, "memory": MEMORY}
    if method == "OM2":
        return fitted(OM2(cues, n_epochs=1, **options), X, y)
    if method == "UFOMKL one pass":
        return fitted(UFOMKL(cues, C=C, tol=None, n_epochs=1, **options), X, y)
    if method.startswith("UFOMKL"):
        return fitted(UFOMKL(cues, C=C, tol=tol, **options), X, y)
    if method == "LinearSVC":
        return fitted(make_pipeline(joined(cues), LinearSVC(C=C, random_state=seed)), X, y)
    features = joined(cues)
    model = SGDClassifier(alpha=1.0 / (C * n), random_state=seed)
    for first, (part, labels) in enumerate(batches_of(X, y, seed)):
        if first == 0:
            features.fit(part)
        model.partial_fit(features.transform(part), labels, classes=classes)
    return make_pipeline(features, model)


def measured(method, cues, X, y, new, new_labels, n, C, tol, seed):
    """Test error, CPU seconds and memory of a fit, beyond what the process held before."""
    classes = np.unique(new_labels if y is None else np.concatenate([y, new_labels]))
    _, before = peak_memory(reset=True)
    model, seconds = timed(train, method, cues, X, y, n, classes, C, tol, seed)
    peak, _ = peak_memory()
    gap = np.nan
    if getattr(model, "dual_gap_", None) is not None:
        gap = model.dual_gap_ / model.objective_
    wrong = np.mean(np.concatenate([model.predict(part) for part in _parts(new)]) != new_labels)
    return {"error": wrong, "seconds": seconds, "memory": peak - before, "gap": gap}


def _parts(X):
    for start in range(0, len(X), 2000):
        yield X[start : start + 2000]


def on_digits(method, n, C, tol, n_components, n_test, seed, held_back=0):
    """`measured` of `n` digits."""
    X, y, new, new_labels = digits(n, n_test, seed, held_back)
    first = X
    if y is None:
        first = next(jittered_digits(BATCH))[0]
    if method == "UFOMKL exact":
        n_components = None
    cues = digit_kernels(first, n_components, seed)
    warm_up(method, cues, new, new_labels)
    return measured(method, cues, X, y, new, new_labels, n, C, tol, seed)


def on_forest(method, n, C, tol, n_components, n_test, seed, held_back=0):
    """`measured` of `n` patches of forest."""
    X, y, new, new_labels = forest(n, n_test, seed, held_back)
    if method == "UFOMKL exact":
        n_components = None
    cues = forest_kernels(X, n_components, seed)
    warm_up(method, cues, new, new_labels)
    return measured(method, cues, X, y, new, new_labels, y.size, C, tol, seed)


def on_texts(method, C, tol, n_files, n_features, seed, held_back=0):
    """`measured` on functions of libraries."""
    X, y, new, new_labels = texts(corpus(n_files), seed, held_back)
    cues = text_kernels(n_features)
    _, _, cue = method.partition(" ")
    if cue:
        cues = [triple for triple in cues if triple[0] == cue]
    warm_up(method, cues, new, new_labels)
    row = measured(method, cues, X, y, new, new_labels, y.size, C, tol, seed)
    return {**row, "n": y.size, "n_new": new_labels.size}


def warm_up(method, cues, X, y):
    """Load what is compiled."""
    few = slice(0, len(y), max(1, len(y) // 200))
    measured(method, cues, X[few], y[few], X[few], y[few], 200, 1.0, 0.5, 0)


MEASURES = {"digits": on_digits, "forest": on_forest, "texts": on_texts}


def chosen_C(method, of, grid, seed, n_choice=None, **fixed):
    """C with the least error on a held-back part of the training samples, `n_choice` of them if it is
    given."""
    if method in WITHOUT_C:
        return {}
    held_back = 1
    if n_choice:
        fixed["n"] = n_choice
        held_back = n_choice // 5
    run = partial(MEASURES[of], method, seed=seed, held_back=held_back, **fixed)
    return choose(grid_points(C=grid), lambda point: -run(**point)["error"])[0]


def compare(chosen, of, seed, n_choice=None, **fixed):
    """Methods with their C, which was chosen on `n_choice` samples."""
    rows = []
    for method, params in chosen.items():
        row = MEASURES[of](method, C=params.get("C"), seed=seed, **fixed)
        rows.append({"method": method, **params, **row})
    return pd.DataFrame(rows)


# --- figures ------------------------------------------------------------------------------------------------


def exponents(table):
    """Of CPU seconds in n, from the smallest to the largest that a method has."""
    mean = np.log(table.groupby(["method", "n"], sort=False)["seconds"].mean())
    slopes = {}
    for method, values in mean.groupby("method", sort=False):
        n = np.log(values.index.get_level_values("n"))
        slopes[method] = (values.iloc[-1] - values.iloc[0]) / (n[-1] - n[0])
    return slopes


def _points(run, size, most_samples=np.inf):
    """Points of a `Study`: all methods at each n that they take, the largest n on one draw."""
    points = []
    for n in (n for n in size["n"] if n <= most_samples):
        methods = [m for m in DIGITS if n <= size["most"].get(m, n)]
        seeds = run.seeds(size)
        if n > size["repeated_up_to"]:
            seeds = seeds[:1]
        place = {"n": n, "n_choice": min(n, size["choose_up_to"])}
        points += [({**place, "seed": seed}, [m]) for seed in seeds for m in methods]
    return points


def _table(run, of, size, names, points, data, by=()):
    """All runs of a figure, with `names` of its sizes as further arguments."""
    fixed = {"of": of, **{name: size[name] for name in names}}
    choosing = {"grid": size["C"], "seed": run.seed, **fixed}
    how = {"choosing": choosing, "comparing": fixed, "columns": ["C"], "data": data}
    return Study(run.sweep, of, compare, chosen_C, by=by, **how).table(points)


#: Sizes of the curves that their runs take.
OF_CURVES = ("tol", "n_components", "n_test")


def _how(run, size, table):
    """What must be known beside the curves."""
    at_edges = edges(table, {"C": size["C"]}, by="method") or "nothing"
    return (
        f"to a gap of {size['tol']:.0%} where certified; SGD and LinearSVC on all features joined. C by a "
        f"held-back fifth of the training samples, at most {size['choose_up_to']:,}, of the first draw; at "
        f"the edge of the grid: {at_edges}. Means of {len(run.seeds(size))} draws up to "
        f"{size['repeated_up_to']:,} samples, one beyond. CPU seconds with the computation of features, "
        "memory beyond that of the data; one thread"
    )


@figure("many-samples", claims=["many-1", "many-2", "many-3", "many-4"])
def many_samples(run):
    """What do time, memory and error become as samples grow, to a million in the profile full?"""
    size = run.size["samples"]
    data = [load_set("mnist").provenance]
    if max(size["n"]) > load_set("mnist").train.size:
        data.append(JITTERED)
    table = _table(run, "digits", size, OF_CURVES, _points(run, size), data, by=("n_choice",))
    note = f"12 Gaussian kernels, or {size['n_components']} random Fourier features of each, "
    note += _how(run, size, table)
    run.save_figure(draw.many_samples(table), "many-samples", table, provenance=data, note=note)


@many_samples.facts
def _(results):
    table = results.table()
    slopes = exponents(table)
    largest = table.groupby("method")["n"].max()
    last = table[table["n"] == table["method"].map(largest)].groupby("method")
    seconds = last["seconds"].mean()
    rounded = [f"{value:.2f}" if value < 10.0 else f"{value:,.0f}" for value in seconds]
    return {
        "n": largest,
        "first": table["n"].min(),
        "slopes": enumerated(f"{slope:.2f} ({DIGITS[method]})" for method, slope in slopes.items()),
        "error": last["error"].mean(),
        "seconds": dict(zip(seconds.index, rounded, strict=True)),
        "memory": last["memory"].mean() / 1e6,
        "gap": table["gap"].max(),
    }


many_samples.title("""
On {n[OM2]:,} digits one pass of OM-2 takes {seconds[OM2]} CPU seconds and {memory[OM2]:,.0f} MB, with
{error[OM2]:.1%} errors; UFO-MKL to a certified 5% takes {seconds[UFOMKL]} on {n[UFOMKL]:,}, with
{error[UFOMKL]:.1%}.""")
many_samples.see("""
Exponents of CPU seconds in n, from {first:,} samples to the most of each method: {slopes}. SGD has
{error[SGD]:.1%} errors on {n[SGD]:,} digits. The largest certified gap is {gap:.1%}.""")


@figure("many-samples-covtype")
def many_patches(run):
    """With DATA=original: what are the curves on half a million patches of forest?"""
    data = original(run, "covtype")
    if data is None:
        return
    size = run.size["samples"]
    points = _points(run, size, data.y.size - size["n_test"])
    table = _table(run, "forest", size, OF_CURVES, points, [data.provenance], by=("n_choice",))
    note = f"3 Gaussian kernels, or {size['n_components']} random Fourier features of each, two linear ones, "
    note += _how(run, size, table)
    about = {"provenance": [data.provenance], "note": note}
    run.save_figure(draw.many_samples(table), "many-samples", table, "covtype", **about)


@many_patches.facts
def _(results):
    table = results.table()
    last = where(table, n=table["n"].max())
    return {"n": table["n"].max(), "error": last.groupby("method")["error"].mean()}


many_patches.title("""
Test errors on {n:,} patches of forest: {error[OM2]:.1%} after one pass of OM-2, {error[UFOMKL]:.1%} of
UFO-MKL at a certified 5%, {error[SGD]:.1%} after one pass of SGD.""")


@figure("many-texts", claims="many-5")
def many_texts(run):
    """Do two sparse cues of texts give a lower error than one?"""
    size = run.size["texts"]
    points = [({"seed": seed}, [m]) for seed in run.seeds(size) for m in TEXTS]
    table = _table(run, "texts", size, ("tol", "n_files", "n_features"), points, [FUNCTIONS])
    means = table.groupby("method", sort=False)[["error", "seconds", "memory", "gap"]].mean()
    means = means.assign(memory=means["memory"] / 1e6).rename(columns={"memory": "MB"}, index=TEXTS)
    at_edges = edges(table, {"C": size["C"]}, by="method") or "nothing"
    note = (
        f"{table['n'].mean():,.0f} functions and classes to learn from, {table['n_new'].mean():,.0f} to "
        f"test, of {len(LIBRARIES)} libraries; no file is on both sides, means of {len(run.seeds(size))} "
        f"splits. Cues: the first paragraph of the documentation, and the names in the code; words, pairs, "
        f"hashed to {size['n_features']:,} features each. C by a held-back third of the first split's "
        f"training files; at the edge of the grid: {at_edges}"
    )
    run.save_table({"": means, "runs": table}, "many-texts", provenance=[FUNCTIONS], note=note)


@many_texts.facts
def _(results):
    table = results.table("many-texts.runs")
    return {"error": table.groupby("method")["error"].mean(), "n": table["n"].mean()}


many_texts.title("""
From which library is a function? UFO-MKL has a test error of {error[UFOMKL]:.1%} by documentation and code,
{error[UFOMKL code]:.1%} by code alone, {error[UFOMKL documentation]:.1%} by documentation alone.""")
many_texts.see("LinearSVC on both cues joined has {error[LinearSVC]:.1%}.")
