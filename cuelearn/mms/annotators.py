r"""Candidate sets from annotators who disagree, and from links between instances (thesis 5.8).

Annotator a gives label l to an item of class k with probability :math:`\pi^{(a)}_{kl}`, and class k has the
share :math:`\rho_k`. `dawid_skene` estimates both by EM, with posteriors :math:`T_{ik}` of the item's class:

.. math:: T_{ik} \propto \rho_k \prod_a \pi^{(a)}_{k, v_{ia}}, \qquad
    \pi^{(a)}_{kl} \propto \sigma + \sum_{i : v_{ia} = l} T_{ik}, \qquad
    \rho_k \propto \sigma + \sum_i T_{ik} .
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning

from cuelearn.expect import expect, expect_among, expect_distinct, expect_word, warn_user
from cuelearn.kernels.types import ArrayLike
from cuelearn.mms.candidates import MOST_LISTED, CandidateSet, check_candidates, starts_of_bags

__all__ = [
    *("AnnotatedItems", "DawidSkene"),
    *("candidates_from_annotators", "candidates_from_links", "dawid_skene"),
]

#: Columns of votes that are given as rows.
ROWS = ("item", "annotator", "label")
METHODS = ("dawid-skene", "majority")
#: Confusions are estimated if at least this share of the items with a vote has three, or ...
TRIPLES = 1 / 3
#: ... if so many items with two or more votes come to each probability of a confusion.
PAIRS = 5
#: Least share of the items in rows of votes that have a vote.
VOTED = 0.01


class DawidSkene(NamedTuple):
    """Result of `dawid_skene`.

    Attributes
    ----------
    posterior : ndarray, shape (n_items, n_labels)
    confusion : ndarray, shape (n_annotators, n_labels, n_labels)
        Probability of a vote (last axis) given the class.
    class_prior : ndarray, shape (n_labels,)
    history : ndarray
        The objective at the start of each iteration; it never falls.
    converged : bool

    Examples
    --------
    >>> from cuelearn.mms import DawidSkene, dawid_skene
    >>> isinstance(dawid_skene([[0, 0], [1, 1], [1, -1]], 2), DawidSkene)
    True
    """

    posterior: np.ndarray
    confusion: np.ndarray
    class_prior: np.ndarray
    history: np.ndarray
    converged: bool


class AnnotatedItems(NamedTuple):
    """Result of `candidates_from_annotators`.

    Attributes
    ----------
    candidates : CandidateSet
        One bag per item; its candidates are the probable labels, its priors their posteriors.
    posterior : ndarray, shape (n_items, n_labels)
    confusion : ndarray, shape (n_annotators, n_labels, n_labels)
        Probability of a vote (last axis) given the class.
    annotators : ndarray
        Names or numbers of the annotators, in the order of `confusion`.

    Examples
    --------
    >>> from cuelearn.mms import AnnotatedItems, candidates_from_annotators
    >>> isinstance(candidates_from_annotators([["a", "b", "a"]]), AnnotatedItems)
    True
    """

    candidates: CandidateSet
    posterior: np.ndarray
    confusion: np.ndarray
    annotators: np.ndarray

    def labels(self) -> np.ndarray:
        """The most probable label of each item, of equal ones the first, shape (n_items,)."""
        return self.candidates.classes[0][self.posterior.argmax(axis=1)]


def indicators(votes, n_labels):
    """Votes as a sparse 0/1 matrix; column ``a * n_labels + l`` is label l by annotator a."""
    item, annotator = np.nonzero(votes >= 0)
    column = annotator * n_labels + votes[item, annotator]
    return csr_array((np.ones(item.size), (item, column)), shape=(len(votes), votes.shape[1] * n_labels))


def vote_shares(given, n_labels):
    """Share of each label among an item's votes; equal shares without a vote."""
    counts = given @ np.tile(np.eye(n_labels), (given.shape[1] // n_labels, 1))
    counts[counts.sum(axis=1) == 0.0] = 1.0
    return counts / counts.sum(axis=1, keepdims=True)


def confusions(given, posterior, smoothing):
    """M step: confusion matrices (n_annotators, n_labels, n_labels), and shares of the classes."""
    n_labels = posterior.shape[1]
    counts = (given.T @ posterior).reshape(-1, n_labels, n_labels).transpose(0, 2, 1) + smoothing
    shares = posterior.sum(axis=0) + smoothing
    return counts / counts.sum(axis=2, keepdims=True), shares / shares.sum()


def posteriors(given, confusion, class_prior):
    """E step: posterior of the classes, and log-likelihood of all votes."""
    n_labels = class_prior.size
    of_votes = np.log(confusion).transpose(0, 2, 1).reshape(-1, n_labels)
    logs = given @ of_votes + np.log(class_prior)
    top = logs.max(axis=1, keepdims=True)
    likelihood = np.exp(logs - top)
    total = likelihood.sum(axis=1, keepdims=True)
    return likelihood / total, float(np.sum(top + np.log(total)))


def dawid_skene(
    votes: ArrayLike, n_labels: int, *, smoothing: float = 1.0, tol: float = 1e-8, max_iter: int = 1000
) -> DawidSkene:
    r"""Classes of items and confusions of annotators from their votes, by EM.

    .. math:: \max_{\rho, \pi} \sum_i \log \sum_k \rho_k \prod_a \pi^{(a)}_{k, v_{ia}}
        + \sigma \Big(\sum_k \log \rho_k + \sum_{a, k, l} \log \pi^{(a)}_{kl}\Big)

    Parameters
    ----------
    votes : array-like of int, shape (n_items, n_annotators)
        Labels from 0 to ``n_labels - 1``, or -1 where an annotator gave none.
    n_labels : int
    smoothing : float > 0, default 1.0
        Votes added to each row of a confusion matrix, and to the classes, spread evenly over the labels:
        :math:`\sigma` = smoothing / n_labels.
    tol : float >= 0, default 1e-8
        Stops when the objective rises by at most this share.
    max_iter : int >= 1, default 1000

    Returns
    -------
    DawidSkene

    Warns
    -----
    ConvergenceWarning
        If `max_iter` ends the iterations.

    Notes
    -----
    The first posteriors are the shares of the votes. An iteration takes O(V K) for V votes and K labels.

    References
    ----------
    Dawid and Skene: Maximum likelihood estimation of observer error-rates using the EM algorithm, 1979.

    Examples
    --------
    The third annotator guesses; two who agree elsewhere decide.

    >>> from cuelearn.mms import dawid_skene
    >>> result = dawid_skene([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0], [0, -1, 1]], 2)
    >>> result.posterior.argmax(axis=1)
    array([0, 1, 0, 1, 0])
    """
    K = expect("n_labels", n_labels, kind="whole", low=1)
    votes = expect("votes", votes, kind="int", shape=("n_items", "n_annotators"), low=-1, high=K - 1)
    check_voted(votes >= 0)
    sigma = expect("smoothing", smoothing, above=0) / K
    tol = expect("tol", tol, low=0)
    most = expect("max_iter", max_iter, kind="whole", low=1)
    given = indicators(votes, K)
    posterior = vote_shares(given, K)
    history = []
    converged = False
    while not converged and len(history) < most:
        confusion, class_prior = confusions(given, posterior, sigma)
        posterior, objective = posteriors(given, confusion, class_prior)
        objective += sigma * float(np.log(class_prior).sum() + np.log(confusion).sum())
        converged = bool(history) and objective - history[-1] <= tol * abs(objective)
        history.append(objective)
    if not converged:
        message = f"dawid_skene did not converge in {most} iterations; raise max_iter or tol"
        warn_user(message, ConvergenceWarning)
    return DawidSkene(posterior, confusion, class_prior, np.array(history), converged)


def identified(votes, n_labels):
    """Whether the votes determine the confusions, as three views of a latent class do and single votes do
    not."""
    n_votes = (votes >= 0).sum(axis=1)
    n_probabilities = np.count_nonzero((votes >= 0).any(axis=0)) * n_labels * (n_labels - 1)
    triples = np.count_nonzero(n_votes >= 3) >= TRIPLES * np.count_nonzero(n_votes)
    return bool(triples or np.count_nonzero(n_votes >= 2) >= PAIRS * n_probabilities)


def check_voted(voted):
    if not voted.any():
        raise ValueError("votes must hold at least one label")


def as_table(votes):
    """Votes as a DataFrame of objects, (n_items, n_annotators), NaN where there is none."""
    named = set(ROWS) & set(getattr(votes, "columns", ()))
    if named:
        if len(named) < len(ROWS):
            found = ", ".join(sorted(named))
            raise ValueError(f"votes must hold all columns {', '.join(ROWS)} or none, got {found}")
        # pandas makes floats of integers where it joins tables
        item = expect("votes['item'], the row of X,", votes["item"], kind="whole", shape=("n_votes",), low=0)
        votes = votes.assign(item=item)
        expect_distinct("votes: pairs of item and annotator", zip(item.tolist(), votes["annotator"]))
        n_voted = np.unique(item).size
        if n_voted < VOTED * (item.max() + 1):
            raise ValueError(f"votes must number items by the rows of X, got {n_voted} up to {item.max()}")
        table = votes.pivot(index="item", columns="annotator", values="label")
        return table.reindex(range(item.max() + 1)).astype(object)
    table = pd.DataFrame(votes)
    if np.ndim(votes) != 2 or table.size == 0:
        wanted = f"of shape (n_items, n_annotators) or a DataFrame with columns {', '.join(ROWS)}"
        raise ValueError(f"votes must be {wanted}, got shape {np.shape(votes)}")
    return table.astype(object)


def coded(table, classes):
    """Positions of the votes among the classes, -1 for none, and the classes."""
    values = table.to_numpy()
    voted = ~pd.isna(values)
    voted[voted] = values[voted] != ""
    minus = np.zeros(voted.shape, dtype=bool)
    minus[voted] = values[voted] == -1
    voted &= ~minus
    check_voted(voted)
    labels = values[voted].tolist()
    given = classes is not None
    if not given and len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError("votes must be numbers or text, got both")
    classes = np.asarray(classes if given else np.unique(labels))
    if np.any(classes == -1) or (minus.any() and classes.size == 1 and not given):
        raise ValueError("classes must not include -1, which stands for no vote: number them from 0")
    expect_distinct("classes", classes.tolist())
    expect_among("votes", labels, classes.tolist())
    votes = np.full(values.shape, -1)
    votes[voted] = pd.Index(classes).get_indexer(labels)
    return votes, classes


def candidates_from_annotators(
    votes: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    method: Literal["dawid-skene", "majority"] = "dawid-skene",
    threshold: float = 0.1,
    smoothing: float = 1.0,
    tol: float = 1e-8,
    max_iter: int = 1000,
) -> AnnotatedItems:
    r"""Candidate labels of items, with priors, from the votes of several annotators (thesis 5.8).

    The candidates of an item are the labels with a posterior of at least `threshold` times the item's
    largest; their priors are these posteriors.

    Parameters
    ----------
    votes : array-like or DataFrame, shape (n_items, n_annotators), or DataFrame of rows
        Labels, numbers or text; None, NaN, "" or -1 where an annotator gave none. Rows have the columns item
        (row of X, from 0), annotator and label.
    classes : sequence, optional
        All labels in their order; by default those of the votes, sorted.
    method : {"dawid-skene", "majority"}
        Posteriors by `dawid_skene`, or the shares of an item's votes, which are also used, with a warning,
        where the votes do not determine the confusions: where less than a third of the items with a vote have
        three, and those with two or more are fewer than five for each of the A K (K - 1) probabilities of A
        annotators and K labels.
    threshold : float in [0, 1], default 0.1
        0 makes all labels candidates, 1 the most probable one alone.
    smoothing, tol, max_iter
        As in `dawid_skene`; "majority" uses `smoothing` alone, for the confusions.

    Returns
    -------
    AnnotatedItems

    Raises
    ------
    ValueError
        If there is no vote, a vote is outside `classes`, or an annotator votes twice for an item.

    Warns
    -----
    UserWarning
        If the shares of the votes are used in place of `dawid_skene`.

    Notes
    -----
    In `MMS` priors favour improbable candidates where scores are negative (see `CandidateSet`);
    ``result.candidates.without_priors()`` makes all equally probable.

    References
    ----------
    Thesis section 5.8 and remark 5.1; Dawid and Skene (1979).

    Examples
    --------
    >>> from cuelearn.mms import candidates_from_annotators
    >>> votes = [["cat", "cat", "dog"], ["dog", "dog", None], ["cat", "cat", "cat"], ["dog", "dog", "cat"]]
    >>> result = candidates_from_annotators(votes, method="majority")
    >>> result.labels().tolist(), result.candidates.n_candidates
    (['cat', 'dog', 'cat', 'dog'], [2, 1, 1, 2])
    """
    expect_word("method", method, METHODS)
    threshold = expect("threshold", threshold, low=0, high=1)
    table = as_table(votes)
    numbers, classes = coded(table, classes)
    K = len(classes)
    if method == "dawid-skene" and not identified(numbers, K):
        warn_user(
            "votes: too few items have several votes to estimate how annotators err; the shares of the votes "
            "are used, as with method='majority'"
        )
        method = "majority"
    if method == "majority":
        given = indicators(numbers, K)
        posterior = vote_shares(given, K)
        confusion, _ = confusions(given, posterior, expect("smoothing", smoothing, above=0) / K)
    else:
        result = dawid_skene(numbers, K, smoothing=smoothing, tol=tol, max_iter=max_iter)
        posterior, confusion, *_ = result
    kept = (posterior >= threshold * posterior.max(axis=1, keepdims=True)) & (posterior > 0.0)
    labels = [np.flatnonzero(row)[:, None] for row in kept]
    priors = [shares[row] for shares, row in zip(posterior, kept, strict=True)]
    candidates = CandidateSet(labels, classes=[classes], priors=priors)
    return AnnotatedItems(candidates, posterior, confusion, np.asarray(table.columns))


def checked_links(name, links, bag_of):
    """Pairs of rows of one bag, the later row last, as an int array (n_links, 2)."""
    if len(links) == 0:
        return np.zeros((0, 2), dtype=int)
    links = expect(name, links, kind="int", shape=("n_links", 2), low=0, high=bag_of.size - 1)
    links = np.sort(links, axis=1)
    first, last = links.T
    wrong = (bag_of[first] != bag_of[last]) | (first == last)
    if wrong.any():
        raise ValueError(f"{name} must link two instances of one bag, got rows {links[wrong][0].tolist()}")
    return links


def to_first(links, n):
    """Must-links of n rows as links of each row to the first that must agree with it."""
    graph = csr_array((np.ones(len(links)), links.T), shape=(n, n))
    _, group = connected_components(graph, directed=False)
    _, first = np.unique(group, return_index=True)
    leader = first[group]
    rows = np.flatnonzero(leader != np.arange(n))
    return np.column_stack([leader[rows], rows])


def by_bag(links, bag_of, starts):
    """The links of each bag, as numbers of its instances."""
    bags = bag_of[links[:, 0]]
    order = np.argsort(bags, kind="stable")
    ends = np.cumsum(np.bincount(bags, minlength=starts.size - 1))
    parts = np.split(links[order], ends[:-1])
    return [part - start for part, start in zip(parts, starts[:-1], strict=True)]


def linked_product(i, lists, priors, same, different, most):
    """Labelings of bag i that obey its links, (n, n_instances, n_attributes), and their priors, from the
    `lists` and `priors` of the bags that it merges."""
    labelings = np.zeros((1, 0, lists[0].shape[2]), dtype=lists[0].dtype)
    log_prior = np.zeros(1)
    for candidates, prior in zip(lists, priors, strict=True):
        start = labelings.shape[1]
        end = start + candidates.shape[1]
        due_same = same[(same[:, 1] >= start) & (same[:, 1] < end)]
        due_different = different[(different[:, 1] >= start) & (different[:, 1] < end)]
        kept = []
        kept_prior = []
        n_kept = 0
        for candidate, share in zip(candidates, np.log(prior), strict=True):
            added = np.broadcast_to(candidate, (len(labelings), *candidate.shape))
            longer = np.concatenate([labelings, added], axis=1)
            good = np.ones(len(longer), dtype=bool)
            for first, last in due_same:
                good &= np.all(longer[:, first] == longer[:, last], axis=1)
            for first, last in due_different:
                good &= np.any(longer[:, first] != longer[:, last], axis=1)
            kept.append(longer[good])
            kept_prior.append(log_prior[good] + share)
            n_kept += int(good.sum())
            if n_kept > most:
                raise ValueError(f"bag {i} has more than {most} labelings of its first {end} instances")
        if n_kept == 0:
            raise ValueError(f"the links of bag {i} leave its first {end} instances no labeling")
        labelings = np.concatenate(kept)
        log_prior = np.concatenate(kept_prior)
    return labelings, np.exp(log_prior - log_prior.max())


def candidates_from_links(
    candidates: CandidateSet,
    must_link: ArrayLike = (),
    cannot_link: ArrayLike = (),
    *,
    bag_sizes: Sequence[int] | None = None,
    threshold: float = 0.0,
    most: int = MOST_LISTED,
) -> CandidateSet:
    r"""Candidate labelings that obey links between instances (thesis 5.8; Shental et al. 2003).

    Neighbouring bags are merged. The candidates of a merged bag are the combinations of theirs in which
    linked instances have the same label (must-link), in all attributes, or different ones (cannot-link); its
    priors are the products of theirs.

    Parameters
    ----------
    candidates : CandidateSet
        For instance of `candidates_from_annotators`, a bag per item. A `Matching` is listed.
    must_link, cannot_link : array-like of int, shape (n_links, 2)
        Pairs of rows of X, both in one (merged) bag.
    bag_sizes : sequence of int, optional
        Numbers of consecutive instances of the merged bags; by default the bags stay as they are.
    threshold : float in [0, 1], default 0.0
        Labelings with a prior below `threshold` times the bag's largest are dropped.
    most : int >= 1, default 10,000
        Most labelings of a bag, and of its first instances, before `threshold` drops some.

    Returns
    -------
    CandidateSet

    Raises
    ------
    ValueError
        If the links leave a bag no labeling or more than `most`, a link leaves its bag, or `bag_sizes` cut a
        bag in two.

    Notes
    -----
    Labelings are built bag by bag, and a link is applied as soon as both ends are labelled. Lists may grow
    exponentially with the bag: choose small bags, few candidates or many links. As links may contradict the
    most probable labels of single items, start from candidates with threshold 0, and let `threshold` drop
    improbable labelings here: without threshold and priors, only the links tell the labels of a bag apart.

    References
    ----------
    Thesis section 5.8; Shental, Bar-Hillel, Hertz and Weinshall, NIPS 2003.

    Examples
    --------
    Of 27 labelings six have three different labels.

    >>> from cuelearn.mms import CandidateSet, candidates_from_links
    >>> items = CandidateSet([[[0], [1], [2]]] * 3)
    >>> apart = candidates_from_links(items, cannot_link=[[0, 1], [1, 2], [0, 2]], bag_sizes=[3])
    >>> apart.n_candidates, apart.contains(0, [2, 0, 1])
    ([6], True)
    """
    check_candidates(candidates)
    threshold = expect("threshold", threshold, low=0, high=1)
    most = expect("most", most, kind="whole", low=1)
    if bag_sizes is None:
        bag_sizes = candidates.bag_sizes
    starts = starts_of_bags(bag_sizes, candidates.n_instances)
    ends = np.searchsorted(candidates.bag_starts, starts)
    if not np.array_equal(candidates.bag_starts[ends], starts):
        raise ValueError("bag_sizes must merge whole bags of candidates")
    bag_of = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    same = to_first(checked_links("must_link", must_link, bag_of), bag_of.size)
    different = checked_links("cannot_link", cannot_link, bag_of)
    links = zip(by_bag(same, bag_of, starts), by_bag(different, bag_of, starts), strict=True)
    bags = []
    priors = []
    for i, (own_same, own_different) in enumerate(links):
        merged = range(ends[i], ends[i + 1])
        lists = [candidates.bag(b) for b in merged]
        given = [candidates.priors(b) for b in merged]
        known = [np.ones(len(bag)) if p is None else p for bag, p in zip(lists, given, strict=True)]
        bag, prior = linked_product(i, lists, known, own_same, own_different, most)
        kept = prior >= threshold
        bags.append(bag[kept])
        priors.append(None if all(p is None for p in given) else prior[kept])
    return CandidateSet(bags, classes=candidates.classes, null=candidates.null, priors=priors)
