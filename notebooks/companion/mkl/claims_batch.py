"""What the claims on OBSCURE and UFO-MKL are judged by.

Work is counted in kernel rows, `rows` of the tables: rows of single kernels that a method has read, see
`rows_read`, `rows_of_rounds` and `many_kernels` of the experiments. Seconds stand beside it in the words and
decide nothing. Methods are compared where their certified gaps, each of its own problem, are alike.
"""

import numpy as np

from companion.run.claims import Verdict, combine, judge_exact, judge_mean, judge_slope, judges

#: Relative certified gap at which methods are compared, that of the batch rivals' stopping rule.
GAP = 0.05
#: Half a point of test error: what counts as equal accuracy, and as reaching the own final one.
HALF_POINT = 0.005
#: Of the work: a smaller saving counts as none, as a point of error does.
TENTH = 0.1


def runs_of(table, *names):
    """The curves of a table by method and seed, or other columns; with the relative gap as a column."""
    table = table.assign(gap=table["dual_gap"] / table["objective"])
    return dict(list(table.groupby(list(names or ("method", "seed")))))


def reached(curve, column, level, work="rows", smooth=True):
    """Work after which a column of a curve first is at most a level; NaN if it never is.

    Where the curve is `smooth`, between two looks along a straight line in logarithms.
    """
    x, y = curve[work].to_numpy(dtype=float), curve[column].to_numpy(dtype=float)
    below = np.flatnonzero(y <= level)
    if below.size == 0:
        return np.nan
    k = below[0]
    if k == 0 or not smooth:
        return float(x[k])
    share = np.log(y[k - 1] / level) / np.log(y[k - 1] / max(y[k], 1e-300))
    return float(x[k - 1] * (x[k] / x[k - 1]) ** share)


def clock(seconds):
    """Words on a ratio of seconds, one for each run."""
    return f"In seconds {np.exp(np.mean(np.log(seconds))):.2g}." if len(seconds) else ""


def picked(table, method):
    """Words on a rival: what cross-validation chose, and with how many kernels it ends."""
    mine = table[table["method"] == method]
    chosen, used = " or ".join(mine["chosen"].unique()), mine["n_used"].mean()
    return f"{method} has {chosen} and uses {used:.3g} kernels."


def dropped(n, what):
    """Words on runs that do not count."""
    return f"Left out: {n} {what}." if n else ""


def by(test, claim, *values, **options):
    """A part's verdict by one of the `judge_` functions; undecided where there is no run to judge by."""
    values = [np.asarray(value, dtype=float) for value in values]
    runs = np.asarray(options.get("runs", []))
    slopes = [np.unique(values[0][runs == run]).size > 2 for run in np.unique(runs)]
    if not values[0].size or (test is judge_slope and not any(slopes)):
        about = {key: options[key] for key in ("figure", "unit", "data", "tier", "measure")}
        text = f"{options.get('text', '')} No run is left to judge by.".strip()
        return Verdict(claim, "undecided", np.nan, p=1.0, text=text, **about)
    return test(claim, *values, **options)


@judges("obs-1")
def obs_1(found):
    parts, cases = {}, ("thesis-fig-4.5", "jmlr-fig-2-pendigits", "jmlr-fig-2-objects-C1000")
    for figure in (*cases, "jmlr-fig-2-pendigits-C1000"):
        runs = runs_of(found.table(figure))
        seeds = sorted({seed for _, seed in runs})
        pairs = [(runs["OBSCURE", s], runs["PegasosMKL", s]) for s in seeds]
        # 1% above the optimum, or what both runs of a split come to
        levels = [max(0.01, *(run["suboptimality"].min() for run in pair)) for pair in pairs]
        ours, theirs, *seconds = (
            [reached(pair[k], "suboptimality", at, work) for pair, at in zip(pairs, levels, strict=True)]
            for work in ("rows", "seconds")
            for k in (0, 1)
        )
        measure = "kernel rows, OBSCURE over Pegasos-MKL"
        about = found.about(figure, measure=measure, text=clock(np.divide(*seconds)))
        C = pairs[0][0]["chosen"].iloc[0].split(",")[0].replace("=", " = ")
        what = f"{figure}, {C}: sooner at {1 + np.median(levels):.3g} times the optimum"
        parts[what] = by(judge_mean, "obs-1", ours, theirs, ratio=True, at_most=1.0, relevant=TENTH, **about)
    return combine("obs-1", parts)


@judges("obs-2")
def obs_2(found):
    runs, parts = runs_of(found.table("thesis-fig-4.5")), {}
    seeds, errors = sorted({seed for _, seed in runs}), {}
    for key, run in runs.items():
        near = run.loc[run["gap"] <= GAP, "test_error"]
        errors[key] = near.iloc[0] if len(near) else np.nan
    for m in ("SILPMKL", "SimpleMKL"):
        some = [s for s in seeds if np.isfinite(errors["OBSCURE", s] + errors[m, s])]
        out = dropped(len(seeds) - len(some), "splits where a gap of 5% was not reached")
        where = found.about("thesis-fig-4.5", measure=f"test error, OBSCURE minus {m}", text=out)
        ours, theirs = ([errors[a, s] for s in some] for a in ("OBSCURE", m))
        what = f"error at most 0.5 points above that of {m}, both at a certified gap of 5%"
        parts[what] = by(judge_mean, "obs-2", ours, theirs, at_most=HALF_POINT, **where)
        levels = np.maximum(ours, theirs) + HALF_POINT
        ours, theirs, *seconds = (
            [reached(runs[a, s], "test_error", at, work, False) for s, at in zip(some, levels, strict=True)]
            for work in ("rows", "seconds")
            for a in ("OBSCURE", m)
        )
        where |= {"measure": f"kernel rows, OBSCURE over {m}", "text": clock(np.divide(*seconds))}
        n = sum(len(runs[m, s]) == 1 for s in some)
        if n:
            where["text"] += f" {m} ends with its first SVMs, those of the average kernel, in {n} splits."
        what = f"fewer kernel rows than {m} to half a point above the worse of these errors"
        parts[what] = by(judge_mean, "obs-2", ours, theirs, ratio=True, at_most=1.0, relevant=TENTH, **where)
    return combine("obs-2", parts)


@judges("obs-3")
def obs_3(found):
    parts = {}
    for figure in ("jmlr-fig-3", "jmlr-fig-3-objects"):
        table = found.table(figure)
        runs = runs_of(table, "method", "p", "seed")
        some = sorted({(p, s) for _, p, s in runs})
        near = [all(runs[m, *one]["gap"].iloc[-1] <= GAP for m in ("OBSCURE", "LpMKL")) for one in some]
        out = dropped(near.count(False), "runs of some p that did not come to a certified gap of 5%")
        some = [one for one, is_near in zip(some, near, strict=True) if is_near]
        where, seeds = found.about(figure, text=out), [s for _, s in some]
        ends = {m: [runs[m, *one]["test_error"].iloc[-1] for one in some] for m in ("OBSCURE", "LpMKL")}
        where["measure"] = "test error, OBSCURE minus p-norm MKL, mean over p"
        what = f"{where['data']}: errors within 1 point, at a certified gap of 5%"
        parts[what] = by(
            judge_mean,
            "obs-3",
            ends["OBSCURE"],
            ends["LpMKL"],
            at_least=-0.01,
            at_most=0.01,
            blocks=seeds,
            **where,
        )
        theirs, ours, *seconds = (
            [
                reached(runs[m, *one], "test_error", end + HALF_POINT, work, m == "OBSCURE")
                for one, end in zip(some, ends[m], strict=True)
            ]
            for work in ("rows", "seconds")
            for m in ("LpMKL", "OBSCURE")
        )
        where["measure"] = "kernel rows to within 0.5 point of the own final error, p-norm MKL over OBSCURE"
        where["text"] = f"{out} {clock(np.divide(*seconds))}".strip()
        what = f"{where['data']}: OBSCURE with at most a tenth of the kernel rows"
        parts[what] = by(judge_mean, "obs-3", theirs, ours, ratio=True, at_least=10.0, blocks=seeds, **where)
    return combine("obs-3", parts)


@judges("obs-4")
def obs_4(found):
    online = found.table("jmlr-fig-5")
    some = online[online["converged"]]
    out = dropped(
        len(online) - len(some), "runs of the online stage that did not converge, by number of kernels"
    )
    if out:
        lost = online[~online["converged"]]["n_kernels"].value_counts().sort_index()
        out = out[:-1] + ": " + ", ".join(f"{count} with {n}" for n, count in lost.items()) + "."
    where = found.about("jmlr-fig-5", measure="exponent of the online stage's updates in F", text=out)
    runs = {"runs": some["seed"], "at_most": 0.0}
    parts = {
        "the online stage's updates fall with F": by(
            judge_slope, "obs-4", some["n_kernels"], some["updates"], **runs, **where
        )
    }
    curves = runs_of(found.table("thesis-fig-4.6"), "n_kernels", "seed")
    counts = sorted({n for n, _ in curves})
    medium, needed = counts[len(counts) // 2 - 1], []
    for (n, seed), run in curves.items():
        level = curves[medium, seed]["test_error"].iloc[-1] + HALF_POINT
        if n >= medium:
            needed.append((n, seed, reached(run, "test_error", level, "epoch")))
    n, seeds, epochs = np.array(needed).T
    never = np.isnan(epochs)
    last = max(run["epoch"].max() for run in curves.values())
    where = found.about("thesis-fig-4.6", measure="exponent of the epochs in F")
    if never.any():
        where["text"] = f"{never.sum()} runs never come to it, and count with their last epoch, {last:g}."
    what = f"more kernels need fewer epochs to half a point above the final error of {medium}"
    epochs = np.where(never, last, epochs)
    parts[what] = by(judge_slope, "obs-4", n, epochs, runs=seeds, at_most=0.0, **where)
    return combine("obs-4", parts)


@judges("obs-5")
def obs_5(found):
    online = found.table("jmlr-fig-5")
    most = online["n_kernels"].max()
    online = online[online["n_kernels"] == most].set_index("seed")
    runs = runs_of(found.table("thesis-fig-4.6"), "n_kernels", "seed")
    batch = {s: runs[most, s][lambda run: run["stage"] == "batch"] for s in online.index}
    full, seconds = (
        np.array([reached(batch[s], "gap", GAP, w) for s in online.index]) for w in ("rows", "seconds")
    )
    there = np.isfinite(full)
    where = found.about("jmlr-fig-5", measure="test error, online stage minus both stages")
    parts = {
        f"{most} kernels: at most 1 point above both stages": by(
            judge_mean, "obs-5", online["final_error"], online["batch_error"], at_most=0.01, **where
        )
    }
    where["measure"] = "kernel rows of both stages to a certified gap of 5% over those of the online stage"
    out = dropped(np.count_nonzero(~there), "splits that did not come to it")
    where["text"] = f"{out} {clock((seconds / online['seconds'])[there])}".strip()
    parts[f"{most} kernels: with at most a tenth of the kernel rows"] = by(
        judge_mean, "obs-5", full[there], online["rows"][there], ratio=True, at_least=10.0, **where
    )
    for task, every in found.table("jmlr-fig-4").groupby("task", sort=False):
        table = every[every["converged"]]
        out = dropped(len(every) - len(table), "runs that did not come to a certified gap of 10%")
        name = {"different": "six different cues", "pyramid": "pyramid of edges"}.get(
            task.split("-")[0], task
        )
        where = found.about("jmlr-fig-4", measure="test error, online stage minus both stages, mean over p")
        where |= {"data": f"{where['data']}, {name}", "text": out}
        blocks, ours, both = {"blocks": table["seed"]}, table["online_error"], table["test_error"]
        parts[f"{name}: at most 1 point above both stages"] = by(
            judge_mean, "obs-5", ours, both, at_most=0.01, **blocks, **where
        )
        where["measure"] = "kernel rows of both stages over those of the online stage, mean over p"
        where["text"] = f"{out} {clock(table['seconds'] / table['online_seconds'])}".strip()
        parts[f"{name}: with at most a tenth of the kernel rows"] = by(
            judge_mean,
            "obs-5",
            table["rows"],
            table["online_rows"],
            ratio=True,
            at_least=10.0,
            **blocks,
            **where,
        )
    return combine("obs-5", parts)


def final_errors(found, claim, pairs):
    """`judge_mean` of differences of errors for each of some pairs of methods: (ours, other, margin).

    On the splits that both have, of which some methods have more than others.

    Of objects, and of fifteen scenes where original data is there.
    """
    parts, sets = {}, {"thesis-fig-4.9-right": ("thesis-fig-4.9-right", "")}
    if found.has("thesis-fig-4.9-scenes"):
        sets["thesis-fig-4.9-scenes"] = ("thesis-fig-4.9-scenes.runs", "15 scenes: ")
    for figure, (file, of) in sets.items():
        table = found.table(file)
        table = table.assign(near=table["test_error"].where(table["converged"] == 1.0))
        errors = table.pivot(index="seed", columns="method", values=["test_error", "near"])
        for ours, other, margin in pairs:
            tried = errors["test_error"][[ours, other]].dropna().index
            both = errors["near"].loc[tried, [ours, other]].dropna()
            out = dropped(len(tried) - len(both), "splits where one did not come to a certified gap of 5%")
            where = found.about(figure, measure=f"{of}test error, {ours} minus {other}", text=out)
            if other.startswith("SILP"):
                where["text"] = f"{out} {picked(table, other)}".strip()
            limit = f"at most {-100 * margin:g} points above" if margin else "below"
            what = f"{of}the error of {ours} is {limit} that of {other}"
            parts[what] = by(judge_mean, claim, both[ours], both[other], at_most=-margin, **where)
    return combine(claim, parts)


@judges("obs-6")
def obs_6(found):
    rivals = ("SILPMKL", "LpMKL sparse", "LpMKL")
    pairs = [(ours, other, 0.0) for ours in ("OBSCURE", "MCMKL") for other in rivals]
    return final_errors(found, "obs-6", pairs)


@judges("ufo-5")
def ufo_5(found):
    pairs = [("UFOMKL", "OBSCURE", 0.0), ("UFOMKL", "LPBeta", -0.002)]
    return final_errors(found, "ufo-5", pairs)


@judges("obs-7")
def obs_7(found):
    runs, points = runs_of(found.table("thesis-fig-4.8"), "n_train", "seed"), []
    for (n, seed), run in runs.items():
        level = run["test_error"].iloc[-1] + HALF_POINT
        points.append((n, seed, *(reached(run, "test_error", level, work) for work in ("rows", "seconds"))))
    gaps = [run["gap"].iloc[-1] for run in runs.values()]
    n, seeds, rows, seconds = np.array(points).T
    by_clock = np.polyfit(np.log(n), np.log(seconds), 1)[0]
    where = found.about(
        "thesis-fig-4.8",
        measure="exponent in N of the kernel values read, N to a row, to "
        "within 0.5 point of the own final error",
    )
    where["text"] = (
        f"In seconds {by_clock:.2g}. A visit reads O(N) values: 1 would be as many visits at every N. "
        f"Runs end at certified gaps of {min(gaps):.0%} to {max(gaps):.0%}."
    )
    return by(judge_slope, "obs-7", n, rows * n, at_least=0.75, at_most=1.25, runs=seeds, **where)


@judges("obs-8")
def obs_8(found):
    try:
        digits, runs = (found.table(f"thesis-fig-4.8-60000{part}") for part in (".digits", ""))
    except FileNotFoundError:
        text = "60,000 digits are learnt from in the profile full only: kernels of 3.6e9 pairs, ten times."
        where = found.about("thesis-fig-4.8")
        return Verdict("obs-8", "undecided", text=text, p=1.0, **where)
    fewer, most = sorted(digits.columns, key=lambda name: int(name.split()[-1]))
    where = found.about("thesis-fig-4.8-60000", measure="test error after 10 epochs on 60,000 digits")
    errors = runs.loc[runs["n_train"] == runs["n_train"].max(), "test_error"]
    what = "at most half a point above the paper's 1.95%, on the same test digits"
    parts = {what: judge_mean("obs-8", errors, at_most=0.0245, **where)}
    where["unit"] = "test digit"
    where["measure"] = "test error on 60,000 digits minus that on 20,000 after 500 epochs"
    what = "better than on 20,000 samples after 500 epochs (the paper: by 0.45 points)"
    parts[what] = by(judge_mean, "obs-8", digits[most], digits[fewer], at_most=0.0, relevant=0.002, **where)
    return combine("obs-8", parts)


@judges("ufo-1")
def ufo_1(found):
    runs = runs_of(found.table("thesis-fig-4.9-left"))
    seeds = sorted({seed for _, seed in runs})
    first, end = (
        {m: [runs[m, s]["objective"].iloc[k] for s in seeds] for m in ("OBSCURE", "UFOMKL")} for k in (0, -1)
    )
    where = found.about("thesis-fig-4.9-left", measure="objective after one epoch, OBSCURE over UFO-MKL")
    parts = {
        "after one epoch OBSCURE has the lower objective": by(
            judge_mean, "ufo-1", first["OBSCURE"], first["UFOMKL"], ratio=True, at_most=1.0, **where
        )
    }
    levels = np.maximum(end["OBSCURE"], end["UFOMKL"])
    ours, theirs, *seconds = (
        [reached(runs[m, s], "objective", at, work) for s, at in zip(seeds, levels, strict=True)]
        for work in ("rows", "seconds")
        for m in ("UFOMKL", "OBSCURE")
    )
    where["measure"] = "kernel rows to the objective that both come to, UFO-MKL over OBSCURE"
    where["text"] = clock(np.divide(*seconds))
    what = "UFO-MKL comes with fewer kernel rows to the objective that both reach"
    parts[what] = by(judge_mean, "ufo-1", ours, theirs, ratio=True, at_most=1.0, relevant=TENTH, **where)
    return combine("ufo-1", parts)


@judges("ufo-2")
def ufo_2(found):
    table = found.table("thesis-fig-4.10")
    most = table[table["n_kernels"] == table["n_kernels"].max()]
    most = most.pivot(index="seed", columns="method", values=["rows", "seconds", "test_error"])
    times = most["seconds"]["OBSCURE"] / most["seconds"]["UFOMKL sparse"]
    measure = "kernel rows in equal epochs, OBSCURE over UFO-MKL at alpha = 0.005"
    where = found.about("thesis-fig-4.10", measure=measure, text=clock(times))
    ours, theirs = most["rows"]["OBSCURE"], most["rows"]["UFOMKL sparse"]
    parts = {
        "at alpha = 0.005 at most a third of the kernel rows": by(
            judge_mean, "ufo-2", ours, theirs, ratio=True, at_least=3.0, **where
        )
    }
    for m, alpha in (("UFOMKL", 0), ("UFOMKL sparse", 0.005)):
        measure = f"test error, UFO-MKL at alpha = {alpha:g} minus OBSCURE"
        parts[f"at alpha = {alpha:g} an error at most 0.5 points higher"] = by(
            judge_mean,
            "ufo-2",
            most["test_error"][m],
            most["test_error"]["OBSCURE"],
            at_most=HALF_POINT,
            **found.about("thesis-fig-4.10", measure=measure),
        )
    return combine("ufo-2", parts)


@judges("ufo-3")
def ufo_3(found):
    table = found.table("thesis-fig-4.10.alpha")
    table = table[table["tol"].notna()]
    near = table[table["dual_gap"] <= GAP * table["objective"]]
    out = dropped(len(table) - len(near), "runs that did not come to a certified gap of 5%")
    where = found.about("thesis-fig-4.10", text=out)
    kept, error = (near.pivot(index="seed", columns="alpha", values=v) for v in ("n_used", "test_error"))
    small, middle, large = (
        kept.columns.min(),
        kept.columns[np.argmin(np.abs(kept.columns - 0.005))],
        kept.columns.max(),
    )

    def differ(a, b, margin):
        both = error[[a, b]].dropna()
        measure = f"test error at alpha = {a:g} minus that at {b:g}"
        return by(judge_mean, "ufo-3", both[a], both[b], at_most=-margin, **where | {"measure": measure})

    most, some = table["n_kernels"].max(), kept[middle].dropna()
    zeros = where | {"measure": f"share of {most} kernels kept, largest", "n": len(some)}
    parts = {
        f"exact zeros: alpha = {middle:g} keeps fewer than all kernels": judge_exact(
            "ufo-3", bool((some < most).all()), number=some.max() / most, **zeros
        ),
        "a larger alpha keeps fewer kernels": by(
            judge_slope,
            "ufo-3",
            near["alpha"],
            near["n_used"].clip(lower=1),
            at_most=0.0,
            runs=near["seed"],
            **where | {"measure": "exponent of kernels kept in alpha"},
        ),
        f"too sparse loses accuracy (alpha = {large:g} against {middle:g})": differ(middle, large, 0.0),
        f"denser gains nothing: at most 0.5 points (alpha = {small:g})": differ(middle, small, -HALF_POINT),
    }
    return combine("ufo-3", parts)
