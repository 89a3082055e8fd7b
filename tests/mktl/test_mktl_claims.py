"""What follows for the chapter's claims from tables whose truth is known."""

import itertools

import numpy as np
import pandas as pd
import pytest

from companion.mktl import BINARY
from companion.run.claims import judge

TARGETS = [f"target {k}" for k in range(8)]


def binary(accuracy, noise=0.002, draws=6):
    """Figure 6.2: `accuracy` of (method, number, number of the target)."""
    rng, rows = np.random.default_rng(0), []
    for (k, target), s, n, m in itertools.product(enumerate(TARGETS), range(draws), (1, 3, 5, 15), BINARY):
        value = accuracy(m, n, k) + noise * rng.normal()
        rows.append(
            {"target": target, "seed": draws * k + s, "n_positive": n, "method": m, "accuracy": value}
            | {"C": 10.0 if m == "MKTL weighted" and n == 1 else 0.1}
        )
    return pd.DataFrame(rows)


def test_not_clearly_worse_has_to_be_shown(save_results):

    def level(method, n, k):
        return 0.6

    found = judge("mktl-2", save_results("thesis-fig-6.2-mean", binary(level)))
    assert found.verdict == "holds" and len(found.parts) == 2 * (4 + 1)
    assert not any(
        "MKTL weighted" in says and "PriorFeatures weighted" not in says for says, _ in found.parts
    )
    found = judge("mktl-2", save_results("thesis-fig-6.2-mean", binary(level, noise=0.2)))
    assert found.verdict == "undecided"

    def one_class(method, n, k):
        return 0.6 - 0.06 * (method == "MKTL" and k == 2)

    found = judge("mktl-2", save_results("thesis-fig-6.2-mean", binary(one_class)))
    parts = {what: part for what, part in found.parts if "every class" in what}
    plain, weighted = parts.values()
    assert "shown in 7 of 8" in list(parts)[0] and "shown in 8 of 8" in list(parts)[1]
    assert plain.verdict == "fails" and plain.number == pytest.approx(-0.06, abs=0.005)
    assert weighted.verdict == "holds"
    assert plain.unit == "draw of a target" and found.verdict == "mixed"
    assert "of 8 classes" in found.text and "75% of weighted MKTL's runs" in found.text

    def one_number(method, n, k):
        return 0.6 - 0.02 * (method == "MKTL weighted" and n == 3)

    found = judge("mktl-2", save_results("thesis-fig-6.2-mean", binary(one_number)))
    assert found.verdict == "mixed" and found.number == pytest.approx(-0.02, abs=0.002)
