r"""Propositions 5.2 and 5.3, Algorithm 10 against exact search, and the number of candidates, measured.

*5.2*, :math:`E[\Delta_{01}] \le E[\Delta_A] / (1 - \eta)`, needs the degree eta given the *instance*, and a
classifier that has not seen the candidates. *5.3*, :math:`\ell_A \ge \Delta_A`, needs the exact search; with
Algorithm 10's answer :math:`\ell_A` is never below the sum of the slots' losses, by which 5.2 is proved.
"""

import itertools
import math

import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from companion.mms.artificial import samples
from companion.mms.methods import ambiguous_losses
from companion.protocol import fitted
from cuelearn.core.intervals import CONFIDENCE
from cuelearn.datasets.ambiguous import make_ambiguous
from cuelearn.mms import MMS, CandidateSet, Matching, best_labelings, most_violating

CLASSIFIERS = ("MMS", "MC-SVM", "constant", "random", "adversary", "memoriser")
SCALES = (0.1, 1.0, 10.0)  # of hyperplanes
MADE = {"p_correlated": 0.25, "p_ambiguous": 0.25, "n_candidates": 10, "bag_size": 5}
#: Differences of sums of scores that count as none, times 1 + their size.
NEAR = 1e-9


def instances(task, n_train, n_fresh, seed):
    """X_train, y_train, X_fresh, y_fresh: `samples` of the two official parts."""
    data, rng = samples(task), np.random.default_rng([seed, 21])
    train, fresh = rng.permutation(data.train)[:n_train], rng.permutation(data.test)[:n_fresh]
    return data.X[train], data.y[train], data.X[fresh], data.y[fresh]


def predictions(name, train, fresh, shares, seed, mms):
    """What a classifier says of the training instances and of the fresh ones; "adversary" answers the label
    that co-occurs most with the true one, "memoriser" is a nearest neighbour with a random candidate."""
    rng = np.random.default_rng([seed, 22])
    classes, parts = train.candidates.classes[0], (train, fresh)
    if name == "constant":
        values, sizes = np.unique(train.y, return_counts=True)
        return [np.full(part.y.size, values[np.argmax(sizes)]) for part in parts]
    if name == "random":
        return [rng.choice(classes, size=part.y.size) for part in parts]
    if name == "adversary":
        hardest = np.where(np.eye(classes.size, dtype=bool), -1.0, shares).argmax(axis=1)
        return [classes[hardest[part.labels()]] for part in parts]
    if name == "MMS":
        model = fitted(MMS(random_state=seed, **mms), train.X, train.candidates)
    elif name == "MC-SVM":
        model = fitted(LinearSVC(multi_class="crammer_singer", random_state=seed), train.X, train.y)
    else:
        given = train.candidates.named(train.candidates.draw(rng))
        model = KNeighborsClassifier(1).fit(train.X, given)
    return [model.predict(part.X) for part in parts]


def _answers(predicted, data):
    """Predicted classes as labels, and whether each is wrong, and no candidate for its instance."""
    answer = np.searchsorted(data.candidates.classes[0], predicted)
    return answer, answer != data.labels(), ~data.candidates.mask()[np.arange(answer.size), answer]


def losses_of(predicted, data):
    """Of every bag the numbers of wrong labels (true) and of labels that are no candidate for their instance
    (slots), and the ambiguous loss (joint): slots <= joint <= true."""
    sets, (answer, wrong, outside) = data.candidates, _answers(predicted, data)
    true, slots = (np.add.reduceat(v.astype(np.int64), sets.bag_starts[:-1]) for v in (wrong, outside))
    return pd.DataFrame({"true": true, "slots": slots, "joint": ambiguous_losses(answer, sets)})


def shares_of(y, seed, n_instances=20_000, **made):
    """How often labels co-occur with classes (`AmbiguousData.co_occurrence`), from many bags like `y`."""
    many = np.tile(y, max(1, round(n_instances / len(y))))
    return make_ambiguous(np.empty((many.size, 1)), many, random_state=seed, **made).co_occurrence()


def _over(top, bottom):
    """top / bottom; 0 where both are 0, infinite where only `bottom` is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(top) > 0.0, np.divide(top, bottom), 0.0)


def bound_of(predicted, data, shares, n_bootstrap=500, seed=0):
    """The two sides of proposition 5.2 for predicted classes of the rows of `data`, means over bags.

    bound is joint / (1 - eta); slots_bound and label_bound (remark 5.2) are tighter. Ratios are true over
    each, with intervals from bags drawn anew. expected_slots is what slots are if candidates were not seen.
    """
    labels, losses, shares = data.labels(), losses_of(predicted, data), shares.to_numpy()
    degrees = np.where(np.eye(len(shares), dtype=bool), 0.0, shares).max(axis=1)
    (answer, wrong, outside), eta = _answers(predicted, data), degrees.max()
    starts, N = data.candidates.bag_starts[:-1], data.candidates.n_bags
    parts = {name: losses[name] for name in ("true", "slots", "joint")}
    parts["expected_slots"] = np.add.reduceat(wrong * (1.0 - shares[labels, answer]), starts)
    parts |= {"bound": _over(losses["joint"], 1.0 - eta), "slots_bound": _over(losses["slots"], 1.0 - eta)}
    parts["label_bound"] = np.add.reduceat(_over(outside, 1.0 - degrees[labels]), starts)
    out = {name: float(values.mean()) for name, values in parts.items()}
    out.update(eta=float(eta), eta_least=float(degrees.min()))
    rng = np.random.default_rng([seed, 23])
    drawn = np.stack([rng.multinomial(N, np.full(N, 1.0 / N)) for _ in range(n_bootstrap)]) / N
    tails = (0.5 * (1.0 - CONFIDENCE), 0.5 * (1.0 + CONFIDENCE))
    true = drawn @ np.asarray(parts["true"], dtype=float)
    for name in ("", "slots_", "label_"):
        bound = parts[f"{name}bound"]
        out[f"{name}ratio"] = float(_over(out["true"], out[f"{name}bound"]))
        # no interpolation, which infinite ratios would not survive
        ratios = _over(true, drawn @ bound if np.isfinite(bound).all() else np.inf)
        low, high = np.quantile(ratios, tails, method="inverted_cdf")
        out |= {f"{name}ratio_low": float(low), f"{name}ratio_high": float(high)}
    out_of_order = (losses["slots"] > losses["joint"]) | (losses["joint"] > losses["true"])
    return {**out, "out_of_order": int(out_of_order.sum()), "n_bags": N}


def proposition_5_2(task, n_train, n_fresh, seed, n_bootstrap=500, mms=None, **made):
    """Proposition 5.2 on the training bags and on fresh ones, of which it speaks: `bound_of` by
    classifier."""
    made = {**MADE, **made}
    X_train, y_train, X_fresh, y_fresh = instances(task, n_train, n_fresh, seed)
    # pairs have a stream of their own: one seed, one set of pairs
    train = make_ambiguous(X_train, y_train, random_state=seed, **made)
    fresh = make_ambiguous(X_fresh, y_fresh, random_state=seed, **made)
    if not np.array_equal(train.candidates.classes[0], fresh.candidates.classes[0]):
        sizes = f"got {n_train} and {n_fresh}"
        raise ValueError(f"n_train and n_fresh must be large enough to hold all classes, {sizes}")
    shares, rows = shares_of(fresh.y, seed, **made), []
    for name in CLASSIFIERS:
        both = predictions(name, train, fresh, shares, seed, dict(mms or {}))
        for part, data, predicted in zip(("training", "fresh"), (train, fresh), both, strict=True):
            bounds = bound_of(predicted, data, shares, n_bootstrap, seed)
            rows.append({"classifier": name, "part": part, **bounds})
    return pd.DataFrame(rows)


def surrogates(scores, candidates):
    """Both sides of proposition 5.3 in every bag: joint and slots, the ambiguous losses of the prediction;
    exact and heap, the surrogate loss by either search; near, what rounding may do."""
    scores = np.asarray(scores, dtype=np.float64)
    answer, rows = scores.argmax(axis=1), np.arange(len(scores))
    own = scores[rows, best_labelings(scores, candidates)[:, 0]]
    outside, joint = ~candidates.mask()[rows, answer], ambiguous_losses(answer, candidates)
    starts, sizes, table = candidates.bag_starts, candidates.bag_sizes, []
    for i in range(candidates.n_bags):
        part = slice(starts[i], starts[i + 1])
        row = {"joint": joint[i], "slots": int(outside[part].sum())}
        none_left = candidates.n_candidates[i] >= candidates.n_labels[0] ** int(sizes[i])
        for method in ("exact", "heap"):
            value = -np.inf if none_left else most_violating(scores[part], candidates, i, method=method)[1]
            row[method] = max(0.0, value - own[part].sum())
        table.append(row | {"near": NEAR * (1.0 + float(np.abs(scores[part]).max()))})
    return pd.DataFrame(table)


def proposition_5_3(task, n_train, seed, n_bags=1000, mms=None, **made):
    """Proposition 5.3 for hyperplanes that are zero, random or trained: in how many bags the surrogate loss
    is below the ambiguous loss (exact search, Algorithm 10) and below the slots' losses."""
    X, y, _, _ = instances(task, n_train, 1, seed)
    data = make_ambiguous(X, y, random_state=seed, **{**MADE, **made})
    part = np.arange(min(n_bags, data.candidates.n_bags))
    X, sets = np.asarray(data.X)[data.candidates.rows(part)], data.candidates.take(part)
    shape = (2, data.X.shape[1], data.candidates.n_labels[0])
    random = np.random.default_rng([seed, 24]).normal(size=shape)[1]
    model = fitted(MMS(random_state=seed, **dict(mms or {})), data.X, data.candidates)
    scores = {"zero": np.zeros((len(X), random.shape[1])), "random": X @ random}
    scores["trained"] = np.asarray(model.decision_function(X), dtype=np.float64)
    sides, rows = {"exact": ("exact", "joint"), "heap": ("heap", "joint"), "slots": ("heap", "slots")}, []
    for kind, scale in (("zero", 1.0), *itertools.product(("random", "trained"), SCALES)):
        losses = surrogates(scale * scores[kind], sets)
        row = {"weights": kind, "scale": scale, "n_bags": len(losses)}
        for name, (upper, lower) in sides.items():
            row[f"below_{name}"] = int((losses[upper] - losses[lower] < -losses["near"]).sum())
        rows.append(row)
    return pd.DataFrame(rows)


def random_bag(rng, kind, n_instances, n_labels, n_candidates):
    """A bag's candidates at random, (n, n_instances): distinct vectors of independent labels, or matchings of
    faces with `n_labels` - 1 names."""
    if kind == "names":
        words = np.arange(1, n_labels)[:, None]
        faces = [Matching(words, np.ones((n_instances, n_labels), dtype=bool))]
        vectors = np.stack(list(CandidateSet(faces, n_labels=n_labels, null=0).iterate(0)))[:, :, 0]
    elif n_labels**n_instances <= 4 * n_candidates:
        vectors = np.array(list(itertools.product(range(n_labels), repeat=n_instances)))
    else:
        vectors = np.unique(rng.integers(n_labels, size=(2 * n_candidates, n_instances)), axis=0)
    return rng.permutation(vectors)[:n_candidates]


def search_shares(
    n_bags=1000, kind="vectors", n_instances=3, n_labels=6, n_candidates=10, n_known=None, lead=0.0, seed=0
):
    """How often, and by how much, Algorithm 10 misses the most violating labeling in bags of `random_bag`,
    whose candidates have `n_known` labels; `lead` is added to the normal scores of one candidate's labels."""
    rng = np.random.default_rng([seed, 25])
    n_known = n_labels if n_known is None else n_known
    shortfalls, losses, above = [], [], 0  # losses: with the exact search, and with Algorithm 10
    for _ in range(n_bags):
        vectors = random_bag(rng, kind, n_instances, n_known, n_candidates)
        if n_known < n_labels:
            # null stays null
            vectors = np.append(0, 1 + rng.permutation(n_labels - 1)[: n_known - 1])[vectors]
        sets = CandidateSet([vectors], n_labels=n_labels)
        scores = rng.normal(size=(n_instances, n_labels))
        scores[np.arange(n_instances), vectors[0]] += lead
        if len(vectors) == n_labels**n_instances:
            continue
        heap, exact = (most_violating(scores, sets, method=method)[1] for method in ("heap", "exact"))
        near = NEAR * (1.0 + np.abs(scores).sum())
        above += heap > exact + near
        shortfalls.append(exact - heap if exact - heap > near else 0.0)
        best = scores[np.arange(n_instances), best_labelings(scores, sets)[:, 0]].sum()
        losses.append((max(0.0, exact - best), max(0.0, heap - best)))
    shortfalls, (exact, heap) = np.array(shortfalls), np.sum(losses, axis=0)
    return {
        "n_bags": shortfalls.size,
        "same": float(1.0 - (shortfalls > 0.0).mean()),
        "largest": float(shortfalls.max()),
        "mean": float(shortfalls.mean()),
        "lost": float(1.0 - heap / exact) if exact > 0.0 else 0.0,
        "above": int(above),
    }


def counts(most=6):
    """Number of candidate vectors for faces and names: printed (section 5.6.1), corrected, and listed."""
    rows = []
    for f, w in itertools.product(range(1, most + 1), repeat=2):
        terms = [math.comb(f, j) * math.comb(w, j) for j in range(min(f, w) + 1)]
        corrected = sum(t * math.factorial(j) for j, t in enumerate(terms) if j)
        pairs = Matching(np.arange(1, w + 1)[:, None], np.ones((f, w + 1), dtype=bool))
        listed = sum(1 for _ in CandidateSet([pairs], null=0).iterate(0))
        rows.append((f, w, sum(terms), corrected, listed))
    return pd.DataFrame(rows, columns=["faces", "names", "printed", "corrected", "listed"])
