"""What stands on the front pages, README and book: sentences computed from the saved tables and verdicts."""

import re
import textwrap

from companion.protocol import where
from companion.run.claims import RELEVANT, VERDICTS, Results, number_text
from companion.run.figures import method_style
from companion.run.records import read_verdicts
from companion.words import certain, enumerated, than

#: Methods whose training is told the true labels.
TOLD = ("MC-SVM", "1vA-SVM")
WITHOUT_TRANSFER = "NoTransfer"
SHARED_AS_PRINTED = "MLMKLSA 0.001"
PER_LABEL = ("GMKL", "SimpleMKL", "VSKL")


def named(methods):
    """Methods as figures name them, in words."""
    return enumerated([method_style(method)["label"] for method in methods])


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
    return f"""
Of new drawings of things the best of {len(alone)} kernels names {alone.max():.0f}%, their plain average
{right["AverageKernelSVM"]:.0f}%, OBSCURE {right["OBSCURE"]:.0f}%: {against} (less than a point, or uncertain,
is no difference). To train LP-beta takes {times:.0f} times as long."""


def candidates(results):
    """Do candidate labels suffice?"""
    means = results.table("thesis-fig-5.3").groupby(["name", "method"])["accuracy"].mean().unstack()
    ahead = (means["MMS"] > _rivals(means.T).max()).sum()
    mean = 100 * means.mean()
    rival = _rivals(mean).idxmax()
    text = f"""
MMS, told only candidate labels, names {mean["MMS"]:.0f}% right over {len(means)} data sets made ambiguous, an
SVM told every label {mean["MC-SVM"]:.0f}%, the best rival, {named([rival])}, {mean[rival]:.0f}%. MMS is ahead
of all its rivals on {ahead} of the {len(means)}."""
    originals = Results(results.directory / "original", results.claim)
    titles = {"lost": "Lost (faces and names of a film)", "msrcv2": "MSRCv2 (regions of photographs)"}
    for name, title in titles.items():
        if originals.has(f"thesis-tab-5.2-{name}"):
            shares = originals.table(f"thesis-tab-5.2-{name}").set_index("method")["mean"]
            rival = _rivals(shares).idxmax()
            word = than(shares["MMS"], shares[rival], "behind")
            text += f"""
On {title} it names {shares["MMS"]:.0f}%, {word} {named([rival])} with {shares[rival]:.0f}%."""
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
            f"on {name} it reaches a mean AUC of {mean[SHARED_AS_PRINTED]:.3f}, {equal} equal weights "
            f"({mean['AverageKernelSVM']:.3f}) and {behind} the best method with a combination for each "
            f"label, {named([rival])} ({mean[rival]:.3f}); it takes {times[SHARED_AS_PRINTED]:.2g} times the "
            f"CPU seconds of the fastest of these, ML-MKL-Sum {times['MLMKLSum']:.2g} times"
        )
    return f"""
Many labels, one combination of kernels for all, learnt by ML-MKL-SA as printed (step 0.001):
{"; ".join(listed)}."""


def _rivals(by_method):
    return by_method.drop(["MMS", "RANDOM", *TOLD], errors="ignore")


def transfer(results):
    """Do models of old classes help with new ones?"""
    alone = results.table("thesis-fig-6.2-mean")
    alone = alone[alone["n_positive"] <= 5].groupby("method")["accuracy"].mean()
    gain = 100 * (alone - alone[WITHOUT_TRANSFER]).drop(WITHOUT_TRANSFER)
    several = results.table("thesis-fig-6.3")
    most = several.groupby("name")["n_priors"].transform("max")
    several = several[(several["n_priors"] == most) & (several["n_per_class"] >= 5)]
    listed = []
    for name, runs in several.groupby("name", sort=False):
        right = 100 * runs.groupby("method")["accuracy"].mean()
        rivals = right[[method for method in right.index if not method.startswith("MKTL")]]
        word = than(right["MKTL"], rivals.max(), "behind")
        best = f"{named([rivals.idxmax()])} with {rivals.max():.0f}%"
        listed.append(f"on {name} MKTL names {right['MKTL']:.0f}%, {word} {best}")
    return f"""
One class against a background, with up to five samples: {(gain > 0).sum()} of {len(gain)} ways of transfer
are ahead of learning anew, the differences are {gain.min():+.0f} to {gain.max():+.0f} points. Several new
classes, with five samples of each and more: {", ".join(listed)}."""


def verdicts(results):
    """How many claims hold, and which fail?"""
    table = read_verdicts(results.directory)
    counts = table["verdict"].value_counts()
    listed = "; ".join(f"*{verdict}* {counts[verdict]}" for verdict in VERDICTS if verdict in counts)
    failing = "; ".join(f"*{row.claim}* ({row.id})" for row in where(table, verdict="fails").itertuples())
    return f"Verdicts on {len(table)} claims: {listed}. These fail: {failing or 'none'}."


def failed(table):
    """The claims of a table that fail, a line of Markdown for each."""
    table = where(table, verdict="fails")
    lines = []
    for row in table.itertuples():
        number = number_text(row)
        lines.append(f"- {{ref}}`{row.id}`: *{row.claim}.* {number and f'{row.measure}: {number}.'}")
    return "\n".join(lines or ["None fails in this run."])


#: What stands under a title: name -> sentences of `Results`.
FINDINGS = {
    "cues": cues,
    "candidates": candidates,
    "transfer": transfer,
    "labels": labels,
    "verdicts": verdicts,
}


def finding(name, directory):
    """The sentences of a finding in one line; of a run that lacks its figures or methods, that they were not
    made.
    """
    try:
        return " ".join(FINDINGS[name](Results(directory, "findings")).split())
    except (FileNotFoundError, KeyError):
        return "Its figures were not made in this run."


def in_readme(readme, directory):
    """A README with its findings, each between two comments that name it, as they are in `directory`."""

    def renewed(match):
        text = textwrap.fill(f"- {finding(match[2], directory)}", 110, subsequent_indent="  ")
        return f"{match[1]}\n{text}\n{match[3]}"

    return re.sub(r"(<!-- (\w+) -->)\n.*?\n(<!-- end -->)", renewed, readme, flags=re.DOTALL)
