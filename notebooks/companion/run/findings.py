"""What stands on the front pages: how many claims hold, and ten sentences on what one learns.

The words are those for the committed results; the numbers are taken from the verdicts: ``{claim/part:form}``,
see `Verdict.named` and `in_words`.
"""

import re
import textwrap

from companion.run.claims import HOLDING, REFERENCE, VERDICTS, judge, with_numbers
from companion.run.records import read_verdicts

#: Name -> question, and the answer in one sentence.
FINDINGS = {
    "layers": (
        "Does a second online learner on top of one for each cue (OMCL) lower the error?",
        "Yes: its error is {omcl-1/objects:size} points below that of the best single cue on objects, "
        "{omcl-1/activities:size} on activities and {omcl-1/numerals:size} on numerals, and below a "
        "vote's; but one learner on all features joined is better on activities.",
    ),
    "online": (
        "Does learning the weights of kernels online pay?",
        "Yes, unless the best kernel is known: in one pass OM-2's error is "
        "{om2-4/lower online error than PA-I, average kernel:lower} than that of a passive-aggressive "
        "learner on the average kernel, and {om2-4/lower online error than PA-I, best kernel:lower} than "
        "on the best kernel.",
    ),
    "cues": (
        "Do learned combinations beat the plain average of kernels?",
        "They do with 39 kernels on 102 kinds of object (by "
        "{obs-6/the error of OBSCURE is below that of the SVM on the average kernel on objects:size} "
        "points; on fifteen scenes "
        "{obs-6/the error of OBSCURE is below that of the SVM on the average kernel on fifteen scenes:size}"
        "), where one combination for all classes also beats one for each; with 1,400 kernels of many widths "
        "they do not.",
    ),
    "speed": (
        "Is the stochastic solver OBSCURE faster?",
        "At equal accuracy it takes {obs-2/sooner than SILPMKL on objects:.2f} of SILP's time on objects, "
        "{obs-3/OBSCURE in at most a tenth of the time on Pendigits:.2f} of p-norm MKL's on Pendigits and as "
        "much on objects; less than Pegasos-MKL's only at large C.",
    ),
    "sparse": (
        "Does the solver UFO-MKL pay with 1,400 kernels?",
        "No: an SVM on the average kernel is hundreds of times as fast and, on objects, more accurate. To a "
        "certified 1% UFO-MKL takes {ufo-2/in at most a third of the time on Flowers-17:.2f} of OBSCURE's "
        "time on the authors' flowers and {ufo-2/in at most a third of the time on objects:.2f} on "
        "objects.",
    ),
    "labels": (
        "Should labels share a combination of kernels?",
        "A shared one is learned "
        "{mlmkl-2/MLMKLSA 0.001 is three times as fast as VSKL on objects:times} to "
        "{mlmkl-2/MLMKLSA 0.001 is three times as fast as SimpleMKL on objects:times} times as fast as one "
        "for each of 131 labels; with 14, "
        "{mlmkl-2/MLMKLSA 0.001 is three times as fast as SimpleMKL on yeast:times} times as fast to "
        "{mlmkl-2/MLMKLSA 0.001 is three times as fast as VSKL on yeast:times} times as slow. It is "
        "about as accurate, and so are equal weights.",
    ),
    "candidates": (
        "Do a few candidate labels for each sample suffice?",
        "Nearly, on samples made ambiguous: MMS is {mms-2/Pendigits:size} to {mms-2/Satimage:size} points "
        "behind an SVM that knows the labels, and far ahead of three rivals.",
    ),
    "transfer": (
        "Do models of old classes help with new ones?",
        "Yes, from five samples a class on: MKTL beats training from scratch by "
        "{mktl-3/MKTL beats NoTransfer from 5 samples per class on on photographed animals, other "
        "classes:size} points on photographed animals and "
        "{mktl-3/MKTL beats NoTransfer from 5 samples per class on on objects:size} on objects, where "
        "Multi-KT is as good.",
    ),
    "choice": (
        "Is a kernel chosen during learning as good as one found by trying all?",
        "Yes, after the paper's number of rounds: OKS shows no certain difference "
        "({oks-1/at most 3 points less accurate than MuSVM on objects:points} points) in "
        "{oks-1/1/30 of the time of MuSVM:.2f} of the time. OM-2 on all kernels is "
        "{oks-7/at most 3 points less accurate than OM2 on objects:size} points better.",
    ),
    "theorems": (
        "Does any run contradict a theorem?",
        "No: the closest reaches {om2-7/random labels:.0%} of its bound, that on OM-2's mistakes.",
    ),
}
#: The findings of the chapters in one sentence each, for the first page of the book.
CARDS = {
    "layers": "A second layer that learns which cue to trust has a lower error than the best cue: by "
    "{omcl-1/activities:size} points on activities and {omcl-1/objects:size} on objects.",
    "cues": "On 102 kinds of object learned weights of 39 kernels lower the error of their plain average by "
    "{obs-6/the error of OBSCURE is below that of the SVM on the average kernel on objects:size} points; on "
    "fifteen scenes they change nothing.",
    "labels": "One combination of kernels for 131 labels is learned "
    "{mlmkl-2/MLMKLSA 0.001 is three times as fast as VSKL on objects:times} to "
    "{mlmkl-2/MLMKLSA 0.001 is three times as fast as SimpleMKL on objects:times} times as fast as one for "
    "each, and is as accurate as equal weights.",
    "candidates": "From lists of candidate labels MMS learns to within {mms-2/Pendigits:size} to "
    "{mms-2/Satimage:size} points of an SVM that knows the labels.",
    "transfer": "From five samples a class on, models of old classes add {mktl-3/MKTL beats NoTransfer from "
    "5 samples per class on on photographed animals, other classes:size} points on photographed animals.",
    "choice": "A kernel chosen online shows no certain difference to the best found by trying all "
    "({oks-1/at most 3 points less accurate than MuSVM on objects:points} points), in "
    "{oks-1/1/30 of the time of MuSVM on objects:.2f} of the time.",
}
#: Which method to use: a question, what to use if the answer is yes, and what that gains and costs.
CHOICES = (
    (
        "Do you have several kernels or cues, and no result yet?",
        "Train an SVM on the plain average of the kernels, each scaled to a unit diagonal: "
        "`AverageKernelSVM`.",
        "There are no weights to learn, and often nothing to gain by learning them: on fifteen scenes "
        "OBSCURE's error is {obs-6/the error of OBSCURE is below that of the SVM on the average kernel on "
        "fifteen scenes:lower}, which is not certain; with 1,400 kernels on objects UFO-MKL's error is "
        "{ufo-6/lower error than the average kernel on objects:lower}, after "
        "{ufo-6/sooner than the average kernel on objects:.0f} times the time.",
    ),
    (
        "Are there dozens of kernels, some of them poor or redundant, and many classes?",
        "Learn their weights: `OBSCURE`, with C and p by cross-validation.",
        "With 39 kernels on 102 kinds of object its error is {obs-6/the error of OBSCURE is below that of "
        "the SVM on the average kernel on objects:lower} than the average kernel's; `OM2` after 80 epochs "
        "is as accurate in less than half the time (thesis figure 4.9). On four kernels of Pendigits a fit "
        "takes {speed-1/OBSCURE within four times on n = 2,000, C = 10:.1f} times the time of that SVM with "
        "2,000 samples, {speed-1/OBSCURE within four times on n = 7,494, C = 10:.1f} times with 7,494.",
    ),
    (
        "Do samples arrive one by one?",
        "`OM2`, which keeps all samples that it learned from; or, in bounded memory, `OMCL` on "
        "`ProjectronPlusPlus`.",
        "In the first pass OM-2's error is {om2-4/lower online error than PA-I, average kernel:lower} than "
        "that of one learner on the average kernel. On objects OMCL-BM stores "
        "{omcl-3/OMCL-BM: less than 0.75 of the support:.0%} of the samples of unbounded learners, for "
        "{omcl-3/OMCL-BM: error within 1 point:size} points of error.",
    ),
    (
        "Is it too slow to compute every kernel?",
        "Choose one kernel while learning: `OKS`, for as many rounds as draw each kernel fifty times.",
        "Against the best found by trying all no difference is certain "
        "({oks-1/at most 3 points less accurate than MuSVM on objects:points} points), and it takes "
        "{oks-1/1/30 of the time of MuSVM on objects:.2f} of the time. But it is "
        "{oks-7/at most 3 points less accurate than OM2 on objects:size} points behind OM-2 on all kernels. "
        "After too few rounds, two passes, it is "
        "{oks-1/after two passes at most 3 points less accurate than MuSVM on objects:size} points behind.",
    ),
    (
        "Are there few labelled samples, and models of other classes?",
        "From five samples a class on `MKTL`; with fewer, no transfer, or try both.",
        "From five on it gains {mktl-3/MKTL beats NoTransfer from 5 samples per class on on photographed "
        "animals, other classes:size} points on photographed animals and {mktl-3/MKTL beats NoTransfer from "
        "5 samples per class on on objects:size} on objects. With one sample a class it loses on objects.",
    ),
    (
        "Does a sample have several labels at once?",
        "One SVM on the average kernel for each label; `MLMKLSA` where weights have to be learned.",
        "With 131 labels both have the same AUC; weights shared by all labels are learned "
        "{mlmkl-2/MLMKLSA 0.001 is three times as fast as VSKL on objects:times} to "
        "{mlmkl-2/MLMKLSA 0.001 is three times as fast as SimpleMKL on objects:times} times as fast as "
        "weights for each. With 14 labels that is not always so: VSKL is faster than `MLMKLSA`.",
    ),
    (
        "Are only candidate labels known?",
        "`MMS`.",
        "On samples made ambiguous it is {mms-2/Pendigits:size} to {mms-2/Satimage:size} points behind an "
        "SVM that knows the labels. Where samples come alone it is "
        "{mms-6/recognition: MC-SVM above MMS on Lost:size} points behind on Lost and "
        "{mms-6/recognition: MC-SVM above MMS on MSRCv2:size} on MSRCv2.",
    ),
    (
        "Are there more than 10,000 samples?",
        "Consider explicit features in place of kernels: `FeatureMap` in `OM2` or `UFOMKL`; use them above "
        "60,000.",
        "A certified fit takes {many-1/in a tenth of the time, n = 10,000:.2f} of the exact kernels' time at "
        "10,000 samples and {many-1/in a tenth of the time:.2f} at 60,000, where the error is "
        "{many-2/at most half a point more:lower}.",
    ),
    (
        "Do samples lack some of their cues?",
        '`missing="zero"`.',
        "On numerals with 30% of the cues missing the error is {miss-2/numerals:lower} than without the "
        "incomplete samples, and as low as with imputed means.",
    ),
)
#: What is said of claims with each verdict.
PLURAL = {"holds": "hold", "holds, smaller": "hold by less than counts", "fails": "fail", "open": "are open"}
THEOREMS = "theorem|corollary|proposition"


class _Judged(dict):
    """Parts of claims by "claim/part", judged when they are asked for."""

    def __missing__(self, name):
        claim, _, part = name.partition("/")
        return judge(claim).named()[part]


def finding(name):
    """The question and the answer of a finding, by the committed results, as Markdown."""
    question, answer = FINDINGS[name]
    return f"**{question}** {with_numbers(answer, _Judged())}"


def card(name):
    """A finding in one sentence, by the stored results."""
    return with_numbers(CARDS[name], _Judged())


def decision_chart():
    """Which method to use, as Markdown: one question after the other, with gains and costs."""
    steps = []
    for number, (question, method, text) in enumerate(CHOICES, start=1):
        gains = with_numbers(text, _Judged())
        steps.append(f"## {number}. {question}\n\n**Yes:** {method}\n\n{gains}")
    return "\n\n".join(steps)


def counted():
    """How many of the papers' claims hold, theorems apart, and of those beyond the papers."""
    table = read_verdicts(REFERENCE)
    ours = table["source"].str.startswith("beyond")
    theorems = table["source"].str.contains(THEOREMS) & ~ours
    empirical = table[~ours & ~theorems]
    held = table[theorems]["verdict"].isin(HOLDING).sum()
    text = (
        f"Of the {(~ours).sum()} claims of the thesis and the papers {theorems.sum()} are theorems, of which "
        f"{held} hold in every run. Of {len(empirical)} empirical ones {_listed(empirical)}, mostly on "
        "stand-ins for the authors' data; to fail is to be worse, or level."
    )
    return f"{text} Of {ours.sum()} claims of our own {_listed(table[ours])}." if ours.any() else text


def _listed(table):
    numbers = table["verdict"].value_counts()
    return ", ".join(f"{numbers[v]} {PLURAL.get(v, v)}" for v in VERDICTS if v in numbers)


def failed(table):
    """The claims of a table that fail, a line of Markdown for each, with what one learns."""
    table = table[table["verdict"] == "fails"]
    lines = [
        f"- {{ref}}`{row.id} <{row.id}>`: *{row.claim}.* {row.learnt}".rstrip() for row in table.itertuples()
    ]
    return "\n".join(lines or ["None fails in this run."])


def in_readme(readme):
    """A README with the number of claims that hold and the ten sentences between two comments."""
    lines = [textwrap.fill(counted(), 110), ""]
    for name in FINDINGS:
        lines.append(textwrap.fill(f"- {finding(name)}", 110, subsequent_indent="  "))
    return between(readme, "findings", "\n".join(lines))


def between(page, name, text):
    """A page with `text` between the comments <!-- name --> and <!-- end -->."""
    renewed = f"<!-- {name} -->\n{text}\n<!-- end -->"
    pattern = rf"<!-- {name} -->\n.*?\n<!-- end -->"
    return re.sub(pattern, lambda found: renewed, page, flags=re.DOTALL)
