"""What tests of drawings share."""

import matplotlib.pyplot as plt
import pytest

from companion.run.figures import use_style


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    plt.close("all")


@pytest.fixture
def house_style():
    """The style of the book's figures."""
    with plt.rc_context():
        use_style()
        yield
