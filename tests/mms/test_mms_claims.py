"""What decides the claims of chapter 5, on tables whose truth is known."""

import pandas as pd
import pytest

from companion.mms import claims


@pytest.mark.parametrize(
    "objective, round",
    [([5, 2, 1], 3), ([5, 1.005, 1], 2), ([1], 1), ([5, 1, 1.2, 1], 4), ([5, 1.2, 1, 1.009], 3), ([1, 1], 1)],
)
def test_the_round_from_which_on_little_happens(objective, round):
    assert claims.settled(pd.Series(objective, dtype=float)) == round
