"""What the claims of the chapter are judged by: accuracies, paired on the same samples.

Figure 6.2's unit of repetition is the target, in which its draws are nested; figure 6.3's is the draw of a
task's training samples, with the task's classes and priors as they are.
"""

from companion.run.claims import combine, judges

#: Few samples, and from about on the thesis says that MKTL gains, in samples of each class.
FEW = 5
ENOUGH = 5
#: Clearly worse: a point on average over targets; in a single class one of its twelve test pictures, which
#: are half of its accuracy.
WORSE = 0.01
WORSE_IN_CLASS = 1.0 / 24.0
#: The smallest difference that counts in figure 6.3, either way.
COUNTS = 0.005
_TRANSFER = ("PriorFeatures", "AverageTL", "MultiKT", "MKTL", "MKTL weighted")
_RIVALS = ("NoTransfer", "PriorFeatures", "AverageTL", "MultiKT")
#: Data sets of the tasks of figure 6.3.
_DATA = {"animals": "emoji", "objects": "emoji", "awa": "awa"}


def _runs(results):
    """Figure 6.2: methods' accuracies of every number of positives, target and draw."""
    table = results.table("thesis-fig-6.2-mean")
    return table.pivot(index=["n_positive", "target", "seed"], columns="method", values="accuracy")


def _tasks(results):
    """Figure 6.3's tasks, methods' accuracies of every number of samples and draw, with the most priors."""
    table = results.table("thesis-fig-6.3")
    table = table[table["n_priors"] == table.groupby("name")["n_priors"].transform("max")]
    for name, group in table.groupby("name", sort=False):
        yield name, group.pivot(index=["n_per_class", "seed"], columns="method", values="accuracy")


def _over_targets(results, runs, method, other, says, at_least=0.0):
    """Is one method better than another by `at_least`, in the mean over targets?"""
    options = {"at_least": at_least, "blocks": runs.index.get_level_values("target")}
    options["measure"] = f"accuracy of {method} minus {other}, {says}"
    return results.mean("thesis-fig-6.2-mean", runs[method], runs[other], **options)


def _over_draws(results, name, table, method, other, says, at_least=0.0):
    """The same in the mean over draws of a task."""
    options = {"at_least": at_least, "blocks": table.index.get_level_values("seed"), "of": _DATA[name]}
    options["measure"] = f"accuracy of {method} minus {other}, {name}, {says}"
    return results.mean("thesis-fig-6.3", table[method], table[other], **options)


@judges("mktl-1")
def mktl_1(results):
    """Each transfer method against No-Transfer, weighted MKTL against Multi-KT at each number but three."""
    runs = _runs(results)
    few = runs[runs.index.get_level_values("n_positive") <= FEW]
    parts = {
        f"{method} beats No-Transfer with up to {FEW} positives": _over_targets(
            results, few, method, "NoTransfer", f"mean over 1 to {FEW} positives"
        )
        for method in _TRANSFER
    }
    for n, group in runs.groupby("n_positive"):
        if n != 3:
            positives = f"{n} positive{'s' * (n > 1)}"
            part = _over_targets(results, group, "MKTL weighted", "MultiKT", positives)
            parts[f"weighted MKTL beats Multi-KT with {positives}"] = part
    return combine("mktl-1", parts)


@judges("mktl-2")
def mktl_2(results):
    """Not clearly worse: to be shown at every number of positives over targets, and in every target."""
    runs = _runs(results)
    parts = {}
    for method in ("MKTL", "MKTL weighted"):
        for n, group in runs.groupby("n_positive"):
            positives = f"{n} positive{'s' * (n > 1)}"
            part = _over_targets(results, group, method, "PriorFeatures", positives, at_least=-WORSE)
            parts[f"{method} at most a point below Prior-Features with {positives}"] = part
        part, shown = _in_every_class(results, runs, method)
        scope = f"in every class, over numbers of positives ({shown})"
        parts[f"{method} at most a test picture below {scope}"] = part
    return combine("mktl-2", parts)


def _in_every_class(results, runs, method):
    """Shown of all classes (an intersection-union test), refuted of one (by Holm over them), or open."""
    options = {"unit": "draw of a target", "at_least": -WORSE_IN_CLASS}
    options["measure"] = (
        f"accuracy of {method} minus PriorFeatures, mean over positives, the target that decides"
    )
    each = {}
    for target, group in runs.groupby("target"):
        draws = group.index.get_level_values("seed")
        difference = group[method] - group["PriorFeatures"]
        each[target] = results.mean("thesis-fig-6.2-mean", difference, blocks=draws, **options)
    part = combine(results.claim, each)._replace(text="", parts=())
    if part.verdict in ("mixed", "fails"):  # one class is enough
        part = part._replace(verdict="fails", p=min(1.0, part.p * len(each)))
    n_shown = sum(verdict.verdict == "holds" for verdict in each.values())
    return part, f"shown in {n_shown} of {len(each)}"


@judges("mktl-3")
def mktl_3(results):
    """MKTL against each rival from five samples on, and against No-Transfer at the largest number."""
    parts = {}
    for name, table in _tasks(results):
        n = table.index.get_level_values("n_per_class")
        for rival in _RIVALS:
            says = f"mean over {ENOUGH} samples per class and more"
            part = _over_draws(results, name, table[n >= ENOUGH], "MKTL", rival, says)
            parts[f"{name}: MKTL beats {rival}, {says}"] = part
        says = f"{max(n)} samples per class"
        part = _over_draws(results, name, table[n == max(n)], "MKTL", "NoTransfer", says)
        parts[f"{name}: gain over NoTransfer left at {says}"] = part
    return combine("mktl-3", parts)


@judges("mktl-4")
def mktl_4(results):
    """MKTL with 23 priors against itself with 14, mean over numbers of samples: better by what counts.

    MKTL alone has more draws than the figure, as its difference is small.
    """
    table = results.table("thesis-fig-6.3.draws")
    table = table.pivot(index=["n_per_class", "seed"], columns="n_priors", values="accuracy")
    less, more = sorted(table.columns)
    says = "mean over all numbers of samples"
    table = table.rename(columns="MKTL with {} priors".format)
    pair = [f"MKTL with {n} priors" for n in (more, less)]
    return _over_draws(results, "objects", table, *pair, says, at_least=COUNTS)


@judges("mktl-5")
def mktl_5(results):
    """MKTL with p auto against a chosen p, mean over numbers of samples: not worse by what counts."""
    says = "mean over all numbers of samples"
    parts = {
        f"{name}: p auto at most {100 * COUNTS:g} points below a chosen p": _over_draws(
            results, name, table, "MKTL auto", "MKTL", says, at_least=-COUNTS
        )
        for name, table in _tasks(results)
    }
    return combine("mktl-5", parts)


@judges("mktl-6")
def mktl_6(results):
    """Seconds: the claim is one about the clock, and the margin is a factor of tens."""
    times = results.table("thesis-sec-6.5").query("method == 'MKTL'")
    times = times[times["n_per_class"] == times["n_per_class"].max()]
    return combine("mktl-6", {kind: _slowest(results, kind, group) for kind, group in times.groupby("kind")})


def _slowest(results, kind, times):
    """Under a minute, all settings of C and p."""
    slowest = times["seconds"].max()
    gap = (times["gap"] / times["objective"]).max()
    says = f"seconds of the slowest of {len(times)} settings, relative gaps up to {gap:.1e}"
    return results.exact("thesis-sec-6.5", slowest < 60.0, kind, number=slowest, measure=says)
