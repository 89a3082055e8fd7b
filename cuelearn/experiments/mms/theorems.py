r"""Propositions 5.2 and 5.3, Algorithm 10 against exact search, and the number of candidates, measured.

What was found on reading the proofs (section 5.4.2 and appendix B):

*Proposition 5.2*, :math:`E[\Delta_{01}(Z, Y)] \le E[\Delta_A(Z, \mathcal Z)] / (1 - \eta)`, holds under two
conditions that its statement leaves to the proposition of Cour et al. behind it. (1) :math:`\eta = \sup P(z
\in \mathcal Z(m) \mid x, y)` is conditional on the *instance*, not only on its label. With shares averaged
over the instances of a label, which is all that data show, it fails as soon as the noise follows the
features: let half of a class have a wrong label always and half never (:math:`\eta = 1/2`), and answer that
label on the first half; the true loss is 1/2, the ambiguous one 0. For data of `make_ambiguous` both are the
same, since candidates are drawn from labels alone. (2) The classifier must not have seen the candidate sets
that it is measured on: one that answers a wrong candidate has no ambiguous loss at all. So nothing is
promised for training bags, nor for predictions made *within* the candidates. The sup is over slots too. Its
proof has one slip: :math:`\bigcup_{m,p} \mathcal Z^{(p)}_m \supseteq \mathcal Z` should be a product of sets,
not their union. The step itself, that the slots' ambiguous losses add up to at most the joint one, holds for
every single bag. The lower half, :math:`E[\Delta_A] \le E[\Delta_{01}]`, holds for every bag, training or
not, as the truth is a candidate. And the first step is an equality:

.. math:: E \sum_m 1(z_m \notin \mathcal Z(m))
          = E \sum_m 1(z_m \ne y_m)\, \big(1 - P(z_m \in \mathcal Z(m) \mid x_m, y_m)\big),

so that the bound is as good as confusions fall on the labels that co-occur most (`expected_slots` below).

*Proposition 5.3*, :math:`\ell_A \ge \Delta_A`, is right as printed, bag by bag and for any hyperplanes (where
every labeling is a candidate both are 0). It needs the exact search. With Algorithm 10's answer in place of
it :math:`\ell_A` can fall below :math:`\Delta_A`, though never below the sum of the slots' losses,
:math:`\sum_m 1(\hat z_m \notin \mathcal Z(m))`: as that sum is what the proof of 5.2 bounds the true loss
with, learning with Algorithm 10 loses nothing of the guarantee. With priors (remark 5.1) it can fail too: a
factor below 1 raises a negative score.
"""

import itertools
import math

import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import LinearSVC

from cuelearn.core.checks import check_count
from cuelearn.core.intervals import CONFIDENCE
from cuelearn.datasets.ambiguous import make_ambiguous
from cuelearn.experiments.mms.artificial import load_set
from cuelearn.experiments.protocol import fitted
from cuelearn.mms import MMS, CandidateSet, Matching, best_labelings, most_violating

CLASSIFIERS = ("MMS", "MC-SVM", "constant", "random", "adversary", "memoriser")
WEIGHTS = ("zero", "random", "trained")
KINDS = ("vectors", "names")
TASKS = ("letter", "mnist", "pendigits", "satimage", "usps")
# how ambiguous bags are made, unless the caller says otherwise
MADE = {"p_correlated": 0.25, "p_ambiguous": 0.25, "n_candidates": 10, "bag_size": 5}
#: Differences of sums of scores that count as none, times 1 + their size.
NEAR = 1e-9


# ------------------------------------------------------------------ data and classifiers


def instances(task, n_train, n_fresh, seed):
    """Instances of a task, drawn from the two official parts, features scaled to [-1, 1] over the first.

    `task` is one of `TASKS`: "pendigits" with its 16 dynamic features, "usps" of the original tier.

    Returns
    -------
    X_train, y_train, X_fresh, y_fresh : ndarrays
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}, got {task!r}")
    data = load_set(task)
    X = data.X[:, data.cues["dynamic"]] if task == "pendigits" else data.X
    rng = np.random.default_rng([seed, 21])
    train, fresh = rng.permutation(data.train)[:n_train], rng.permutation(data.test)[:n_fresh]
    scaler = MinMaxScaler((-1.0, 1.0)).fit(X[train])
    return scaler.transform(X[train]), data.y[train], scaler.transform(X[fresh]), data.y[fresh]


def bags_of(task, n_train, n_fresh, seed, **made):
    """Training bags (AmbiguousData) and fresh ones of one distribution, with the same pairs of classes."""
    X_train, y_train, X_fresh, y_fresh = instances(task, n_train, n_fresh, seed)
    # pairs have a stream of their own: one seed, one set of pairs
    train, fresh = (
        make_ambiguous(X, y, random_state=seed, **made) for X, y in ((X_train, y_train), (X_fresh, y_fresh))
    )
    if not np.array_equal(train.candidates.classes[0], fresh.candidates.classes[0]):
        sizes = f"got {n_train} and {n_fresh}"
        raise ValueError(f"n_train and n_fresh must be large enough to hold all classes, {sizes}")
    return train, fresh


def _predictions(name, train, fresh, shares, seed, mms):
    """What a classifier says of the training instances and of the fresh ones."""
    rng = np.random.default_rng([seed, 22])
    classes, parts = train.candidates.classes[0], (train, fresh)
    if name == "constant":
        values, sizes = np.unique(train.y, return_counts=True)
        return [np.full(part.y.size, values[np.argmax(sizes)]) for part in parts]
    if name == "random":
        return [rng.choice(classes, size=part.y.size) for part in parts]
    if name == "adversary":
        # always the wrong label that is hardest to tell apart: where the bound is attained
        hardest = np.where(np.eye(classes.size, dtype=bool), -1.0, shares).argmax(axis=1)
        return [classes[hardest[part.labels()]] for part in parts]
    if name == "MMS":
        model = fitted(MMS(random_state=seed, **mms), train.X, train.candidates)
    elif name == "MC-SVM":
        model = fitted(LinearSVC(multi_class="crammer_singer", random_state=seed), train.X, train.y)
    elif name == "memoriser":
        # a nearest neighbour among instances that were given one of their candidates at random
        given = train.candidates.named(train.candidates.draw(rng))
        model = KNeighborsClassifier(1).fit(train.X, given)
    else:
        raise ValueError(f"classifiers must be among {', '.join(CLASSIFIERS)}, got {name!r}")
    return [model.predict(part.X) for part in parts]


# ------------------------------------------------------------------ proposition 5.2


def _answers(predicted, data):
    """Predicted classes as labels, and whether each is wrong, and no candidate for its instance."""
    predicted, classes = np.asarray(predicted), data.candidates.classes[0]
    if predicted.shape != data.y.shape or not np.isin(predicted, classes).all():
        wanted = f"predicted must hold a class for each of the {data.y.size} rows of data"
        raise ValueError(f"{wanted}, got shape {predicted.shape}")
    answer = np.searchsorted(classes, predicted)
    return answer, answer != data.labels(), ~data.candidates.mask()[np.arange(answer.size), answer]


def losses_of(predicted, data):
    """Losses of every bag, from predicted classes for the rows of `data`, an AmbiguousData.

    Returns a DataFrame: a row per bag: size; true, the number of wrong labels; slots, of labels that are no
    candidate for their instance; joint, the ambiguous loss of the bag. slots <= joint <= true.
    """
    sets, (answer, wrong, outside) = data.candidates, _answers(predicted, data)
    starts = sets.bag_starts
    joint = [sets.loss(i, answer[starts[i] : starts[i + 1]]) for i in range(sets.n_bags)]
    true, slots = (np.add.reduceat(v.astype(np.int64), starts[:-1]) for v in (wrong, outside))
    return pd.DataFrame({"size": sets.bag_sizes, "true": true, "slots": slots, "joint": joint})


def shares_of(y, seed, n_instances=20_000, **made):
    """How often labels co-occur with classes (`AmbiguousData.co_occurrence`), from many more bags.

    The proportions of the labels `y` are kept, and with `seed` the pairs of classes; the rest is for
    `make_ambiguous`.
    """
    many = np.tile(y, max(1, round(n_instances / len(y))))
    return make_ambiguous(np.empty((many.size, 1)), many, random_state=seed, **made).co_occurrence()


def bound_of(predicted, data, *, shares=None, n_bootstrap=500, seed=0):
    r"""The two sides of proposition 5.2 for any predictions, or those of a classifier.

    `shares`, (n_classes, n_classes), tell how often labels co-occur, which gives the ambiguity degree; by
    default in these bags, where the largest entry lies above the chance that it stands for. Bags are drawn
    anew `n_bootstrap` times, the degree held fixed.

    Returns a dict of means over bags: true, slots and joint (see `losses_of`), and expected_slots, the true
    losses times 1 - (share with which the answered label co-occurs), equal to slots in expectation if the
    classifier did not see the candidates. eta and eta_least: the largest and the least degree of a class.
    bound: joint / (1 - eta). slots_bound: slots / (1 - eta), which is tighter. label_bound: :math:`\sum_y`
    slots of class y / (1 - eta_y), of remark 5.2, the tightest. ratio, slots_ratio, label_ratio: true over
    each (0 where both are 0), with the ends of 95% intervals, such as ratio_low and ratio_high. out_of_order:
    bags where slots <= joint <= true fails. n_bags.
    """
    predicted = predicted.predict(data.X) if hasattr(predicted, "predict") else predicted
    n_bootstrap = check_count("n_bootstrap", n_bootstrap)
    sets, labels, losses = data.candidates, data.labels(), losses_of(predicted, data)
    shares = (data.co_occurrence() if shares is None else shares).to_numpy(copy=True)
    degrees = np.where(np.eye(len(shares), dtype=bool), 0.0, shares).max(axis=1)
    (answer, wrong, outside), eta = _answers(predicted, data), degrees.max()
    starts, N = sets.bag_starts[:-1], sets.n_bags
    parts = {
        "true": losses["true"],
        "slots": losses["slots"],
        "joint": losses["joint"],
        "expected_slots": np.add.reduceat(wrong * (1.0 - shares[labels, answer]), starts),
        "bound": _over(losses["joint"], 1.0 - eta),
        "slots_bound": _over(losses["slots"], 1.0 - eta),
        "label_bound": np.add.reduceat(_over(outside, 1.0 - degrees[labels]), starts),
    }
    out = {name: float(values.mean()) for name, values in parts.items()}
    out.update(eta=float(eta), eta_least=float(degrees.min()))
    rng = np.random.default_rng([seed, 23])
    drawn = np.stack([rng.multinomial(N, np.full(N, 1.0 / N)) for _ in range(n_bootstrap)]) / N
    tails = (0.5 * (1.0 - CONFIDENCE), 0.5 * (1.0 + CONFIDENCE))
    true = drawn @ np.asarray(parts["true"], dtype=float)
    for name in ("", "slots_", "label_"):
        bound = np.asarray(parts[f"{name}bound"], dtype=float)
        out[f"{name}ratio"] = _over(out["true"], out[f"{name}bound"])
        # no interpolation, which infinite ratios would not survive
        ratios = _over(true, drawn @ bound if np.isfinite(bound).all() else np.inf)
        low, high = np.quantile(ratios, tails, method="inverted_cdf")
        out |= {f"{name}ratio_low": float(low), f"{name}ratio_high": float(high)}
    out_of_order = (losses["slots"] > losses["joint"]) | (losses["joint"] > losses["true"])
    return {**out, "out_of_order": int(out_of_order.sum()), "n_bags": N}


def _over(top, bottom):
    """top / bottom; 0 where both are 0, infinite where only `bottom` is 0."""
    top, bottom = np.broadcast_arrays(np.asarray(top, dtype=float), np.asarray(bottom, dtype=float))
    out = np.where(top > 0.0, np.inf, 0.0)
    np.divide(top, bottom, out=out, where=bottom > 0.0)
    return out if out.ndim else float(out)


def proposition_5_2(task, n_train, n_fresh, seed, classifiers=CLASSIFIERS, n_bootstrap=500, mms=None, **made):
    """Proposition 5.2 for classifiers good and bad, on the bags they were trained on and on fresh ones.

    "MC-SVM" is trained on the truth; "adversary" answers to every class the label that co-occurs with it
    most; "memoriser" is a nearest neighbour of training instances that were each given one of their
    candidates at random. `mms` holds parameters of `MMS`, `made` what differs from `MADE` in
    `make_ambiguous`.

    Returns a DataFrame: a row per classifier and part ("training", "fresh"), with the columns of `bound_of`.
    The proposition speaks of the fresh bags.
    """
    made = {**MADE, **made}
    train, fresh = bags_of(task, n_train, n_fresh, seed, **made)
    shares, rows = shares_of(fresh.y, seed, **made), []
    for name in classifiers:
        both = _predictions(name, train, fresh, shares, seed, dict(mms or {}))
        for part, data, predicted in zip(("training", "fresh"), (train, fresh), both, strict=True):
            found = bound_of(predicted, data, shares=shares, n_bootstrap=n_bootstrap, seed=seed)
            rows.append({"classifier": name, "part": part, **found})
    return pd.DataFrame(rows)


# ------------------------------------------------------------------ proposition 5.3


def surrogates(scores, candidates):
    """Both sides of proposition 5.3 in every bag, by either search.

    `scores` are those of all instances for one attribute, (n_instances, n_labels); `candidates` are listed.

    Returns a DataFrame: a row per bag: joint and slots, the ambiguous losses of the prediction without
    candidates; exact and heap, the surrogate loss (5.2) with the exact most violating labeling and with
    Algorithm 10's; size_of, the largest score in the bag, which rounding goes by.
    """
    scores = np.asarray(scores, dtype=np.float64)
    answer, rows = scores.argmax(axis=1), np.arange(len(scores))
    own = scores[rows, best_labelings(scores, candidates)[:, 0]]
    outside = ~candidates.mask()[rows, answer]
    starts, sizes, table = candidates.bag_starts, candidates.bag_sizes, []
    for i in range(candidates.n_bags):
        part = slice(starts[i], starts[i + 1])
        row = {"joint": candidates.loss(i, answer[part]), "slots": int(outside[part].sum())}
        none_left = candidates.n_candidates[i] >= candidates.n_labels[0] ** int(sizes[i])
        for method in ("exact", "heap"):
            value = -np.inf if none_left else most_violating(scores[part], candidates, i, method=method)[1]
            row[method] = max(0.0, value - own[part].sum())
        table.append(row | {"size_of": float(np.abs(scores[part]).max())})
    return pd.DataFrame(table)


def proposition_5_3(
    task, n_train, seed, weights=WEIGHTS, scales=(0.1, 1.0, 10.0), n_bags=1000, mms=None, **made
):
    """Proposition 5.3 on a training set, for several hyperplanes.

    They are zero, random (normal entries) or trained (those of `MMS`, with parameters `mms`), and all but the
    zero ones multiplied by `scales`; on the first `n_bags` bags only, for the exact search takes its time.
    `made` as above.

    Returns a DataFrame: a row per hyperplanes and scale: n_bags; below_exact and below_heap, the number of
    bags whose surrogate loss is below their ambiguous loss, with the exact search and with Algorithm 10;
    below_slots, those where Algorithm 10's is below the slots' losses; least_exact, least_heap, least_slots,
    the least differences; joint, slots, exact, heap, the mean losses; shorter, the number of bags where
    Algorithm 10's loss is the smaller of the two.
    """
    X, y, _, _ = instances(task, n_train, 1, seed)
    data = make_ambiguous(X, y, random_state=seed, **{**MADE, **made})
    part = np.arange(min(check_count("n_bags", n_bags), data.candidates.n_bags))
    X, sets = np.asarray(data.X)[data.candidates.rows(part)], data.candidates.take(part)
    size = (data.X.shape[1], data.candidates.n_labels[0])
    rows, rng = [], np.random.default_rng([seed, 24])
    for kind in weights:
        if kind == "trained":
            model = fitted(MMS(random_state=seed, **dict(mms or {})), data.X, data.candidates)
            scores = np.asarray(model.decision_function(X), dtype=np.float64)
        elif kind in WEIGHTS:
            scores = X @ rng.normal(size=size) * (kind == "random")
        else:
            raise ValueError(f"weights must be among {', '.join(WEIGHTS)}, got {kind!r}")
        for scale in (1.0,) if kind == "zero" else scales:
            found = surrogates(scale * scores, sets)
            near = NEAR * (1.0 + found["size_of"])
            sides = {"exact": ("exact", "joint"), "heap": ("heap", "joint"), "slots": ("heap", "slots")}
            gaps = {name: found[upper] - found[lower] for name, (upper, lower) in sides.items()}
            row = {"weights": kind, "scale": scale, "n_bags": len(found)}
            row |= {f"below_{name}": int((gap < -near).sum()) for name, gap in gaps.items()}
            row |= {f"least_{name}": float(gap.min()) for name, gap in gaps.items()}
            row |= found[["joint", "slots", "exact", "heap"]].mean().to_dict()
            rows.append(row | {"shorter": int((found["heap"] < found["exact"] - near).sum())})
    return pd.DataFrame(rows)


# ------------------------------------------------------------------ Algorithm 10


def random_bag(rng, kind, n_instances, n_labels, n_candidates):
    """A bag's candidates at random, (n, n_instances).

    "vectors": independent labels, distinct vectors. "names": all ways to give `n_instances` faces at most one
    of `n_labels` - 1 names each, no name twice, not all null (label 0), of which at most `n_candidates` are
    kept.
    """
    if kind == "names":
        words = np.arange(1, n_labels)[:, None]
        faces = [Matching(words, np.ones((n_instances, n_labels), dtype=bool))]
        vectors = np.stack(list(CandidateSet(faces, n_labels=n_labels, null=0).iterate(0)))[:, :, 0]
    elif kind == "vectors":
        most = n_labels**n_instances
        if most <= 4 * n_candidates:
            vectors = np.stack(np.unravel_index(np.arange(most), (n_labels,) * n_instances), axis=1)
        else:
            vectors = np.unique(rng.integers(n_labels, size=(2 * n_candidates, n_instances)), axis=0)
    else:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    return rng.permutation(vectors)[:n_candidates]


def search_shares(
    n_bags=1000,
    kind="vectors",
    n_instances=3,
    n_labels=6,
    n_candidates=10,
    n_known=None,
    spread=1.0,
    lead=0.0,
    seed=0,
):
    """How often, and by how much, Algorithm 10 misses the most violating labeling in random bags.

    Candidates are made of `n_known` of all `n_labels`, null included, drawn anew for every bag; the others
    are labels of other bags. Scores are normal with deviation `spread`; `lead` is added to those of one
    candidate's labels, as training does for the true one.

    Returns a dict: n_bags, those with a labeling outside the candidates; same, the share of them where
    Algorithm 10's U equals the exact one; largest, mean and mean_missed, the shortfall of U, over all bags
    and over those missed; lost, the share of the surrogate losses' sum that Algorithm 10 does not see;
    beyond, the number of bags where the shortfall exceeds what theory allows, joint less slots' loss of the
    exact answer; above, of those where Algorithm 10's value exceeds the exact one. Both must be 0.
    """
    rng = np.random.default_rng([seed, 25])
    n_known = n_labels if n_known is None else check_count("n_known", n_known, least=2)
    if n_known > n_labels:
        raise ValueError(f"n_known must be at most n_labels, {n_labels}, got {n_known}")
    shortfalls, losses, above, beyond = [], [], 0, 0  # losses: with the exact search, and with Algorithm 10
    for _ in range(check_count("n_bags", n_bags)):
        vectors = random_bag(rng, kind, n_instances, n_known, n_candidates)
        if n_known < n_labels:
            # null stays null
            vectors = np.append(0, 1 + rng.permutation(n_labels - 1)[: n_known - 1])[vectors]
        sets = CandidateSet([vectors], n_labels=n_labels)
        scores = spread * rng.normal(size=(n_instances, n_labels))
        scores[np.arange(n_instances), vectors[0]] += lead
        if len(vectors) == n_labels**n_instances:
            continue
        _, heap = most_violating(scores, sets)
        labeling, exact = most_violating(scores, sets, method="exact")
        near = NEAR * (1.0 + np.abs(scores).sum())
        slots = int((~sets.mask()[np.arange(n_instances), labeling[:, 0]]).sum())
        above += heap > exact + near
        shortfall = exact - heap if exact - heap > near else 0.0
        beyond += shortfall > sets.loss(0, labeling) - slots + near
        shortfalls.append(shortfall)
        best = scores[np.arange(n_instances), best_labelings(scores, sets)[:, 0]].sum()
        losses.append((max(0.0, exact - best), max(0.0, heap - best)))
    if not shortfalls:
        got = "got all of them in every bag"
        raise ValueError(f"n_candidates must leave a labeling that is no candidate, {got}")
    shortfalls, (exact, heap) = np.array(shortfalls), np.sum(losses, axis=0)
    missed = shortfalls > 0.0
    return {
        "n_bags": shortfalls.size,
        "same": float(1.0 - missed.mean()),
        "largest": float(shortfalls.max()),
        "mean": float(shortfalls.mean()),
        "mean_missed": float(shortfalls[missed].mean()) if missed.any() else 0.0,
        "lost": float(1.0 - heap / exact) if exact > 0.0 else 0.0,
        "beyond": int(beyond),
        "above": int(above),
    }


# ------------------------------------------------------------------ numbers of candidates


def counts(most=6):
    r"""Number of candidate vectors for faces and names: printed (section 5.6.1), corrected, and listed.

    .. math:: \sum_{j=0}^{\min(f,w)} \binom fj \binom wj \quad\text{(printed)}, \qquad
              \sum_{j=1}^{\min(f,w)} \binom fj \binom wj j!

    The printed sum lacks the j! ways in which j names go to j faces, and counts the all-null vector, which is
    no candidate. The two mistakes cancel for two faces and two names, figure 5.4. Listing takes `most` of at
    most 7.

    Returns a DataFrame with columns faces, names, printed, corrected, listed.
    """
    if check_count("most", most) > 7:
        raise ValueError(f"most must be at most 7, for all candidates are listed, got {most}")
    rows = []
    for f, w in itertools.product(range(1, most + 1), repeat=2):
        terms = [math.comb(f, j) * math.comb(w, j) for j in range(min(f, w) + 1)]
        corrected = sum(t * math.factorial(j) for j, t in enumerate(terms) if j)
        pairs = Matching(np.arange(1, w + 1)[:, None], np.ones((f, w + 1), dtype=bool))
        listed = sum(1 for _ in CandidateSet([pairs], null=0).iterate(0))
        rows.append((f, w, sum(terms), corrected, listed))
    return pd.DataFrame(rows, columns=["faces", "names", "printed", "corrected", "listed"])
