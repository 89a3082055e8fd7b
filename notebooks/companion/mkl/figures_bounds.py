"""Figures of the MKL chapter on simulated kernels, and on the theorems."""

from companion import protocol
from companion.mkl import theorems
from companion.mkl.runs import three_class
from companion.plots import mkl as draw
from companion.run.registry import figure
from cuelearn import datasets
from cuelearn.kernels import KernelBank, Linear


def _three_classes(run, row, methods):
    """Four kernel matrices, and the weights of `methods`; the table has those of all."""
    points = [{"seed": seed, "noise": run.noise} for seed in run.seeds(run.size["three_class"])]
    data = datasets.make_three_class(noise=run.noise, random_state=run.seed)
    weights = run.sweep("three-class").frame(three_class, points, data=data.provenance)
    bank = KernelBank(data.triples(Linear()), data.X)
    drawing = draw.kernel_weights(bank, data.y, weights[weights["method"].isin(methods)])
    note = "thesis: SILP and OM-2, JMLR: SILP and OBSCURE; C = 10"
    run.save_figure(drawing, row, weights, provenance=[data], note=note)


def _least_on_4(table, method):
    """How many draws there are, and the smallest weight of kernel 4 in these."""
    weights = table[(table["method"] == method) & (table["kernel"] == 4)]["weight"]
    return weights.size, weights.min()


@figure("thesis-fig-4.1")
def weights_of_silp_and_om2(run):
    """Which kernels do OM-2 and 1-vs-All SILP take where kernel 4 alone tells all classes apart?"""
    _three_classes(run, "thesis-fig-4.1", ["SILPMKL", "OM2"])


@weights_of_silp_and_om2.see
def _(results):
    n_draws, least = _least_on_4(results.table("thesis-fig-4.1"), "OM2")
    return f"""
OM-2 gives the only matrix with three blocks at least {least:.3f} of the weight in {n_draws} draws. Each of
SILP's binary problems takes kernel 4 *and* the one that serves its class: together they use all four."""


@figure("jmlr-fig-1", claims="om2-1")
def weights_of_silp_and_obscure(run):
    """Which kernels does OBSCURE take?"""
    _three_classes(run, "jmlr-fig-1", ["SILPMKL", "OBSCURE"])


@weights_of_silp_and_obscure.see
def _(results):
    n_draws, least = _least_on_4(results.table("jmlr-fig-1"), "OBSCURE")
    return f"OBSCURE, which is run to the optimum, puts at least {least:.3f} on kernel 4 in {n_draws} draws."


@figure("thesis-thm-4.1", claims=["om2-7", "om2-8"])
def mistakes_and_their_bound(run):
    """Do OM-2's mistakes stay under the bound of theorem 4.1, and what do useless kernels cost?"""
    size = run.size["theorems"]
    n = size["n_train"]
    mfeat = datasets.load_mfeat()
    points = [
        {"kind": kind, "n_samples": n, "seed": seed, "p": p}
        for kind in ("mfeat-6", "random")
        for seed in run.seeds(run.size)[:3]
        for p in size["p_grid"]
    ]
    bound = run.sweep("theorem-1").frame(theorems.mistake_bound, points, data=mfeat)
    points = [
        {"n_kernels": n_kernels, "n_samples": n, "seed": seed, "p": p}
        for p in ("auto", 2.0)
        for n_kernels in size["counts"]
        for seed in range(run.seed, run.seed + size["streams"])
    ]
    useless = run.sweep("corollary-1").frame(theorems.useless_kernels, points)
    streams = protocol.made_here("random streams", "companion.mkl.stream_problem")
    drawing = draw.mistake_bounds(bound, useless)
    tables = {"": bound, "useless": useless}
    run.save_figure(drawing, "thesis-thm-4.1", tables, provenance=[mfeat, streams])


@mistakes_and_their_bound.see
def _(results):
    table = results.table("thesis-thm-4.1")
    tight = (table["mistakes"] / table["bound"]).groupby(table["kind"]).max()
    useless = results.table("thesis-thm-4.1.useless")
    n_kernels = useless["n_kernels"].max()
    most = useless[useless["n_kernels"] == n_kernels]
    mistakes = most.groupby(most["p"].astype(str))["mistakes"].mean()
    return f"""
Theorem 4.1 is nearly tight where labels are random (mistakes up to {tight["random"]:.0%} of the bound),
less so on real digits ({tight["mfeat-6"]:.0%}). At the corollary's $p$ useless kernels are nearly free:
with {n_kernels} kernels OM-2 makes {mistakes["auto"]:.0f} mistakes, at $p = 2$ {mistakes["2.0"]:.0f}."""


@figure("thesis-thm-4.3", claims="obs-10")
def updates_and_their_bound(run):
    """Do the updates of OBSCURE's online stage and its radius obey theorem 4.3?"""
    size = run.size["theorems"]
    mfeat = datasets.load_mfeat()
    points = [
        {"n_samples": size["n_train"], "seed": seed, "p": p, "eta": eta}
        for seed in run.seeds(run.size)[:3]
        for p in size["p_grid"]
        for eta in (0.1, 0.5, 1.0)
    ]
    table = run.sweep("theorem-3").frame(theorems.update_bound, points, data=mfeat)
    run.save_figure(draw.update_bounds(table), "thesis-thm-4.3", table, provenance=[mfeat], note="C = 10")


@updates_and_their_bound.see
def _(results):
    table = results.table("thesis-thm-4.3")
    work = table["bound"] / table["updates"]
    radius = table["radius"] / table["optimum_norm"]
    return f"""
The bound on updates is {work.min():.1f} to {work.max():.1f} times what is measured. The radius $R$ is
{radius.min():.1f} to {radius.max():.1f} times the norm of the optimum."""


def _suboptimality(run, row, method, cases):
    """Suboptimality of a method over independent draws, and its bound."""
    size = run.size["theorems"]
    mfeat = datasets.load_mfeat()
    place = {"method": method, "n_samples": size["n_train"], "seed": run.seed}
    more = {"n_epochs": size["n_epochs"], "streams": size["streams"]}
    points = [{**place, "C": C, "p": p, **more} for p, C in cases]
    table = run.sweep(f"{row}-bound").frame(theorems.suboptimality_bound, points, data=mfeat)
    run.save_figure(draw.suboptimality_bounds(table), row, table, provenance=[mfeat])


def _over_the_bound(table):
    """How many times what is measured the bound is, in the median."""
    return (table["bound"] / table["suboptimality"]).median()


@figure("thesis-thm-4.2", claims="obs-9")
def suboptimality_of_obscure(run):
    """Does OBSCURE's expected suboptimality stay under the bound of theorem 4.2?"""
    cases = [(1.05, 1.0), (1.25, 1.0), (2.0, 1.0), (1.25, 10.0)]
    _suboptimality(run, "thesis-thm-4.2", "OBSCURE", cases)


@suboptimality_of_obscure.see
def _(results):
    return f"""
What is measured falls about as fast as the bound, or faster. The bound is
{_over_the_bound(results.table("thesis-thm-4.2")):.0f} times what is measured, in the median."""


@figure("thesis-thm-4.5", claims="ufo-4")
def suboptimality_of_ufo(run):
    """Does UFO-MKL's suboptimality stay under the bound of theorem 4.5?"""
    cases = [("auto", 0.1), ("auto", 1.0), ("auto", 10.0)]
    _suboptimality(run, "thesis-thm-4.5", "UFOMKL", cases)


@suboptimality_of_ufo.see
def _(results):
    return f"""
Here, too, the curves fall alike; the bound is {_over_the_bound(results.table("thesis-thm-4.5")):.0f}
times what is measured, in the median."""
