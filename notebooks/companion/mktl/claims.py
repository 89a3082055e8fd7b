"""What the claims of the chapter are judged by: accuracies, paired on the same samples.

Figure 6.2's unit of repetition is the target, in which its draws are nested; figure 6.3's is the draw of a
task's training samples, with the task's classes and priors as they are.
"""

from companion.run.claims import Part, combine, judges

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


def _over_targets(runs, says, method, other, scope, at_least=0.0):
    """Is one method better than another by `at_least`, in the mean over targets?"""
    measure = f"accuracy of {method} minus {other}, {scope}"
    units = runs.index.get_level_values("target")
    return Part(says, measure, runs[method], runs[other], at_least=at_least, units=units)


def _over_draws(name, table, says, method, other, scope, at_least=0.0):
    """The same in the mean over draws of a task."""
    measure = f"accuracy of {method} minus {other}, {name}, {scope}"
    units = table.index.get_level_values("seed")
    of = _DATA[name]
    return Part(says, measure, table[method], table[other], at_least=at_least, units=units, of=of)


def _positives(runs):
    """For every number of positives its runs, and the number as text."""
    for n, group in runs.groupby("n_positive"):
        yield n, group, f"{n} positive{'s' * (n > 1)}"


@judges("mktl-1", "thesis-fig-6.2-mean")
def mktl_1(results):
    """Each transfer method against No-Transfer, weighted MKTL against Multi-KT at each number but three."""
    runs = _runs(results)
    few = runs[runs.index.get_level_values("n_positive") <= FEW]
    for method in _TRANSFER:
        says = f"{method} beats No-Transfer with up to {FEW} positives"
        yield _over_targets(few, says, method, "NoTransfer", f"mean over 1 to {FEW} positives")
    for n, group, positives in _positives(runs):
        if n != 3:
            says = f"weighted MKTL beats Multi-KT with {positives}"
            yield _over_targets(group, says, "MKTL weighted", "MultiKT", positives)


@judges("mktl-2", "thesis-fig-6.2-mean")
def mktl_2(results):
    """Not clearly worse: to be shown at every number of positives over targets, and in every target."""
    runs = _runs(results)
    for method in ("MKTL", "MKTL weighted"):
        for _, group, positives in _positives(runs):
            says = f"{method} at most a point below Prior-Features with {positives}"
            yield _over_targets(group, says, method, "PriorFeatures", positives, at_least=-WORSE)
        yield _in_every_class(results, runs, method)


def _in_every_class(results, runs, method):
    """Shown of all classes (an intersection-union test), refuted of one (by Holm over them), or open."""
    measure = f"accuracy of {method} minus PriorFeatures, mean over positives, the target that decides"
    each = {}
    for target, group in runs.groupby("target"):
        draws = group.index.get_level_values("seed")
        difference = group[method] - group["PriorFeatures"]
        options = {"units": draws, "unit": "draw of a target"}
        each[target] = results.judge(Part("", measure, difference, at_least=-WORSE_IN_CLASS, **options))
    verdict = combine(results.claim, each)._replace(text="", parts=())
    if verdict.verdict in ("mixed", "fails"):  # one class is enough
        verdict = verdict._replace(verdict="fails", p=min(1.0, verdict.p * len(each)))
    n_shown = sum(verdict.verdict == "holds" for verdict in each.values())
    scope = f"in every class, over numbers of positives (shown in {n_shown} of {len(each)})"
    return Part(f"{method} at most a test picture below {scope}", verdict=verdict)


@judges("mktl-3", "thesis-fig-6.3")
def mktl_3(results):
    """MKTL against each rival from five samples on, and against No-Transfer at the largest number."""
    for name, table in _tasks(results):
        n = table.index.get_level_values("n_per_class")
        scope = f"mean over {ENOUGH} samples per class and more"
        for rival in _RIVALS:
            says = f"{name}: MKTL beats {rival}, {scope}"
            yield _over_draws(name, table[n >= ENOUGH], says, "MKTL", rival, scope)
        scope = f"{max(n)} samples per class"
        says = f"{name}: gain over NoTransfer left at {scope}"
        yield _over_draws(name, table[n == max(n)], says, "MKTL", "NoTransfer", scope)


@judges("mktl-4", "thesis-fig-6.3")
def mktl_4(results):
    """MKTL with 23 priors against itself with 14, mean over numbers of samples: better by what counts.

    MKTL alone has more draws than the figure, as its difference is small.
    """
    table = results.table("thesis-fig-6.3.draws")
    table = table.pivot(index=["n_per_class", "seed"], columns="n_priors", values="accuracy")
    less, more = sorted(table.columns)
    table = table.rename(columns="MKTL with {} priors".format)
    pair = [f"MKTL with {n} priors" for n in (more, less)]
    yield _over_draws("objects", table, "", *pair, "mean over all numbers of samples", at_least=COUNTS)


@judges("mktl-5", "thesis-fig-6.3")
def mktl_5(results):
    """MKTL with p auto against a chosen p, mean over numbers of samples: not worse by what counts."""
    for name, table in _tasks(results):
        says = f"{name}: p auto at most {100 * COUNTS:g} points below a chosen p"
        scope = "mean over all numbers of samples"
        yield _over_draws(name, table, says, "MKTL auto", "MKTL", scope, at_least=-COUNTS)


@judges("mktl-6", "thesis-sec-6.5")
def mktl_6(results):
    """Seconds, under a minute with all settings of C and p: the claim is one about the clock."""
    times = results.table("thesis-sec-6.5").query("method == 'MKTL'")
    times = times[times["n_per_class"] == times["n_per_class"].max()]
    for kind, group in times.groupby("kind"):
        slowest = group["seconds"].max()
        gap = (group["gap"] / group["objective"]).max()
        measure = f"seconds of the slowest of {len(group)} settings, relative gaps up to {gap:.1e}"
        yield Part(kind, measure, true=slowest < 60.0, number=slowest, of=kind)
