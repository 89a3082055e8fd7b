"""Data frames of any library, and columns of them that no cue uses."""

import numpy as np
import pandas as pd
import pytest
from estimators import CUES, LEARNERS, OF_SAMPLES, data, make
from sklearn.compose import make_column_selector

from cuelearn.oks import OKS

NAMES = list("abcdef")
OTHERS = "Flat KernelPerceptron OnlineGradientDescent PassiveAggressive Projectron ProjectronPlusPlus".split()
OF_CUES = [name for name in OF_SAMPLES if name not in (*OTHERS, "PriorFeatures")]


class Frame:
    """A data frame of another library: columns by name, an array where one is made of it."""

    def __init__(self, columns):
        self._values, self.columns = columns, list(columns)
        self.shape = len(next(iter(columns.values()))), len(columns)

    def __getitem__(self, name):
        return self._values[name]

    def __len__(self):
        return self.shape[0]

    def __array__(self, dtype=None, copy=None):
        return np.array([self._values[name] for name in self.columns]).T.astype(dtype or float)


def of_cues(name, columns):
    if name == "SelectedSVM":
        cues = [(cue, kernel, c) for (cue, kernel, _), c in zip(CUES, columns, strict=True)]
        return make(name, selector=OKS(cues, one_vs_rest=True, random_state=0), C=1.0)
    key, triples = ("cues", LEARNERS) if name in ("OMCL", "Vote") else ("kernels", CUES)
    return make(name, **{key: [(cue, k, c) for (cue, k, _), c in zip(triples, columns, strict=True)]})


def spoiled(X):
    """X with a column of words in front and one of NaN at the end, as an array and as a data frame."""
    words, nothing = np.array(["red", "blue"] * len(X), dtype=object)[: len(X)], np.full(len(X), np.nan)
    array = np.column_stack([words, X.astype(object), nothing])
    frame = pd.DataFrame(X, columns=NAMES)
    frame.insert(0, "words", words)
    return array, frame.assign(nothing=nothing)


@pytest.mark.parametrize("name", OF_CUES)
def test_columns_that_no_cue_uses_do_not_matter(name):
    X, y = data(name)
    wanted = of_cues(name, [[0, 1], [2, 3], [4, 5]]).fit(X, y).decision_function(X)
    array, frame = spoiled(X)
    other = Frame({column: X[:, i] for i, column in enumerate(NAMES)})
    named = [make_column_selector("^[ab]$"), lambda given: ["c", "d"], ["e", "f"]]
    mixed = [["a", "b"], slice("c", "d"), [4, 5]]
    numbers = [[1, 2], [3, 4], [5, 6]]
    for given, columns in ((array, numbers), (frame, named), (other, named), (other, mixed)):
        model = of_cues(name, columns).fit(given, y)
        np.testing.assert_allclose(model.decision_function(given), wanted, rtol=1e-9, atol=1e-9)
        assert model.n_features_in_ == given.shape[1]
    bad = array.copy()
    bad[:, 3] = "word"
    words = (array, bad, numbers, "3"), (frame, frame.assign(c="word"), named, "'c'")
    for good, bad, columns, label in words:
        message = f"cue 'colour': column {label} of X must hold real numbers"
        model = of_cues(name, columns).fit(good, y)
        if name not in ("BestKernelSVM", "LPBeta", "SelectedSVM"):  # which ask for some of the kernels only
            with pytest.raises(ValueError, match=message):
                model.predict(bad)
        with pytest.raises(ValueError, match=message):
            model.fit(bad, y)
