"""What the chapter's claims are judged by, where the reference has no case of it."""

import numpy as np

from companion import omcl as exp
from companion.omcl.claims import curves_of
from companion.run.claims import Results


def test_lowest_weight_of_the_most_confused():
    confusions = {"cue: a": np.array([[0.7, 0.3, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]])}
    weights = np.array([[1.0, -0.5, 0.0], [0.2, 1.0, 0.1], [0.0, 0.0, 1.0]])
    assert exp.lowest_on_confused(weights, confusions, ["a"]) == 0.5  # the third is never confused


def test_of_two_sets_of_places_the_one_that_was_there_counts(save_results):
    for name in ("HTAD", "IDOL2"):
        results = Results(save_results("thesis-fig-3.1", data={name: "bundled"}), "omcl-6")
        assert list(curves_of(results)) == ["objects", name, "mfeat"]
