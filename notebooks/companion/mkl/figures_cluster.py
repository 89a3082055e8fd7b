"""Training in partitions: rounds and megabytes to a certified gap against the number of partitions."""

import numpy as np
import pandas as pd
from sklearn.kernel_approximation import RBFSampler

from companion.plots import mkl as draw
from companion.protocol import quiet
from companion.run.registry import figure
from cuelearn.datasets import load_mnist
from cuelearn.kernels import FeatureMap
from cuelearn.kernels.features import FeatureBank
from cuelearn.mkl.optimum.blocks import BlockProblem
from cuelearn.mkl.optimum.partitions import Partition, scaled_bank, solve_partitions

#: Certified relative gaps, the last one ends a run.
GAPS = (0.05, 0.01)
#: Of the radial basis function of a quarter of a digit.
GAMMA = 0.03


def rounds_of(n_train, n_features, most_rounds, n_partitions, C, seed):
    """Rounds and megabytes to the `GAPS` of UFO-MKL on digits, dealt at random to partitions.

    All partitions are in this process; a round is what it would be on as many machines.
    """
    data = load_mnist(n_train=n_train, n_test=0)
    order = np.random.default_rng(seed).permutation(n_train)
    X = data.X[order]
    y = data.y[order]
    kernels = []
    for number, (cue, columns) in enumerate(data.cues.items()):
        sampler = RBFSampler(gamma=GAMMA, n_components=n_features, random_state=number)
        kernels.append((cue, FeatureMap(sampler), columns))
    bank = FeatureBank(kernels, X).on()
    parts = np.array_split(np.arange(n_train), n_partitions)
    scaled = scaled_bank(bank, [bank.on(X[part]).second_moments() for part in parts], n_train)
    held = [
        Partition(scaled, X[part], y[part], np.ones(10), n_train, number=k, seed=seed)
        for k, part in enumerate(parts)
    ]
    bank.n_samples = 10  # a class stands for its samples
    counts = np.bincount(y, minlength=10).astype(np.float64)
    problem = BlockProblem(bank, np.arange(10), 10, C=C, sample_weight=counts)

    def ask(message, state_of):
        return [part.round(message) for part in held]

    with quiet():
        result = solve_partitions(problem, scaled, n_partitions, ask, tol=GAPS[-1], max_rounds=most_rounds)
    history = result.history
    rows = []
    for gap in GAPS:
        reached = history[history["dual_gap"] <= gap * history["objective"]]
        first = {"rounds": np.nan, "megabytes": np.nan}
        if len(reached):
            first = {"rounds": reached["epoch"].iloc[0], "megabytes": reached["bytes"].iloc[0] / 1e6}
        rows.append({"gap": gap, **first})
    return pd.DataFrame(rows)


@figure("cluster-rounds")
def cluster_rounds(run):
    """How many rounds, and bytes, does UFO-MKL need if the samples are on many machines?"""
    size = run.size["cluster"]
    fixed = {key: size[key] for key in ("n_train", "n_features", "most_rounds")}
    points = [
        {**fixed, "n_partitions": K, "C": C, "seed": seed}
        for C in size["C"]
        for K in size["n_partitions"]
        for seed in run.seeds(size)
    ]
    data = load_mnist(n_train=1, n_test=0).provenance
    table = run.sweep("cluster-rounds").frame(rounds_of, points, data=data)
    note = (
        f"{size['n_train']:,} digits dealt to the partitions at random, {size['n_features']} random Fourier "
        "features of each quarter; all partitions in one process. Megabytes are sent to and from all "
        f"partitions in the rounds; before, each sends {4 * 8 * size['n_features'] ** 2 / 1e6:.1f} MB of "
        "second moments"
    )
    run.save_figure(draw.cluster_rounds(table), "cluster-rounds", table, provenance=data, note=note)


@cluster_rounds.facts
def _(results):
    table = results.table()
    few, many = table["n_partitions"].min(), table["n_partitions"].max()
    least, most = table["C"].min(), table["C"].max()
    means = table.groupby(["gap", "C", "n_partitions"])[["rounds", "megabytes"]].mean()
    rounds = means["rounds"]
    powers = []
    for gap, C in [(gap, C) for gap in GAPS for C in (least, most)]:
        ends = rounds[gap, C].dropna()
        power = np.polyfit(np.log(ends.index), np.log(ends), 1)[0]
        powers.append(f"$K^{{{power:.2f}}}$ to {gap:.0%} at $C = {C:g}$")
    return {
        "n": table["n_train"].max(),
        "few": few,
        "many": many,
        "low": least,
        "high": most,
        "loose": {"few": rounds[GAPS[0], most, few], "many": rounds[GAPS[0], most, many]},
        "tight": {"few": rounds[GAPS[1], most, few], "many": rounds[GAPS[1], most, many]},
        "easy": rounds[GAPS[0], least, many],
        "powers": "; ".join(powers),
        "megabytes": means["megabytes"][GAPS[1], most, many],
        "given": table["n_train"].max() * 784 * 4 / 1e6,
        "left": int(table["rounds"].isna().sum()),
        "cases": len(table),
    }


cluster_rounds.title("""
With {few} to {many} partitions of {n:,} digits UFO-MKL needs {loose[few]:.0f} to {loose[many]:.0f} rounds
to a certified gap of 5% at C = {high:g}.""")
cluster_rounds.see("""
To a gap of 1% at $C = {high:g}$ it needs {tight[few]:.0f} rounds with {few} partitions and {tight[many]:.0f}
with {many}, in which {megabytes:.0f} MB are sent; the digits have {given:,.0f} MB, but what is sent does not
depend on their number. At $C = {low:g}$ and {many} partitions {easy:.0f} rounds reach 5%. Rounds go like
{powers}. {left} of {cases} gaps are not reached within the limit of rounds.""")
