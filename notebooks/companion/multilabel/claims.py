"""What the claims of the chapter are judged by: measurements of several draws of every set."""

from companion.run.claims import Part, judges

#: The methods that learn one combination for all classes, and those that learn one for each.
SHARED = ("MLMKLSA", "MLMKLSum")
PER_CLASS = ("GMKL", "SimpleMKL", "VSKL")
#: Of theorem 1, with its name.
ESTIMATES = {"MLMKLSA": "SA", "MLMKLSA printed": "SA with the paper's estimates"}


def by_set(table, column):
    """Pairs of a set's name and its values of `column`: a row for each draw, a column for each method."""
    for name, runs in table.groupby("name", sort=False):
        yield name, runs.groupby(["seed", "method"])[column].sum().unstack()


@judges("mlmkl-1", "mlmkl-tab-1")
def mlmkl_1(results):
    for name, auc in by_set(results.table("mlmkl-tab-1.runs"), "auc"):
        for rival in ("MLMKLSum", *PER_CLASS, "AverageKernelSVM"):
            says = f"{name}: SA has a better mean AUC than {rival}"
            measure = f"AUC of SA minus that of {rival}"
            yield Part(says, measure, auc["MLMKLSA"], auc[rival], at_least=0.0, of=name)


@judges("mlmkl-2", "mlmkl-tab-1")
def mlmkl_2(results):
    table = results.table("mlmkl-tab-1.runs")
    for name, solved in by_set(table, "n_solved"):
        for method in SHARED:
            for rival in PER_CLASS:
                says = f"{name}: {method} solves at most a third of the SVMs of {rival}"
                measure = f"SVMs of {method} over those of {rival}"
                third = {"ratio": True, "at_most": 1 / 3, "of": name}
                yield Part(says, measure, solved[method], solved[rival], **third)
    for column, counted in (("n_combined", "combinations of kernels"), ("seconds", "seconds")):
        median = table.groupby(["method", "name"], sort=False)[column].median()
        listed = [
            f"{m} {value:.3g} ({name})" for m in (*SHARED, *PER_CLASS) for name, value in median[m].items()
        ]
        yield f"Median {counted}: {', '.join(listed)}."


@judges("mlmkl-3", "mlmkl-cor-1")
def mlmkl_3(results):
    table = results.table("mlmkl-cor-1")
    missed = []
    for (name, method), runs in table.groupby(["name", "method"], sort=False):
        linear = method == "MLMKLSum"
        says = "Sum's SVMs grow linearly" if linear else f"{ESTIMATES[method]}: SVMs grow sublinearly"
        kept = runs[runs["reached"]]
        kept = kept[kept.groupby("seed")["n_classes"].transform("nunique") > 2]
        if len(kept) < len(runs):
            missed.append(f"{len(runs) - len(kept)} of {len(runs)} of {method} on {name}")
        if kept.empty:
            yield Part(f"{name}, {says}")
            continue
        claimed = {"at_least": 0.8, "at_most": 1.2} if linear else {"at_most": 0.99}
        curve = {"x": kept["n_classes"], "units": kept["seed"], "of": name}
        yield Part(
            f"{name}: {says}", f"exponent of m, SVMs of {method}", kept["n_solved"], **claimed, **curve
        )
    if missed:
        yield f"Runs left out since they did not reach the gap: {', '.join(missed)}."


@judges("mlmkl-4", "mlmkl-fig-2")
def mlmkl_4(results):
    table = results.table("mlmkl-fig-2")
    columns = {"moved": "the weights returned (SA averages)", "swing": "the present weights"}
    for column, weights in columns.items():
        for name, way in by_set(table, column):
            says = f"{name}: {weights} of Sum vary at least twice as much"
            measure = f"total variation of {weights}, Sum over SA"
            yield Part(says, measure, way["MLMKLSum"], way["MLMKLSA"], ratio=True, at_least=2.0, of=name)


def at_the_end(table, column):
    """AUC after the last iteration: a row for each draw."""
    last = table[table["iteration"] == table["iteration"].max()]
    return last.pivot(index="seed", columns=column, values="auc")


@judges("mlmkl-5", "mlmkl-fig-3")
def mlmkl_5(results):
    auc = at_the_end(results.table("mlmkl-fig-3"), "delta")
    for d in (0.2, 0.6):
        for e in (0.0, 1.0):
            measure = f"AUC at the end, delta {d:g} minus {e:g}"
            yield Part(f"delta = {d:g} ends above {e:g}", measure, auc[d], auc[e], at_least=0.0)
    auc = at_the_end(results.table("mlmkl-fig-4"), "factor")
    measure = "AUC at the end, middle minus small step"
    within = {"at_least": -0.01, "at_most": 0.01, "figure": "mlmkl-fig-4"}
    yield Part("the two smaller steps agree within a point", measure, auc[3.0], auc[0.3], **within)


@judges("mlmkl-6", "mlmkl-thm-1")
def mlmkl_6(results):
    for method, gaps in results.table("mlmkl-thm-1").groupby("method", sort=False):
        says = f"{ESTIMATES[method]}: exponent -0.4 or less"
        measure = f"exponent of T in the saddle-point gap of {method}"
        yield Part(says, measure, gaps["gap"], x=gaps["n_iter"], units=gaps["seed"], at_most=-0.4)
