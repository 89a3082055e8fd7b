"""What follows for the chapter's claims from tables whose truth is known."""

import itertools

import numpy as np
import pandas as pd
import pytest

from companion.mktl import BINARY
from companion.run.claims import judge, learnt

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
    assert found.verdict == "holds" and len(found.parts) == 2 * 2
    assert not any(
        "MKTL weighted" in part.says and "PriorFeatures weighted" not in part.says for part in found.parts
    )
    found = judge("mktl-2", save_results("thesis-fig-6.2-mean", binary(level, noise=0.2)))
    assert found.verdict == "open"

    def one_class(method, n, k):
        return 0.6 - 0.06 * (method == "MKTL" and k == 2)

    found = judge("mktl-2", save_results("thesis-fig-6.2-mean", binary(one_class)))
    plain, weighted = (part for part in found.parts if "every class" in part.says)
    assert "7 of 8 hold" in plain.text and "8 of 8 hold" in weighted.text
    assert plain.verdict == "fails" and plain.number == pytest.approx(-0.06, abs=0.005)
    assert weighted.verdict == "holds"
    assert plain.unit == "draw of a target" and found.verdict == "fails"
    assert "of 8 classes" in found.text and "75% of weighted MKTL's runs" in found.text

    def one_number(method, n, k):
        return 0.6 - 0.02 * (method == "MKTL weighted" and n == 3)

    found = judge("mktl-2", save_results("thesis-fig-6.2-mean", binary(one_number)))
    weighted = next(part for part in found.parts if part.says.startswith("MKTL weighted at most a point"))
    assert found.verdict == "holds" and weighted.number == pytest.approx(-0.005, abs=0.002)


def test_like_with_like_decides(save_results):
    """Weighted MKTL and Prior-Features against Multi-KT, at 15 positives and more."""

    def behind(method, n, k):
        return 0.6 + (0.02 if "weighted" in method else -0.05 if method != "MultiKT" else 0.0) * (n >= 15)

    for claim in ("mktl-8", "mktl-9"):
        found = judge(claim, save_results("thesis-fig-6.2-mean", binary(behind)))
        assert found.verdict == "holds" and "weighted" in found.says
        assert found.number == pytest.approx(0.02, abs=0.002)
        assert "2.0 points ahead of Multi-KT" in learnt(found)
