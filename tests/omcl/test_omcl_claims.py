"""What the chapter's claims are judged by: made-up results in, the verdicts that must follow out."""

import numpy as np

from companion import omcl as exp


def test_lowest_weight_of_the_most_confused():
    confusions = {"cue: a": np.array([[0.7, 0.3, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]])}
    weights = np.array([[1.0, -0.5, 0.0], [0.2, 1.0, 0.1], [0.0, 0.0, 1.0]])
    assert exp.lowest_on_confused(weights, confusions, ["a"]) == 0.5  # the third is never confused
