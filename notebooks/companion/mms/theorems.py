r"""Propositions 5.2 and 5.3, Algorithm 10 against exact search, and the number of candidates, measured.

*5.2*, :math:`E[\Delta_{01}] \le E[\Delta_A] / (1 - \eta)`, needs the degree eta given the *instance*, and a
classifier that has not seen the candidates. *5.3*, :math:`\ell_A \ge \Delta_A`, needs the exact search.
"""

import itertools
import math

import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from companion.intervals import CONFIDENCE
from companion.mms.artificial import samples
from companion.mms.methods import SEARCHES, ambiguous_losses
from companion.protocol import fitted
from cuelearn.datasets.ambiguous import make_ambiguous
from cuelearn.mms import MMS, CandidateSet, Matching, best_labelings, most_violating

CLASSIFIERS = ("MMS", "MC-SVM", "constant", "random", "adversary", "memoriser")
SCALES = (0.1, 1.0, 10.0)  # of hyperplanes
MADE = {"p_correlated": 0.25, "p_ambiguous": 0.25, "n_candidates": 10, "bag_size": 5}
#: Differences of sums of scores that count as none, times 1 + their size.
NEAR = 1e-9


def instances(task, n_train, n_fresh, seed):
    """X_train, y_train, X_fresh, y_fresh: `samples` of the two official parts."""
    data = samples(task)
    rng = np.random.default_rng([seed, 21])
    train = rng.permutation(data.train)[:n_train]
    fresh = rng.permutation(data.test)[:n_fresh]
    return data.X[train], data.y[train], data.X[fresh], data.y[fresh]


def predictions(name, train, fresh, shares, seed, mms):
    """What a classifier says of the training instances and of the fresh ones; "adversary" answers the label
    that co-occurs most with the true one, "memoriser" is a nearest neighbour with a random candidate."""
    rng = np.random.default_rng([seed, 22])
    sets = train.candidates
    classes = sets.classes[0]
    parts = (train, fresh)
    if name == "constant":
        values, sizes = np.unique(train.y, return_counts=True)
        return [np.full(part.y.size, values[np.argmax(sizes)]) for part in parts]
    if name == "random":
        return [rng.choice(classes, size=part.y.size) for part in parts]
    if name == "adversary":
        hardest = np.where(np.eye(classes.size, dtype=bool), -1.0, shares).argmax(axis=1)
        return [classes[hardest[part.labels()]] for part in parts]
    if name == "MMS":
        model = fitted(MMS(random_state=seed, **mms), train.X, sets)
    elif name == "MC-SVM":
        model = fitted(LinearSVC(multi_class="crammer_singer", random_state=seed), train.X, train.y)
    else:
        model = KNeighborsClassifier(1).fit(train.X, sets.named(sets.draw(rng)))
    return [model.predict(part.X) for part in parts]


def losses_of(predicted, data):
    """Of every bag the numbers of wrong labels (true) and of labels that are no candidate for their instance
    (slots), and the ambiguous loss (joint): slots <= joint <= true."""
    sets = data.candidates
    answer = np.searchsorted(sets.classes[0], predicted)
    starts = sets.bag_starts[:-1]
    true = np.add.reduceat((answer != data.labels()).astype(int), starts)
    slots = np.add.reduceat(_outside(answer, sets).astype(int), starts)
    return pd.DataFrame({"true": true, "slots": slots, "joint": ambiguous_losses(answer, sets)})


def _outside(answer, sets):
    """Whether labels are no candidate for their instance."""
    return ~sets.mask()[np.arange(answer.size), answer]


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
    labels = data.labels()
    shares = shares.to_numpy()
    degrees = np.where(np.eye(len(shares), dtype=bool), 0.0, shares).max(axis=1)
    eta = degrees.max()
    answer = np.searchsorted(data.candidates.classes[0], predicted)
    missed = (answer != labels) * (1.0 - shares[labels, answer])
    of_label = _over(_outside(answer, data.candidates), 1.0 - degrees[labels])
    starts = data.candidates.bag_starts[:-1]
    losses = losses_of(predicted, data)
    bags = losses.assign(
        expected_slots=np.add.reduceat(missed, starts),
        bound=_over(losses["joint"], 1.0 - eta),
        slots_bound=_over(losses["slots"], 1.0 - eta),
        label_bound=np.add.reduceat(of_label, starts),
    )
    result = {**bags.mean(), "eta": eta, "eta_least": degrees.min()}
    N = len(bags)
    drawn = np.random.default_rng([seed, 23]).multinomial(N, np.full(N, 1.0 / N), size=n_bootstrap) / N
    tails = (0.5 * (1.0 - CONFIDENCE), 0.5 * (1.0 + CONFIDENCE))
    for name in ("", "slots_", "label_"):
        bound = bags[f"{name}bound"]
        result[f"{name}ratio"] = float(_over(result["true"], result[f"{name}bound"]))
        # no interpolation, which infinite ratios would not survive
        ratios = _over(drawn @ bags["true"], drawn @ bound if np.isfinite(bound).all() else np.inf)
        low, high = np.quantile(ratios, tails, method="inverted_cdf")
        result |= {f"{name}ratio_low": low, f"{name}ratio_high": high}
    out_of_order = (losses["slots"] > losses["joint"]) | (losses["joint"] > losses["true"])
    return {**result, "out_of_order": int(out_of_order.sum()), "n_bags": N}


def proposition_5_2(task, n_train, n_fresh, seed, n_bootstrap=500, mms=None, **made):
    """`bound_of` by classifier, on the training bags and on fresh ones, of which the proposition speaks."""
    made = {**MADE, **made}
    X_train, y_train, X_fresh, y_fresh = instances(task, n_train, n_fresh, seed)
    # pairs have a stream of their own: one seed, one set of pairs
    train = make_ambiguous(X_train, y_train, random_state=seed, **made)
    fresh = make_ambiguous(X_fresh, y_fresh, random_state=seed, **made)
    shares = shares_of(fresh.y, seed, **made)
    rows = []
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
    answer = scores.argmax(axis=1)
    own = scores[np.arange(len(scores)), best_labelings(scores, candidates)[:, 0]]
    outside = _outside(answer, candidates)
    rows = []
    for i, joint in enumerate(ambiguous_losses(answer, candidates)):
        part = slice(*candidates.bag_starts[i : i + 2])
        row = {"joint": joint, "slots": int(outside[part].sum())}
        n_labelings = candidates.n_labels[0] ** int(candidates.bag_sizes[i])
        for label, method in SEARCHES.items():
            row[label] = 0.0
            if candidates.n_candidates[i] < n_labelings:
                _, value = most_violating(scores[part], candidates, i, method=method)
                row[label] = max(0.0, value - own[part].sum())
        rows.append(row | {"near": NEAR * (1.0 + float(np.abs(scores[part]).max()))})
    return pd.DataFrame(rows)


def proposition_5_3(task, n_train, seed, n_bags=1000, mms=None, **made):
    """Proposition 5.3 for hyperplanes that are zero, random or trained: in how many bags the surrogate loss
    is below the ambiguous loss (exact search, Algorithm 10) and below the slots' losses."""
    X, y, _, _ = instances(task, n_train, 1, seed)
    data = make_ambiguous(X, y, random_state=seed, **{**MADE, **made})
    part = np.arange(min(n_bags, data.candidates.n_bags))
    sets = data.candidates.take(part)
    X = np.asarray(data.X)[data.candidates.rows(part)]
    shape = (2, X.shape[1], sets.n_labels[0])
    random = X @ np.random.default_rng([seed, 24]).normal(size=shape)[1]
    model = fitted(MMS(random_state=seed, **dict(mms or {})), data.X, data.candidates)
    scores = {"zero": np.zeros_like(random), "random": random, "trained": model.decision_function(X)}
    rows = []
    for kind, scale in (("zero", 1.0), *itertools.product(("random", "trained"), SCALES)):
        losses = surrogates(scale * np.asarray(scores[kind], dtype=np.float64), sets)
        row = {"weights": kind, "scale": scale, "n_bags": len(losses)}
        for name, lower in (("exact", "joint"), ("heap", "joint"), ("slots", "slots")):
            upper = losses["heap" if name == "slots" else name]
            row[f"below_{name}"] = int((upper - losses[lower] < -losses["near"]).sum())
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
    n_known = n_known or n_labels
    instances = np.arange(n_instances)
    rows = []
    for _ in range(n_bags):
        vectors = random_bag(rng, kind, n_instances, n_known, n_candidates)
        if n_known < n_labels:
            # null stays null
            vectors = np.append(0, 1 + rng.permutation(n_labels - 1)[: n_known - 1])[vectors]
        sets = CandidateSet([vectors], n_labels=n_labels)
        scores = rng.normal(size=(n_instances, n_labels))
        scores[instances, vectors[0]] += lead
        if len(vectors) < n_labels**n_instances:
            _, heap = most_violating(scores, sets, method="algorithm-10")
            _, exact = most_violating(scores, sets, method="exact")
            best = scores[instances, best_labelings(scores, sets)[:, 0]].sum()
            rows.append((exact, heap, best, NEAR * (1.0 + np.abs(scores).sum())))
    exact, heap, best, near = np.transpose(rows)
    shortfalls = np.where(exact - heap > near, exact - heap, 0.0)
    losses = np.maximum(0.0, np.column_stack([exact, heap]) - best[:, None])
    of_exact, of_heap = losses.sum(axis=0)
    return {
        "n_bags": len(rows),
        "same": float(1.0 - (shortfalls > 0.0).mean()),
        "largest": float(shortfalls.max()),
        "mean": float(shortfalls.mean()),
        "lost": float(1.0 - of_heap / of_exact) if of_exact > 0.0 else 0.0,
        "above": int((heap > exact + near).sum()),
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
