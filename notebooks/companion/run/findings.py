"""What stands on the front pages and in summaries of chapters: sentences computed from tables and verdicts.

Words such as "fewer than" are those of paired differences; less than a point, or uncertain, is no difference.
"""

import re
import textwrap

import pandas as pd
from scipy.stats import gmean

from companion.omcl.claims import at_end, curves_of
from companion.protocol import where
from companion.run.claims import HOLDING, REFERENCE, RELEVANT, Results, number_text, with_labels
from companion.run.figures import certain, enumerated, method_style, than
from companion.run.records import read_verdicts

#: Whose training is told no true labels, as MMS's.
WEAK = ["CLSVM", "MIMLSVM", "M3MIML"]
#: Ways of transfer -> what learns anew with the same class weights.
ANEW = {
    "PriorFeatures": "NoTransfer",
    "AverageTL": "NoTransfer",
    "MKTL": "NoTransfer",
    "MultiKT": "NoTransfer weighted",
    "PriorFeatures weighted": "NoTransfer weighted",
    "AverageTL weighted": "NoTransfer weighted",
    "MKTL weighted": "NoTransfer weighted",
}
PLURAL = {"holds": "hold", "fails": "fail", "mixed": "are mixed", "undecided": "are undecided"}
STREAMS = {"objects": "objects", "HTAD": "activities by two sensors", "IDOL2": "places", "mfeat": "numerals"}
SHARED_AS_PRINTED = "MLMKLSA 0.001"
PER_LABEL = ("GMKL", "SimpleMKL", "VSKL")


def named(methods):
    """Methods as figures name them, in words."""
    return enumerated([method_style(method)["label"] for method in methods])


def layers(results):
    """Do two layers err less than their best cue, and how much do they keep?"""
    listed = []
    ties = []
    for name, figure in curves_of(results).items():
        errors = 100 * at_end(results.table(figure))
        mean = errors.mean()
        best = mean.filter(like="cue: ").idxmin()
        against = [
            f"{certain(errors['OMCL-BM'] - errors[rival], 'less', 1.0)} {rival_title} ({mean[rival]:.0f}%)"
            for rival, rival_title in ((best, "the best cue"), ("Flat", "Flat"), ("Vote", "a vote"))
        ]
        ties.append(f"{at_end(results.table(figure), 'tied')['Vote'].mean():.0%}")
        listed.append(f"{mean['OMCL-BM']:.0f}% on {STREAMS[name]}, {enumerated(against)}")
    support = at_end(where(results.table("thesis-fig-3.5"), data="objects"), "support")
    kept = gmean(support["OMCL-BM"] / support["OMCL-PERC"])
    return f"""
After one pass over several cues the test error of OMCL-BM is {"; ".join(listed)}. *Flat* trains one learner
on all features in one vector. Ties of the vote count as errors; they are {enumerated(ties)} of the samples.
On objects the support set of OMCL-BM is {kept:.0%} as large as that of OMCL with Perceptrons."""


def cues(results):
    """Do cues add up?"""
    alone = results.table("thesis-fig-4.9-cues")["objects: accuracy"]
    runs = results.table("thesis-fig-4.9-right")
    error = runs.pivot(index="seed", columns="method", values="test_error")
    right = 100 * (1 - error.mean())
    said = {}
    for rival in ("SILPMKL", "LpMKL", "MCMKL", "UFOMKL", "LPBeta"):
        word = certain((error[rival] - error["OBSCURE"]).dropna(), "fewer", RELEVANT)
        said.setdefault(word, []).append(rival)
    against = ", ".join(f"{word} {named(rivals)}" for word, rivals in said.items())
    seconds = runs.pivot(index="seed", columns="method", values="seconds")
    times = (seconds["LPBeta"] / seconds["OBSCURE"]).median()
    average = (seconds["AverageKernelSVM"] / seconds["OBSCURE"]).median()
    return f"""
On new drawings of things the accuracy of the best of {len(alone)} kernels is {alone.max():.0f}%, that of an
SVM on their plain average {right["AverageKernelSVM"]:.1f}%, that of OBSCURE {right["OBSCURE"]:.1f}%. OBSCURE
names {against}. Training the SVM on the average takes {average:.2g} times the CPU time of OBSCURE, LP-beta
{times:.2g} times."""


def candidates(results):
    """Do candidate labels suffice?"""
    means = results.table("thesis-fig-5.3").groupby(["name", "method"])["accuracy"].mean().unstack()
    ahead = (means["MMS"] > means[WEAK].max(axis=1)).sum()
    mean = 100 * means.mean()
    rival = mean[WEAK].idxmax()
    text = f"""
MMS, trained on candidate labels only, has a mean accuracy of {mean["MMS"]:.0f}% over {len(means)} data sets
made ambiguous. An SVM trained on the true labels has {mean["MC-SVM"]:.0f}%, the best rival, {named([rival])},
{mean[rival]:.0f}%. MMS is ahead of all its rivals on {ahead} of {len(means)} data sets."""
    originals = Results(results.directory / "original", results.claim)
    titles = {
        "lost": "Lost (faces and names of a television series)",
        "msrcv2": "MSRCv2 (regions of photographs)",
    }
    for name, title in titles.items():
        if originals.has(f"thesis-tab-5.2-{name}"):
            shares = originals.table(f"thesis-tab-5.2-{name}").set_index("method")["mean"]
            rival = shares[WEAK].idxmax()
            word = than(shares["MMS"], shares[rival], "behind")
            text += f"""
On {title} its accuracy is {shares["MMS"]:.0f}%, {word} {named([rival])} with {shares[rival]:.0f}%."""
    return text


def labels(results):
    """Should labels share a combination of kernels?"""
    listed = []
    for name, runs in results.table("mlmkl-tab-1.runs").groupby("name", sort=False):
        auc, seconds = (runs.pivot(index="seed", columns="method", values=c) for c in ("auc", "seconds"))
        mean = auc.mean()
        rival = mean[[*PER_LABEL]].idxmax()
        equal, behind = (
            certain(auc[SHARED_AS_PRINTED] - auc[other], "below", RELEVANT)
            for other in ("AverageKernelSVM", rival)
        )
        median = seconds.median()
        fastest = median[[*PER_LABEL]].min()
        times = median / fastest
        listed.append(
            f"On {name} it is {mean[SHARED_AS_PRINTED]:.3f}, {equal} equal weights "
            f"({mean['AverageKernelSVM']:.3f}) and {behind} the best method with a combination for each "
            f"label, {named([rival])} ({mean[rival]:.3f}). It takes "
            f"{times[SHARED_AS_PRINTED]:.2g} times the CPU seconds of the fastest of these; ML-MKL-Sum takes "
            f"{times['MLMKLSum']:.2g} times."
        )
    return f"""
ML-MKL-SA as printed (step 0.001) learns one combination of kernels for all labels; measured is the mean area
under the precision-recall curves. {" ".join(listed)}"""


def transfer(results):
    """Do models of old classes help with new ones?"""
    alone = results.table("thesis-fig-6.2-mean")
    alone = 100 * alone[alone["n_positive"] <= 5].groupby("method")["accuracy"].mean()
    gain = pd.Series({method: alone[method] - alone[anew] for method, anew in ANEW.items()})
    several = results.table("thesis-fig-6.3")
    most = several.groupby("name")["n_priors"].transform("max")
    several = several[(several["n_priors"] == most) & (several["n_per_class"] >= 5)]
    listed = []
    for name, runs in several.groupby("name", sort=False):
        draws = 100 * runs.pivot_table(index="seed", columns="method", values="accuracy")
        right = draws.mean()
        rivals = right[[method for method in right.index if not method.startswith("MKTL")]]
        word = certain(draws["MKTL"] - draws[rivals.idxmax()], "behind", 1.0)
        best = f"{named([rivals.idxmax()])} with {rivals.max():.0f}%"
        listed.append(f"{right['MKTL']:.0f}% on {name}, {word} {best}")
    return f"""
With up to five samples of one class against a background, {(gain > 0).sum()} of {len(gain)} transfer methods
are ahead of training from scratch with the same class weights, by {gain.min():+.1f} points
({named([gain.idxmin()])}) to {gain.max():+.1f} ({named([gain.idxmax()])}). With at least five samples of each
of several new classes the accuracy of MKTL is {"; ".join(listed)}."""


def choice(results):
    """Is a kernel selected by sampling as good as one selected by trying all?"""
    pairs = pd.concat([results.table(f"oks-tab-{k}-pairs") for k in (1, 2)])
    right, first, seconds, values = (
        pairs.pivot(index="name", columns="method", values=column)
        for column in ("accuracy", "first", "seconds", "kernel_values")
    )
    kernels = pd.concat([results.table(f"oks-fig-{k}") for k in (1, 2)])
    right["drawn"] = kernels.groupby("name")["accuracy"].mean()
    against = []
    for rival, title in (
        ("drawn", "one drawn uniformly"),
        ("SOM", "that of SOM"),
        ("MuSVM", "that of MuSVM, which tries all,"),
        ("SimpleMKL", "SimpleMKL, which combines all,"),
    ):
        oks = first["OKS"] if rival == "SimpleMKL" else right["OKS"]  # SimpleMKL has the first split only
        word = certain(oks - right[rival], "behind", RELEVANT)
        against.append(f"{word} {title} with {right[rival].mean():.0%}")
    slower = gmean(seconds["MuSVM"] / seconds["OKS"])
    more = gmean(values["MuSVM"] / values["OKS"])
    return f"""
From sixty kernels on pictures OKS selects one that gets {right["OKS"].mean():.0%} of two-class tests right:
{enumerated(against)}. MuSVM takes {slower:.2g} times the CPU seconds and {more:.2g} times the kernel
values."""


def verdicts(results):
    """How many claims hold, and which fail?"""
    table = read_verdicts(results.directory)
    ours = table["source"].str.startswith("beyond")
    papers = table[~ours]
    holding = papers[papers["verdict"].isin(HOLDING)]
    bounds = holding["source"].str.contains("theorem|corollary|proposition").sum()
    failing = "; ".join(
        f"*{row.claim}* ({row.id}, on {row.data})" for row in where(papers, verdict="fails").itertuples()
    )
    profiles = papers["profile"].value_counts()
    made = enumerated([f"{number} from `{profile}`" for profile, number in profiles.items()])
    beyond = f" Beyond the papers: {listed_by_verdict(table[ours])}." if ours.any() else ""
    others = listed_by_verdict(papers[papers["verdict"] != "fails"])
    return f"""
Verdicts on {len(papers)} claims ({made}): {others}. Of those that hold,
{bounds} are theorems. These fail: {failing or "none"}.{beyond}"""


def listed_by_verdict(table):
    """How many claims have each verdict, with their ids."""
    groups = table.groupby("verdict", sort=False)["id"]
    return "; ".join(
        f"{len(ids)} {PLURAL.get(verdict, verdict)} ({', '.join(ids)})" for verdict, ids in groups
    )


def failed(table):
    """The claims of a table that fail, a line of Markdown for each."""
    table = where(table, verdict="fails")
    lines = []
    for row in table.itertuples():
        number = number_text(row)
        ours = f" {with_labels(row.measure)}: {number}." if number else ""
        lines.append(f"- {{ref}}`{row.id}`: *{row.claim}.*{ours}")
    return "\n".join(lines or ["None fails in this run."])


#: What stands under a title: name -> sentences of `Results`.
FINDINGS = {
    "layers": layers,
    "cues": cues,
    "labels": labels,
    "candidates": candidates,
    "transfer": transfer,
    "choice": choice,
    "verdicts": verdicts,
}


def finding(name, directory=REFERENCE):
    """The sentences of a finding of the results in `directory`, in one line.

    Where figures or methods are missing, it says that they were not made.
    """
    try:
        return " ".join(FINDINGS[name](Results(directory, "findings")).split())
    except (FileNotFoundError, KeyError):
        return "Its figures were not made in this run."


def in_readme(readme, directory):
    """A README with its findings, each between two comments that name it, as they are in `directory`."""

    def renewed(match):
        question = FINDINGS[match[2]].__doc__
        text = f"- **{question}** {finding(match[2], directory)}"
        text = textwrap.fill(text, 110, subsequent_indent="  ")
        return f"{match[1]}\n{text}\n{match[3]}"

    return re.sub(r"(<!-- (\w+) -->)\n.*?\n(<!-- end -->)", renewed, readme, flags=re.DOTALL)
