"""What the claims of the chapter are judged by: measurements of several draws of every set."""

from companion.run.claims import combine, judge_mean, judge_slope, judges

#: The methods that learn one combination for all classes, and those that learn one for each.
SHARED, PER_CLASS = ("MLMKLSA", "MLMKLSum"), ("GMKL", "SimpleMKL", "VSKL")
#: Of theorem 1, with its name.
ESTIMATES = {"MLMKLSA": "SA", "MLMKLSA printed": "SA with the paper's estimates"}


def by_set(table, column, columns="method"):
    """Pairs of a set's name and its values of `column`: a row for each draw."""
    for name, mine in table.groupby("name", sort=False):
        yield name, mine.groupby(["seed", columns])[column].sum().unstack()


@judges("mlmkl-1")
def mlmkl_1(found):
    """On every set SA's mean AUC is above that of each of the five others."""
    parts = {}
    for name, auc in by_set(found.table("mlmkl-tab-1.runs"), "auc"):
        for rival in ("MLMKLSum", *PER_CLASS, "AverageKernelSVM"):
            where = found.about("mlmkl-tab-1", name, measure=f"AUC of SA minus that of {rival}")
            parts[f"{name}: SA has a better mean AUC than {rival}"] = judge_mean(
                "mlmkl-1", auc["MLMKLSA"], auc[rival], at_least=0.0, **where
            )
    return combine("mlmkl-1", parts)


@judges("mlmkl-2")
def mlmkl_2(found):
    """SA and Sum solve at most a third of the SVMs of every method with a combination for each class."""
    table, parts, beside = found.table("mlmkl-tab-1.runs"), {}, []
    for name, solved in by_set(table, "n_solved"):
        for one in SHARED:
            for rival in PER_CLASS:
                where = found.about("mlmkl-tab-1", name, measure=f"SVMs of {one} over those of {rival}")
                parts[f"{name}: {one} solves at most a third of the SVMs of {rival}"] = judge_mean(
                    "mlmkl-2", solved[one], solved[rival], ratio=True, at_most=1 / 3, **where
                )
    for column, what in (("n_combined", "combinations of kernels"), ("seconds", "seconds")):
        of = {name: values.median() for name, values in by_set(table, column)}
        told = [f"{m} {of[name][m]:.3g} ({name})" for m in (*SHARED, *PER_CLASS) for name in of]
        beside.append(f"Beside, {what}: {', '.join(told)}.")
    return combine("mlmkl-2", parts, text=" ".join(beside))


@judges("mlmkl-3")
def mlmkl_3(found):
    """SVMs until the gap against classes, draw by draw: SA's exponent at most 0.99, Sum's 0.8 to 1.2."""
    table, parts, missed, never = found.table("mlmkl-cor-1"), {}, [], []
    for (name, method), mine in table.groupby(["name", "method"], sort=False):
        kept = mine[mine["reached"]]
        kept = kept[kept.groupby("seed")["n_classes"].transform("nunique") > 2]
        linear = method == "MLMKLSum"
        says = "Sum's SVMs grow linearly" if linear else f"{ESTIMATES[method]}: SVMs grow sublinearly"
        if len(kept) < len(mine):
            missed.append(f"{len(mine) - len(kept)} of {len(mine)} of {method} on {name}")
        if kept.empty:
            never.append(f"{name}, {says}")
            continue
        where = found.about("mlmkl-cor-1", name, measure=f"exponent of m, SVMs of {method}")
        span = {"at_least": 0.8, "at_most": 1.2} if linear else {"at_most": 0.99}
        parts[f"{name}: {says}"] = judge_slope(
            "mlmkl-3", kept["n_classes"], kept["n_solved"], runs=kept["seed"], **span, **where
        )
    text = f"Runs left out since they did not reach the gap: {', '.join(missed)}." if missed else ""
    return combine("mlmkl-3", parts, open_parts=never, text=text)


@judges("mlmkl-4")
def mlmkl_4(found):
    """On every set Sum's weights travel at least twice as far as SA's: those returned, and the present."""
    table, parts = found.table("mlmkl-fig-2"), {}
    for column, what in (("moved", "the weights returned (SA averages)"), ("swing", "the present weights")):
        for name, way in by_set(table, column):
            where = found.about("mlmkl-fig-2", name, measure=f"total variation of {what}, Sum over SA")
            parts[f"{name}: {what} of Sum vary at least twice as much"] = judge_mean(
                "mlmkl-4", way["MLMKLSum"], way["MLMKLSA"], ratio=True, at_least=2.0, **where
            )
    return combine("mlmkl-4", parts)


@judges("mlmkl-5")
def mlmkl_5(found):
    """AUC after the last iteration: delta 0.2 and 0.6 above 0 and 1; the smaller steps within a point."""

    def ends(figure, column):
        table = found.table(figure)
        last = table[table["iteration"] == table["iteration"].max()]
        return last.pivot(index="seed", columns=column, values="auc")

    last, small = ends("mlmkl-fig-3", "delta"), ends("mlmkl-fig-4", "factor")
    parts = {
        f"delta = {d:g} ends above {e:g}": judge_mean(
            "mlmkl-5",
            last[d],
            last[e],
            at_least=0.0,
            **found.about("mlmkl-fig-3", measure=f"AUC at the end, delta {d:g} minus {e:g}"),
        )
        for d in (0.2, 0.6)
        for e in (0.0, 1.0)
    }
    where = found.about("mlmkl-fig-4", measure="AUC at the end, middle minus small step")
    parts["the two smaller steps agree within a point"] = judge_mean(
        "mlmkl-5", small[3.0], small[0.3], at_least=-0.01, at_most=0.01, **where
    )
    return combine("mlmkl-5", parts)


@judges("mlmkl-6")
def mlmkl_6(found):
    """Saddle-point gap against iterations, draw by draw: an exponent of -0.4 or less."""
    parts = {}
    for method, mine in found.table("mlmkl-thm-1").groupby("method", sort=False):
        where = found.about("mlmkl-thm-1", measure=f"exponent of T in the saddle-point gap of {method}")
        parts[f"{ESTIMATES[method]}: exponent -0.4 or less"] = judge_slope(
            "mlmkl-6", mine["n_iter"], mine["gap"], at_most=-0.4, runs=mine["seed"], **where
        )
    return combine("mlmkl-6", parts)
