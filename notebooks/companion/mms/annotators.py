"""Annotators who disagree, and links within bags (thesis 5.8): real samples, simulated votes.

A draw splits the samples, draws annotators with their confusions, and their votes. Of n annotators n // 3
are *spammers*, whose votes do not depend on the sample.
"""

import itertools
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from companion import pictures
from companion.mms import VALIDATION, make_mms, predicted
from companion.protocol import fitted, grid_points, load_set, made_here, quiet
from companion.study import Study, choose
from cuelearn.mms import CandidateSet, SupervisedSVM, candidates_from_annotators, candidates_from_links

CUES = ("HSV 2x2", "PHOG 2")
#: Subgroups of emoji with the most things.
N_CATEGORIES = 6
TEST_SHARE = 0.4
#: Accuracies of annotators who are no spammers.
ACCURACY = (0.4, 0.8)
#: Of Dirichlet distributions: an annotator's errors favour few labels.
CONCENTRATION = 0.3
VOTES_ON = 0.8  # share of the items on which an annotator votes
THRESHOLD = 0.1  # the default of `candidates_from_annotators`
#: Annotators for whom C is chosen in each draw, and who vote on linked items.
MIDDLE = 5
LINKED = 3
BAG_SIZE = 4
#: Draws 0 to 15 were seen before the number of draws was set; those that count come after them.
FIRST_DRAW = 100
SHARES = (0.0, 0.5, 1.0)  # of a bag's pairs whose links are known
VOTES = ("MMS priors", "MMS", "majority vote", "Dawid-Skene", "Dawid-Skene weighted", "MC-SVM")
LINKS = ("MMS priors", "MMS", "majority vote", "Dawid-Skene", "MC-SVM")


class Problem(NamedTuple):
    """What methods are trained and tested on."""

    X: np.ndarray
    sets: CandidateSet  # probable labelings with their posteriors as priors
    posterior: np.ndarray  # of each item's label, by all annotators
    majority: np.ndarray  # most frequent label of each item
    probable: np.ndarray  # labels of the most probable labeling of each bag
    labels: np.ndarray  # the truth
    new: tuple  # test features and labels


def provenance(name):
    """Where samples and their votes come from: the votes make a part simulated."""
    source = pictures.emoji() if name == "emoji" else load_set(name)
    return [source.provenance, made_here(f"{name} with simulated annotators", f"{__name__}.votes_of")]


@lru_cache
def samples(name):
    """Features, label numbers, and the group of every sample: groups stay on one side of a split."""
    if name == "emoji":
        groups = pictures.categories(N_CATEGORIES)
        category = {thing: c for c, things in enumerate(groups.values()) for thing in things}
        data = pictures.described(pictures.drawings_of(list(category)), list(CUES))
        return data.X, np.array([category[thing] for thing in data.y]), data.y
    data = load_set(name)
    return data.X, np.unique(data.y, return_inverse=True)[1], np.arange(len(data.y))


def split(name, seed, n_test):
    """Rows for training, in random order, and at most `n_test` rows for tests."""
    _, _, group = samples(name)
    rng = np.random.default_rng([seed, 60])
    groups = rng.permutation(np.unique(group))
    for_tests = np.isin(group, groups[: int(TEST_SHARE * groups.size)])
    return rng.permutation(np.flatnonzero(~for_tests)), rng.permutation(np.flatnonzero(for_tests))[:n_test]


def annotators(rng, n_annotators, n_labels):
    """Confusion matrices (n_annotators, n_labels, n_labels); the first third are spammers."""
    spread = np.full(n_labels, CONCENTRATION)
    confusion = np.empty((n_annotators, n_labels, n_labels))
    for a in range(n_annotators):
        if a < n_annotators // 3:
            confusion[a] = rng.dirichlet(spread)
            continue
        errors = rng.dirichlet(spread, n_labels)
        np.fill_diagonal(errors, 0.0)
        errors /= np.maximum(errors.sum(axis=1, keepdims=True), 1e-12)
        accuracy = rng.uniform(*ACCURACY)
        confusion[a] = (1.0 - accuracy) * errors + accuracy * np.eye(n_labels)
        confusion[a] /= confusion[a].sum(axis=1, keepdims=True)
    return confusion


def votes_of(rng, confusion, labels):
    """Votes (n_items, n_annotators), -1 for none."""
    ends = np.cumsum(confusion, axis=2)[:, labels]  # annotator, item, label
    drawn = rng.random(ends.shape[:2])
    votes = np.minimum((drawn[:, :, None] >= ends).sum(axis=2), confusion.shape[1] - 1).T
    votes[rng.random(votes.shape) >= VOTES_ON] = -1
    return votes


@lru_cache(maxsize=2)
def problem(name, seed, n_items, n_test, n_annotators, share=None):
    """A draw: items that annotators vote on, alone or (`share` of the links known) in bags of `BAG_SIZE`."""
    X, y, _ = samples(name)
    K = y.max() + 1
    rows, test = split(name, seed, n_test)
    if share is None:
        rows = rows[:n_items]
    else:
        rows = rows[pairs_of_classes(y[rows], n_items // BAG_SIZE, np.random.default_rng([seed, 62]))]
    rng = np.random.default_rng([seed, 61, n_annotators])
    votes = votes_of(rng, annotators(rng, n_annotators, K), y[rows])
    shares = candidates_from_annotators(votes, classes=range(K), method="majority").posterior
    majority = np.argmax(shares + 1e-9 * rng.random(shares.shape), axis=1)  # ties at random
    with quiet():
        items = candidates_from_annotators(votes, classes=range(K), threshold=THRESHOLD * (share is None))
    sets = items.candidates
    if share is not None:
        same, different = links_of(y[rows], share, np.random.default_rng([seed, 63]))
        sizes = [BAG_SIZE] * (len(rows) // BAG_SIZE)
        sets = candidates_from_links(sets, same, different, bag_sizes=sizes, threshold=THRESHOLD)
    best = [sets.bag(i)[np.argmax(sets.priors(i)), :, 0] for i in range(sets.n_bags)]
    scaler = StandardScaler().fit(X[rows])
    train, new = ((scaler.transform(X[r]) / np.sqrt(X.shape[1])).astype(np.float32) for r in (rows, test))
    return Problem(train, sets, items.posterior, majority, np.concatenate(best), y[rows], (new, y[test]))


def pairs_of_classes(labels, n_bags, rng):
    """Places of items in bags of `BAG_SIZE`; each item of a bag has one of two classes, drawn for the bag."""
    pools = [list(rng.permutation(np.flatnonzero(labels == c))) for c in range(labels.max() + 1)]
    places = []
    for _ in range(n_bags):
        left = [c for c, pool in enumerate(pools) if len(pool) >= BAG_SIZE]
        pair = rng.choice(left, 2, replace=False)
        places += [pools[c].pop() for c in rng.choice(pair, BAG_SIZE)]
    return np.array(places)


def links_of(labels, share, rng):
    """Must-links and cannot-links for a share of the pairs of every bag; a larger share has the links of a
    smaller one."""
    pairs = np.array(list(itertools.combinations(range(BAG_SIZE), 2)))
    known = int(round(share * len(pairs)))
    links = [start + rng.permutation(pairs)[:known] for start in range(0, len(labels), BAG_SIZE)]
    links = np.concatenate(links)
    same = labels[links[:, 0]] == labels[links[:, 1]]
    return links[same], links[~same]


def trained(method, C, seed, effort, given, bags):
    """A method fitted to some bags of a `Problem`."""
    rows = given.sets.rows(bags)
    X = given.X[rows]
    sets = given.sets.take(bags)
    if method.startswith("MMS"):
        sets = sets if method == "MMS priors" else sets.without_priors()
        return fitted(make_mms(C, seed, **effort), X, sets)
    classes = sets.classes
    if method == "Dawid-Skene weighted":  # an item once with each probable label
        item, label = np.nonzero(sets.mask())
        weights = given.posterior[rows][item, label]
        labels = CandidateSet.from_labels(label, classes=classes)
        return fitted(SupervisedSVM(C=C, random_state=seed), X[item], labels, weights)
    known = {"majority vote": given.majority, "Dawid-Skene": given.probable, "MC-SVM": given.labels}
    labels = CandidateSet.from_labels(known[method][rows], classes=classes)
    return fitted(SupervisedSVM(C=C, random_state=seed), X, labels)


def validated(method, seed, grid, effort, **made):
    """C by held-back bags, for all methods alike: the mean posterior, by all annotators, of the predicted
    labels; for the SVM that knows the truth, their accuracy."""
    given = problem(seed=seed, **made)
    n_bags = given.sets.n_bags
    order = np.random.default_rng([seed, 64]).permutation(n_bags)
    held, train = np.split(order, [max(1, int(VALIDATION * n_bags))])
    rows = given.sets.rows(held)

    def score(chosen):
        labels = predicted(trained(method, chosen["C"], seed, effort, given, train), given.X[rows])
        if method == "MC-SVM":
            return np.mean(labels == given.labels[rows])
        return np.mean(given.posterior[rows, labels])

    return choose(grid_points(C=map(float, grid)), score)[0]


def errors(seed, chosen, effort, **made):
    """Test error of each method, share of wrong training labels that it was given (SVMs) or, for MMS, of bags
    whose true labeling is no candidate, and mean number of candidates."""
    given = problem(seed=seed, **made)
    sets = given.sets
    truth = np.split(given.labels, sets.bag_starts[1:-1])
    missing = np.mean([not sets.contains(i, z[:, None]) for i, z in enumerate(truth)])
    wrong = {"majority vote": given.majority, "Dawid-Skene": given.probable}
    rows = []
    for method, own in chosen.items():
        model = trained(method, own["C"], seed, effort, given, np.arange(sets.n_bags))
        error = np.mean(predicted(model, given.new[0]) != given.new[1])
        label_error = np.mean(wrong[method] != given.labels) if method in wrong else np.nan
        about = {"label_error": label_error, "missing": missing, "n_candidates": np.mean(sets.n_candidates)}
        rows.append({"method": method, "error": float(error), **about})
    return pd.DataFrame(rows)


def _errors(sweep, label, methods, size, seeds, grid, effort, middle, places):
    """Errors at `places`, parameters chosen at `middle` of every draw."""
    common = {"n_items": size["n_items"], "n_test": size["n_test"]}
    draws = grid_points(name=size["names"], seed=[FIRST_DRAW + seed for seed in seeds])
    points = [({**draw, **common, **place}, methods) for draw in draws for place in places]
    how = {
        "by": ("name", "seed", *common),
        "choosing": {**middle, "grid": list(grid), "effort": effort},
        "comparing": {"effort": effort},
        "columns": ("C",),
        "data": sum((provenance(name) for name in size["names"]), []),
    }
    return Study(sweep, label, errors, validated, **how).table(points)


def errors_of_votes(sweep, size, seeds, grid, effort):
    """Test errors by number of annotators, of items alone."""
    places = [{"n_annotators": n} for n in size["n_annotators"]]
    middle = {"n_annotators": MIDDLE}
    return _errors(sweep, "annotators", VOTES, size, seeds, grid, effort, middle, places)


def errors_of_links(sweep, size, seeds, grid, effort):
    """Test errors by share of known links, of items in bags."""
    places = [{"n_annotators": LINKED, "share": share} for share in SHARES]
    return _errors(sweep, "links", LINKS, size, seeds, grid, effort, places[1], places)
