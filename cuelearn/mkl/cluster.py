"""Training on Dask collections: partitions stay with their workers, which hold them as actors.

All that is sent are the messages and reports of `cuelearn.mkl.optimum.partitions`, and at most 5,000 samples
to fit transformers. A worker that dies costs one round: its partitions are built again, get the coordinator's
state, and start from dual variables 0.
"""

import numpy as np

from cuelearn.core.samples import classes_and_labels, labels_of, labels_within
from cuelearn.expect import require
from cuelearn.kernels.features import taken
from cuelearn.kernels.fitted import spaced
from cuelearn.kernels.specifications import check_samples
from cuelearn.mkl.optimum.partitions import Partition, scaled_bank, solve_partitions

# times that a partition is built anew in one round
ATTEMPTS = 3


def is_collection(X):
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def blocks_of(X, y):
    """Delayed blocks of samples and labels; y is a collection, or the name of a column of X."""
    if getattr(X, "ndim", 0) != 2:
        raise ValueError("X of Dask must be an array of two dimensions, or a DataFrame")
    named = isinstance(y, str) and y in getattr(X, "columns", ())
    if not named and not is_collection(y):
        raise ValueError(f"y must be labels of Dask, or a column of a DataFrame X, got {y!r:.40}")
    if hasattr(X, "numblocks"):
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        known = hasattr(y, "numblocks") and not np.isnan([*X.shape, *y.shape]).any()
        if known and y.shape == X.shape[:1]:
            y = y.rechunk((X.chunks[0],))
    samples = np.ravel(X.to_delayed())
    if named:
        return samples, [y] * len(samples)
    labels = np.ravel(y.to_delayed())
    if len(labels) != len(samples):
        raise ValueError(f"y must have the {len(samples)} partitions of X, got {len(labels)}")
    return samples, list(labels)


def checked_pair(X, y, number):
    """Samples and labels of a partition, checked where they are."""
    if isinstance(y, str):
        X, y = X.drop(columns=y), X[y]
    y = np.asarray(y)
    try:
        if X.shape[0] or y.size:
            X = check_samples(X)[0]
            y = labels_of(None, y, X.shape[0])
    except (TypeError, ValueError) as error:
        raise ValueError(f"partition {number}: {error}") from error
    return X, y


def count_labels(pair):
    return pair[0].shape[1], *np.unique(pair[1], return_counts=True)


def spaced_samples(pair):
    return taken(pair[0], spaced(pair[0].shape[0]))


def moments_of(pair, number, bank):
    try:
        return bank.on(pair[0]).second_moments()
    except ValueError as error:
        raise ValueError(f"partition {number}: {error}") from error


def build_partition(pair, bank, classes, class_weights, n, options):
    labels = labels_within(pair[1], classes)
    return Partition(bank, pair[0], labels, class_weights, n, **options)


class Cluster:
    """The partitions of X and y that hold samples, on the workers of the running client."""

    def __init__(self, X, y):
        require("dask", "distributed")
        import dask
        import distributed

        try:
            self.client = distributed.get_client()
        except ValueError as error:
            raise ValueError("X of Dask needs a running client: distributed.Client()") from error
        pairs = []
        for number, (samples, labels) in enumerate(zip(*blocks_of(X, y), strict=True)):
            pairs.append(dask.delayed(checked_pair)(samples, labels, number))
        futures = self.client.compute(pairs)
        counts = self.client.gather(self.client.map(count_labels, futures))
        kept = [k for k, (_, classes, _) in enumerate(counts) if classes.size]
        if not kept:
            raise ValueError("X must hold samples, got empty partitions")
        self.numbers = kept
        self.pairs = [pairs[k] for k in kept]
        self._futures = [futures[k] for k in kept]
        widths = {counts[k][0] for k in kept}
        if len(widths) > 1:
            raise ValueError(f"X must have as many columns in each partition, got {sorted(widths)}")
        labels = np.concatenate([counts[k][1] for k in kept])
        self.classes, labels = classes_and_labels(labels)
        self.counts = np.bincount(labels, np.concatenate([counts[k][2] for k in kept]))
        self.n = int(self.counts.sum())

    def first_samples(self):
        return self.client.submit(spaced_samples, self._futures[0]).result()

    def solve(self, problem, bank, *, loss, seed, **options):
        """As `solve_partitions`, with the bank of `first_samples`."""
        client = self.client
        moments = client.map(moments_of, self._futures, self.numbers, bank=bank)
        scaled = client.submit(scaled_bank, bank, moments, self.n)
        own_bank = scaled.result()
        del moments
        weights = problem.loss_weights / self.counts

        def build(k, pair):
            own = {"loss": loss, "seed": seed, "number": self.numbers[k]}
            return client.submit(
                build_partition, pair, scaled, self.classes, weights, self.n, own, actor=True, pure=False
            )

        actors = [build(k, pair) for k, pair in enumerate(self._futures)]
        actors = [actor.result() for actor in actors]
        self._futures = ()

        def replies(actors, message):
            """Reports of partitions; None of those whose worker is lost."""
            waiting = []
            for actor in actors:
                try:
                    waiting.append(actor.round(message))
                except RuntimeError:
                    waiting.append(None)
            reports = []
            for reply in waiting:
                try:
                    reports.append(reply and reply.result())
                except (OSError, RuntimeError):
                    reports.append(None)
            return reports

        def ask(message, state_of):
            reports = replies(actors, message)
            for k in range(len(actors)):
                for _ in range(ATTEMPTS):
                    if reports[k] is None:
                        actors[k] = build(k, client.compute(self.pairs[k])).result()
                        [reports[k]] = replies([actors[k]], message._replace(state=state_of(k)))
                if reports[k] is None:
                    raise RuntimeError(f"partition {self.numbers[k]} was lost {ATTEMPTS} times in one round")
            return reports

        return solve_partitions(problem, own_bank, len(actors), ask, **options)
