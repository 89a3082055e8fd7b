"""What tests of drawings share."""

import matplotlib.pyplot as plt
import pytest

from companion.run.figures import use_style


@pytest.fixture
def house_style():
    """The style of the book's figures, and no figure left open."""
    with plt.rc_context():
        use_style()
        yield
    plt.close("all")
