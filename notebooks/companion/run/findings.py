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
        "Do two layers of online learners err less than one?",
        "On every data set less than the best single cue, by {omcl-1/objects:size} points on pictures, "
        "{omcl-1/HTAD:size} on sensors and {omcl-1/mfeat:size} on numerals, and less than a vote; one "
        "learner on all features joined is better on one of the three.",
    ),
    "online": (
        "Does learning the weights of kernels online pay?",
        "In its first pass OM-2 makes fewer mistakes than OMCL (by {om2-4/lower online error than OMCL:size} "
        "points) and than PA-I on the average kernel "
        "({om2-4/lower online error than PA-I, average kernel:size}), and as many as PA-I on the best "
        "kernel.",
    ),
    "cues": (
        "Do learned combinations beat the plain average of kernels?",
        "By {obs-6/the error of OBSCURE is below that of the SVM on the average kernel on objects:size} "
        "points on 102 objects with 39 kernels, where one combination for all classes also beats one for "
        "each class; with 1,400 kernels of many widths the average is better.",
    ),
    "speed": (
        "Is the stochastic solver faster?",
        "Than one combination per class at equal accuracy it is, {obs-2/sooner than SILPMKL on emoji:times} "
        "times on objects; than Pegasos-MKL only at large C; than p-norm MKL ten times on one of two data "
        "sets.",
    ),
    "sparse": (
        "Does UFO-MKL pay with 1,400 kernels?",
        "Against OBSCURE it does: at no larger error it takes "
        "{ufo-2/in at most a third of the time on Flowers-17:.2g} of its time on the authors' own flowers "
        "and {ufo-2/in at most a third of the time on emoji:.2g} on objects; an SVM on the average kernel is "
        "{ufo-6/sooner than the average kernel on Flowers-17:times} times as fast, and at least as accurate.",
    ),
    "labels": (
        "Should labels share a combination of kernels?",
        "With 131 labels it is learned "
        "{mlmkl-2/MLMKLSA 0.001 is three times as fast as VSKL on emoji:times} to "
        "{mlmkl-2/MLMKLSA 0.001 is three times as fast as SimpleMKL on emoji:times} times as fast as one for "
        "each, with 14 labels up to "
        "{mlmkl-2/MLMKLSA 0.001 is three times as fast as SimpleMKL on yeast:times} times; it is no more "
        "accurate than equal weights.",
    ),
    "candidates": (
        "Do candidate labels suffice?",
        "Nearly: MMS is {mms-2/pendigits:size} to {mms-2/satimage:size} points behind an SVM that knows "
        "every label, and far ahead of its three rivals on every data set.",
    ),
    "transfer": (
        "Do models of old classes help with new ones?",
        "With few samples they do: on photographed animals MKTL is ahead of training from scratch by "
        "{mktl-3/MKTL beats NoTransfer from 5 samples per class on on awa:size} points, on drawn objects by "
        "{mktl-3/MKTL beats NoTransfer from 5 samples per class on on objects:size}, where Multi-KT is "
        "level.",
    ),
    "choice": (
        "Is a kernel chosen while sampling as good as one chosen by trying all?",
        "With as many rounds as in the paper it is level "
        "({oks-1/at most 3 points less accurate than MuSVM on emoji:points} points), at "
        "{oks-1/1/30 of the time of MuSVM:.2g} of the time; OM-2, which uses all kernels, is "
        "{oks-7/at most 3 points less accurate than OM2 on emoji:size} points more accurate.",
    ),
    "theorems": (
        "Do the theorems hold?",
        "Yes: no bound on mistakes, regret or suboptimality is exceeded in any run, the nearest at "
        "{om2-7/random labels:.0%} of the bound of OM-2's mistakes.",
    ),
}
#: What is said of claims with each verdict.
PLURAL = {"holds": "hold", "holds, smaller": "hold by less than counts", "fails": "fail", "open": "are open"}
THEOREMS = "theorem|corollary|proposition"


class _Judged(dict):
    """Parts of claims by "claim/part", judged when they are asked for."""

    def __missing__(self, name):
        claim, _, part = name.partition("/")
        return judge(claim).named()[part]


def finding(name):
    """The answer to the question of a finding, by the committed results."""
    return with_numbers(FINDINGS[name][1], _Judged())


def counted():
    """How many of the papers' claims hold, theorems apart, and of those beyond the papers."""
    table = read_verdicts(REFERENCE)
    ours = table["source"].str.startswith("beyond")
    theorems = table["source"].str.contains(THEOREMS) & ~ours
    held = table[theorems]["verdict"].isin(HOLDING).sum()
    text = f"Of {(~ours).sum()} claims {theorems.sum()} are theorems, of which {held} hold."
    text += f" Of {(~ours & ~theorems).sum()} empirical ones {_listed(table[~ours & ~theorems])}."
    return f"{text} Of {ours.sum()} beyond the papers {_listed(table[ours])}." if ours.any() else text


def _listed(table):
    numbers = table["verdict"].value_counts()
    return ", ".join(f"{numbers[v]} {PLURAL.get(v, v)}" for v in VERDICTS if v in numbers)


def failed(table):
    """The claims of a table that fail, a line of Markdown for each, with what one learns."""
    table = table[table["verdict"] == "fails"]
    lines = [f"- {{ref}}`{row.id}`: *{row.claim}.* {row.learnt}".rstrip() for row in table.itertuples()]
    return "\n".join(lines or ["None fails in this run."])


def in_readme(readme):
    """A README with the number of claims that hold and the ten sentences between two comments."""
    lines = [textwrap.fill(counted(), 110), ""]
    for name, (question, _) in FINDINGS.items():
        lines.append(textwrap.fill(f"- **{question}** {finding(name)}", 110, subsequent_indent="  "))
    text = "\n".join(lines)
    renewed = f"<!-- findings -->\n{text}\n<!-- end -->"
    return re.sub(r"<!-- findings -->\n.*?\n<!-- end -->", lambda found: renewed, readme, flags=re.DOTALL)
