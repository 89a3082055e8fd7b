"""What the claims of the chapter are judged by: measurements of several draws of every set."""

from companion.run.claims import combine, judges

#: The methods that learn one combination for all classes, and those that learn one for each.
SHARED, PER_CLASS = ("MLMKLSA", "MLMKLSum"), ("GMKL", "SimpleMKL", "VSKL")
#: Of theorem 1, with its name.
ESTIMATES = {"MLMKLSA": "SA", "MLMKLSA printed": "SA with the paper's estimates"}


def by_set(table, column, columns="method"):
    """Pairs of a set's name and its values of `column`: a row for each draw."""
    for name, runs in table.groupby("name", sort=False):
        yield name, runs.groupby(["seed", columns])[column].sum().unstack()


@judges("mlmkl-1")
def mlmkl_1(results):
    """On every set SA's mean AUC is above that of each of the five others."""
    parts = {}
    for name, auc in by_set(results.table("mlmkl-tab-1.runs"), "auc"):
        for rival in ("MLMKLSum", *PER_CLASS, "AverageKernelSVM"):
            options = {"of": name, "at_least": 0.0, "measure": f"AUC of SA minus that of {rival}"}
            part = results.mean("mlmkl-tab-1", auc["MLMKLSA"], auc[rival], **options)
            parts[f"{name}: SA has a better mean AUC than {rival}"] = part
    return combine("mlmkl-1", parts)


@judges("mlmkl-2")
def mlmkl_2(results):
    """SA and Sum solve at most a third of the SVMs of every method with a combination for each class."""
    table, parts, notes = results.table("mlmkl-tab-1.runs"), {}, []
    for name, solved in by_set(table, "n_solved"):
        for method in SHARED:
            for rival in PER_CLASS:
                options = {"of": name, "ratio": True, "at_most": 1 / 3}
                options["measure"] = f"SVMs of {method} over those of {rival}"
                part = results.mean("mlmkl-tab-1", solved[method], solved[rival], **options)
                parts[f"{name}: {method} solves at most a third of the SVMs of {rival}"] = part
    for column, what in (("n_combined", "combinations of kernels"), ("seconds", "seconds")):
        median = {name: values.median() for name, values in by_set(table, column)}
        listed = [f"{m} {median[name][m]:.3g} ({name})" for m in (*SHARED, *PER_CLASS) for name in median]
        notes.append(f"Beside, {what}: {', '.join(listed)}.")
    return combine("mlmkl-2", parts, text=" ".join(notes))


@judges("mlmkl-3")
def mlmkl_3(results):
    """SVMs until the gap against classes, draw by draw: SA's exponent at most 0.99, Sum's 0.8 to 1.2."""
    table, parts, missed, never = results.table("mlmkl-cor-1"), {}, [], []
    for (name, method), runs in table.groupby(["name", "method"], sort=False):
        kept = runs[runs["reached"]]
        kept = kept[kept.groupby("seed")["n_classes"].transform("nunique") > 2]
        linear = method == "MLMKLSum"
        says = "Sum's SVMs grow linearly" if linear else f"{ESTIMATES[method]}: SVMs grow sublinearly"
        if len(kept) < len(runs):
            missed.append(f"{len(runs) - len(kept)} of {len(runs)} of {method} on {name}")
        if kept.empty:
            never.append(f"{name}, {says}")
            continue
        options = {"at_least": 0.8, "at_most": 1.2} if linear else {"at_most": 0.99}
        options |= {"of": name, "runs": kept["seed"], "measure": f"exponent of m, SVMs of {method}"}
        parts[f"{name}: {says}"] = results.slope(
            "mlmkl-cor-1", kept["n_classes"], kept["n_solved"], **options
        )
    text = f"Runs left out since they did not reach the gap: {', '.join(missed)}." if missed else ""
    return combine("mlmkl-3", parts, open_parts=never, text=text)


@judges("mlmkl-4")
def mlmkl_4(results):
    """On every set Sum's weights travel at least twice as far as SA's: those returned, and the present."""
    table, parts = results.table("mlmkl-fig-2"), {}
    for column, what in (("moved", "the weights returned (SA averages)"), ("swing", "the present weights")):
        for name, way in by_set(table, column):
            options = {"of": name, "ratio": True, "at_least": 2.0}
            options["measure"] = f"total variation of {what}, Sum over SA"
            part = results.mean("mlmkl-fig-2", way["MLMKLSum"], way["MLMKLSA"], **options)
            parts[f"{name}: {what} of Sum vary at least twice as much"] = part
    return combine("mlmkl-4", parts)


@judges("mlmkl-5")
def mlmkl_5(results):
    """AUC after the last iteration: delta 0.2 and 0.6 above 0 and 1; the smaller steps within a point."""

    def ends(figure, column):
        table = results.table(figure)
        last = table[table["iteration"] == table["iteration"].max()]
        return last.pivot(index="seed", columns=column, values="auc")

    last, small = ends("mlmkl-fig-3", "delta"), ends("mlmkl-fig-4", "factor")
    parts = {}
    for d in (0.2, 0.6):
        for e in (0.0, 1.0):
            options = {"at_least": 0.0, "measure": f"AUC at the end, delta {d:g} minus {e:g}"}
            parts[f"delta = {d:g} ends above {e:g}"] = results.mean(
                "mlmkl-fig-3", last[d], last[e], **options
            )
    options = {"at_least": -0.01, "at_most": 0.01, "measure": "AUC at the end, middle minus small step"}
    part = results.mean("mlmkl-fig-4", small[3.0], small[0.3], **options)
    parts["the two smaller steps agree within a point"] = part
    return combine("mlmkl-5", parts)


@judges("mlmkl-6")
def mlmkl_6(results):
    """Saddle-point gap against iterations, draw by draw: an exponent of -0.4 or less."""
    parts = {}
    for method, gaps in results.table("mlmkl-thm-1").groupby("method", sort=False):
        options = {"at_most": -0.4, "runs": gaps["seed"]}
        options["measure"] = f"exponent of T in the saddle-point gap of {method}"
        part = results.slope("mlmkl-thm-1", gaps["n_iter"], gaps["gap"], **options)
        parts[f"{ESTIMATES[method]}: exponent -0.4 or less"] = part
    return combine("mlmkl-6", parts)
