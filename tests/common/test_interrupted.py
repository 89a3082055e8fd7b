"""After an interruption anywhere an estimator is as before the call, and continues as if it had not been."""

import copy
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from common.estimators import ESTIMATORS, data, make, outputs
from processes import printed

import cuelearn
from cuelearn.core.storage import pack
from cuelearn.omcl import MarginQuery

STREAMS = sorted(name for name, cls in ESTIMATORS.items() if hasattr(cls, "partial_fit"))
N_MOMENTS = 50
PACKAGE = str(Path(cuelearn.__file__).parent)


class Interrupter:
    """Counts the lines executed in the package, and raises KeyboardInterrupt at one of them."""

    def __init__(self, moment=None):
        self.moment = moment
        self.lines = 0

    def __enter__(self):
        sys.settrace(self._trace)
        return self

    def __exit__(self, kind, error, traceback):
        sys.settrace(None)

    def _trace(self, frame, event, argument):
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            return None
        # Python ignores what is raised in a generator that is closed as its loop ends
        if event == "line" and code.co_name not in ("checked", "restore", "rounds", "under_bar"):
            self.lines += 1
            if self.lines == self.moment:
                raise KeyboardInterrupt
        return self._trace


def content(model):
    """All that a model holds, as text and bytes."""
    plain, arrays = pack(model._state())
    return repr(plain), {name: (array.shape, array.tobytes()) for name, array in arrays.items()}


def interrupted(build, train, n_moments):
    """Models of `build()`, each after an interruption of `train(model)` at a random line."""
    train(build())  # compiles
    model = build()
    with Interrupter() as whole:
        train(model)
    moments = np.random.default_rng(0).integers(1, whole.lines + 1, size=n_moments)
    for moment in np.unique(moments):
        held = build()
        with Interrupter(moment), pytest.raises(KeyboardInterrupt):
            train(held)
        yield held


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_goes_on_as_before(name):
    X, y = data(name)

    def first(model):
        return model.partial_fit(X[:20], y[:20], classes=[0, 1, 2])

    def second(model):
        return model.partial_fit(X[20:], y[20:])

    before = content(first(make(name)))
    after = content(second(first(make(name))))
    for held in interrupted(lambda: first(make(name)), second, N_MOMENTS):
        assert content(held) == before
        assert content(second(held)) == after
    for held in interrupted(lambda: make(name), first, N_MOMENTS // 5):
        assert vars(held).keys() - {"_valid_parameters"} == vars(make(name)).keys()
        assert content(first(held)) == before


@pytest.mark.parametrize(
    "name, n_moments",
    [
        *((name, 10) for name in ("OBSCURE", "LPBeta", "MKTL", "MMS", "OMCL", "MuSVM", "GMMNaming")),
        *(pytest.param(name, N_MOMENTS, marks=pytest.mark.long) for name in sorted(ESTIMATORS)),
    ],
)
def test_a_fitted_model_survives_an_interrupted_fit(name, n_moments):
    X, given = data(name)
    model = make(name).fit(X, given)
    before = content(model)
    predictions = outputs(model, name, X, given)
    other, other_given = data(name, n=45, seed=1)

    def refit(copied):
        return copied.fit(other, other_given)

    for held in interrupted(lambda: copy.deepcopy(model), refit, n_moments):
        assert content(held) == before
        np.testing.assert_equal(outputs(held, name, X, given), predictions)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_answers_before_a_failing_oracle_remain(error):
    X, y = data("OMCL")
    model, twin = (
        make("OMCL", query=MarginQuery(1.0)).partial_fit(X[:20], y[:20], classes=[0, 1, 2]) for _ in range(2)
    )
    asked = []

    def oracle(i):
        asked.append(i)
        if len(asked) == 5:
            raise error("no label")
        return y[20 + i]

    with pytest.raises(error, match="no label"):
        model.partial_fit(X[20:], oracle)
    rest = model.n_seen_
    assert rest == 20 + asked[-1] and model.n_queries_ >= 4
    twin.partial_fit(X[20:], y[20:])
    model.partial_fit(X[rest:], y[rest:])
    assert content(model) == content(twin)


def test_a_callback_that_fails_leaves_the_model_before():
    X, y = data("OMCL")

    def fail(estimator, step):
        raise RuntimeError("full disk")

    for name in ("OMCL", "OKS", "OM2", "OBSCURE"):
        model = make(name).fit(X, y)
        before = content(model)
        model.set_params(callback=fail)
        with pytest.raises(RuntimeError, match="full disk"):
            model.fit(X[:30], y[:30])
        model.set_params(callback=None)
        assert content(model) == before


def test_the_stop_button(tmp_path):
    """A signal of the operating system, at moments of the clock."""
    code = """
        import signal, time
        import numpy as np
        from cuelearn.omcl import ProjectronPlusPlus
        rng = np.random.default_rng(0)
        X = rng.normal(size=(3000, 5))
        y = (X[:, 0] > 0).astype(int)
        model = ProjectronPlusPlus(eta=0.05).partial_fit(X[:100], y[:100], classes=[0, 1])
        start = time.perf_counter()
        model.partial_fit(X, y)
        uninterrupted = time.perf_counter() - start

        def press(number, frame):  # not after the call, before the clock is stopped
            while frame is not None:
                if frame.f_globals["__name__"].startswith("cuelearn"):
                    raise KeyboardInterrupt
                frame = frame.f_back

        signal.signal(signal.SIGALRM, press)
        stopped = 0
        for share in np.linspace(0.05, 0.95, 25):
            seen = model.n_seen_
            signal.setitimer(signal.ITIMER_REAL, share * uninterrupted)
            try:
                model.partial_fit(X, y)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                stopped += 1
                assert model.n_seen_ == seen
            model.predict(X[:5])
        model.partial_fit(X[:5], y[:5])
        print(stopped)
    """
    assert int(printed([sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path)) > 5
