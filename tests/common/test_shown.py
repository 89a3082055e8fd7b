"""What a fit shows, and its summary and pictures afterwards."""

import inspect

import matplotlib.pyplot as plt
import pytest
import tqdm.auto
from estimators import ESTIMATORS, OF_BAGS, data, make

from cuelearn.mkl import ConvergenceDisplay, KernelWeightsDisplay

PARAMETERS = {name: inspect.signature(cls).parameters for name, cls in ESTIMATORS.items()}
WITH_KERNELS = [name for name in ESTIMATORS if "kernels" in PARAMETERS[name] or name == "SelectedSVM"]


def fit_on_kernels(name, fitted):
    if name not in OF_BAGS:
        return fitted(name)[0]
    X, given = data(name)
    return make(name, kernels=make("OBSCURE").kernels).fit(X, given)


@pytest.mark.parametrize("name", WITH_KERNELS)
def test_every_model_of_kernels_has_a_summary(name, fitted):
    model = fit_on_kernels(name, fitted)
    table = model.summary()
    wanted = ["name", "weight", "share", "norm", "support"]
    assert list(table) == [*["class"] * ("class" in table), *wanted]
    assert set(table.name) == {"shape", "colour", "texture"} and len(table) in (3, 9)
    groups = table.groupby("class") if "class" in table else [(0, table)]
    for _, rows in groups:
        assert rows.share.sum() == pytest.approx(float(rows.weight.any()))  # PriorFeatures has priors only
    assert (table.norm.isna() | (table.norm >= 0.0)).all() and table.support.max() > 0
    assert KernelWeightsDisplay.from_estimator(model).ax_.get_xlabel() == "share of the kernel weights"
    plt.close("all")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_history_can_be_drawn(name, fitted):
    model, _, _ = fitted(name)
    if not hasattr(model, "history_"):
        with pytest.raises(ValueError, match=f"must have history_, got {name}"):
            ConvergenceDisplay.from_estimator(model)
        return
    display = ConvergenceDisplay.from_estimator(model)
    drawn = {"MLMKLSA": "change"}.get(name, "objective" if "objective" in model.history_ else "online_error")
    assert display.ax_.get_ylabel() == ConvergenceDisplay.Y[drawn] and display.ax_.lines
    with pytest.raises(ValueError, match="x, a column of history_, must be .*'seconds'"):
        ConvergenceDisplay.from_estimator(model, x="hours")
    plt.close("all")


@pytest.fixture
def bars(monkeypatch):
    shown = []

    class Bar(tqdm.auto.tqdm):
        def __init__(self, *args, disable, **options):
            if not disable:
                shown.append(options["desc"])
            super().__init__(*args, disable=disable, **options)

    monkeypatch.setattr(tqdm.auto, "tqdm", Bar)
    return shown


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_is_silent_unless_asked(name, bars, capfd):
    """Then it shows a bar for each stage, and none for inner fits."""
    make(name).fit(*data(name, 24))
    assert bars == [] and capfd.readouterr() == ("", "")
    if "verbose" in PARAMETERS[name]:
        make(name, verbose=True).fit(*data(name, 24))
        assert 1 <= len(bars) <= 3 and len(set(bars)) == len(bars)
