"""Explicit features: the kernel of the features themselves, in a bank and in blocks."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.kernel_approximation import AdditiveChi2Sampler, Nystroem, PolynomialCountSketch, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cuelearn.core.estimator import load
from cuelearn.core.storage import unpack
from cuelearn.kernels import RBF, FeatureMap, KernelBank, Linear, kernel_values
from cuelearn.kernels import features as module
from cuelearn.kernels.features import Batches, FeatureBank, FeatureRows, are_batches, has_only_features
from cuelearn.mkl import UFOMKL, AverageKernelSVM
from cuelearn.oks import OKS
from cuelearn.omcl import KernelPerceptron

X = np.random.default_rng(0).random((40, 6))
Y = np.arange(40) % 3
TRANSFORMERS = [
    RBFSampler(n_components=30, random_state=0),
    Nystroem(n_components=10, random_state=0),
    AdditiveChi2Sampler(),
    PolynomialCountSketch(random_state=0),
    make_pipeline(StandardScaler(), RBFSampler(random_state=0)),
    "passthrough",
    None,
]
TEXT = HashingVectorizer(n_features=64, alternate_sign=False)


def transformed(transformer, values):
    if transformer in ("passthrough", None):
        return values
    return clone(transformer).fit(values).transform(values)


def unit(features):
    return features / np.linalg.norm(features, axis=1, keepdims=True)


def texts(n=30):
    rng = np.random.default_rng(1)
    y = np.arange(n) % 2
    words = [" ".join(f"w{k}" for k in rng.integers(10 * label, 10 * label + 15, 8)) for label in y]
    return pd.DataFrame({"text": words, "a": rng.normal(size=n), "b": rng.normal(size=n)}), y


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=str)
@pytest.mark.parametrize("normalize", [True, False])
def test_a_feature_map_is_the_kernel_of_its_features(transformer, normalize):
    cues = [("map", FeatureMap(transformer), [1, 2, 4]), ("near", RBF(gamma=1.0), slice(0, 2))]
    features = transformed(transformer, X[:, [1, 2, 4]])
    if normalize:
        features = unit(features)
    for memory in (1e9, 0.0):
        bank = KernelBank(cues, X, normalize=normalize, memory=memory, dtype=np.float64)
        assert_allclose(bank.rows([3])[0], features[[3]] @ features.T, rtol=1e-9, atol=1e-12)
        cross = np.concatenate([block for _, block in bank.cross(X[:4]).blocks()], axis=1)
        assert_allclose(cross[0], features[:4] @ features.T, rtol=1e-9, atol=1e-12)


def test_in_blocks_features_are_those_of_the_kernel():
    cues = [("map", FeatureMap(TRANSFORMERS[0]), slice(0, 4)), ("line", Linear(), [4, 5])]
    bank = FeatureBank(cues, X)
    features = bank.features(X)
    stack = KernelBank(cues, X, dtype=np.float64).stack
    for f, (first, end) in enumerate(zip(bank.starts, bank.starts[1:], strict=False)):
        assert_allclose(features[:, first:end] @ features[:, first:end].T, stack[f], atol=1e-6)


def test_the_transformer_is_copied_unless_it_is_fitted():
    given = RBFSampler(random_state=0)
    bank = KernelBank([("map", FeatureMap(given), slice(None))], X)
    assert not hasattr(given, "random_weights_")
    own = bank.kernels_[0].transformer
    again = KernelBank(bank.triples, X[:9])
    assert again.kernels_[0].transformer is own
    assert_allclose(again.stack, bank.restrict(np.arange(9)).stack, rtol=1e-5)


def test_texts_are_one_column_of_a_frame():
    frame, y = texts()
    words = TEXT.transform(frame["text"]).toarray()
    cues = [("text", FeatureMap(TEXT), "text"), ("numbers", RBF(), ["a", "b"])]
    stack = KernelBank(cues, frame, dtype=np.float64).stack
    assert_allclose(stack[0], unit(words) @ unit(words).T, atol=1e-12)
    mixed = UFOMKL(cues, random_state=0).fit(frame, y)
    assert mixed.score(frame, y) == 1.0 and mixed.support_.size
    only = UFOMKL(cues[:1], random_state=0).fit(frame, y)
    assert only.score(frame, y) == 1.0 and only.blocks_[0].shape == (64, 2)
    with pytest.raises(ValueError, match="cue 'text': texts need a DataFrame"):
        UFOMKL([("text", FeatureMap(TEXT), 0)]).fit(frame.to_numpy(), y)


@pytest.mark.parametrize("transformer", [*TRANSFORMERS, TEXT], ids=str)
def test_transformers_are_saved(transformer, tmp_path):
    frame, y = texts()
    columns = "text" if transformer is TEXT else ["a", "b"]
    if isinstance(transformer, AdditiveChi2Sampler):
        frame[columns] = frame[columns].abs()
    model = UFOMKL([("map", FeatureMap(transformer), columns)], tol=None, n_epochs=2).fit(frame, y)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert_array_equal(again.decision_function(frame), model.decision_function(frame))


def test_a_file_names_no_other_class_of_scikit_learn():
    for kind in ("sklearn.svm:SVC", "sklearn.base:BaseEstimator", "sklearn.utils:Bunch", "sklearn:clone"):
        with pytest.raises(ValueError, match="is not a class of this package that is saved"):
            unpack({"__kind__": kind, "state": {}}, {})


def test_other_learners_take_it_as_a_kernel():
    kernel = FeatureMap(clone(TRANSFORMERS[0]).fit(X))
    wanted = kernel.transform(X) @ kernel.transform(X).T
    assert_allclose(kernel_values(kernel, X, X), wanted)
    learner = KernelPerceptron(FeatureMap(TRANSFORMERS[0])).fit(X, Y)
    plain = KernelPerceptron(Linear()).fit(transformed(TRANSFORMERS[0], X), Y)
    assert_allclose(
        learner.decision_function(X), plain.decision_function(transformed(TRANSFORMERS[0], X)), atol=1e-6
    )
    for cls in (AverageKernelSVM, OKS):
        model = cls([("map", kernel, slice(None)), ("near", RBF(), slice(None))])
        model.set_params(**({"one_vs_rest": True, "random_state": 0} if cls is OKS else {}))
        assert model.fit(X, Y).predict(X).shape == Y.shape


def test_parameters_and_copies():
    model = UFOMKL([("map", FeatureMap(RBFSampler(gamma=0.5)), [0, 1])])
    assert model.get_params()["kernels__map__transformer"].gamma == 0.5
    model.set_params(kernels__map__transformer=RBFSampler(gamma=2.0))
    assert clone(model).kernels[0][1].transformer.gamma == 2.0


@pytest.mark.parametrize("wrong", ["linear", RBFSampler, 3])
def test_a_wrong_transformer_is_refused(wrong):
    with pytest.raises(TypeError, match="FeatureMap: transformer must be a transformer of scikit-learn"):
        FeatureMap(wrong)


def test_features_must_be_finite():
    class Broken(StandardScaler):
        def transform(self, X):
            return super().transform(X) * np.nan

    with pytest.raises(ValueError, match="cue 'map': features must be finite"):
        KernelBank([("map", FeatureMap(Broken()), slice(None))], X)


def test_which_models_are_explicit():
    feature = ("map", FeatureMap(), [0])
    line = ("line", Linear(), [1])
    assert has_only_features([feature]) and has_only_features([feature, line])
    for kernels in (None, "precomputed", [line], [feature, ("near", RBF(), [1])]):
        assert not has_only_features(kernels)


def plain_rows(form):
    """Features of two cues, of 3 and 4 columns, some zero, and their rows."""
    features = np.random.default_rng(2).normal(size=(8, 7)).astype(np.float32)
    features[np.random.default_rng(3).random((8, 7)) < 0.3] = 0.0
    rows = FeatureRows.of(form(features), np.array([0, 3, 7]))
    return features.astype(np.float64), rows._replace(place=np.array([5, 0, 7]))


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_compiled_loops_and_their_twins(form):
    features, rows = plain_rows(form)
    chosen = features[[5, 0, 7]]
    rng = np.random.default_rng(4)
    blocks, coef, weights = rng.normal(size=(2, 7)), rng.normal(size=(3, 2)), np.array([0.5, 2.0])
    scaled = chosen * np.repeat(weights, [3, 4])
    close = {"rtol": 1e-6, "atol": 1e-6}
    assert_allclose(module.score_rows(rows, weights, blocks), scaled @ blocks.T, **close)
    assert_allclose(module.block_product(rows, 7, 1, blocks[0]), features[7, 3:] @ blocks[0, 3:], **close)
    lengths = np.stack([(chosen[:, :3] ** 2).sum(axis=1), (chosen[:, 3:] ** 2).sum(axis=1)])
    assert_allclose(module.own_products(rows), lengths, **close)
    moved = blocks.copy()
    module.add_rows(rows, coef, moved)
    assert_allclose(moved, blocks + coef.T @ chosen, **close)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_features_in_memory_are_those_of_each_pass(form, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 7)
    monkeypatch.setattr(module, "TASK_ROWS", 3)
    bank = FeatureBank([("map", FeatureMap(), slice(0, 4)), ("line", Linear(), [4, 5])], form(X))
    order = np.random.default_rng(0).permutation(40)
    blocks = np.random.default_rng(1).normal(size=(2, 6))

    def visited():
        scores = np.empty((40, 2))
        seen = []
        for samples, visits, rows in bank.chunks(order):
            scores[samples] = module.score_rows(rows, np.ones(2), blocks)
            seen.extend(samples[visits])
        return scores, seen

    computed, seen = visited()
    bank.hold()
    held, again = visited()
    assert bank.held is not None and seen == again == order.tolist()
    assert_allclose(held, computed, rtol=1e-6)
    assert_allclose(bank.on().scores(form(X), blocks, np.ones(2)), computed, rtol=1e-6)
    small = FeatureBank(bank.triples, form(X), memory=100.0)
    small.hold()
    assert small.held is None and isinstance(small.zeros(2), np.memmap) and not small.zeros(2).any()


def test_batches():
    pairs = [(X[:10], Y[:10]), (X[10:13], Y[10:13]), (X[13:], Y[13:])]
    for source in (pairs, lambda: iter(pairs), iter(pairs)):
        assert are_batches(source)
        batches = Batches(source)
        assert batches.shape == (40, 6)
        assert_array_equal(batches.labels, Y)
        for _ in range(2):
            parts = list(batches.parts())
            assert [first for first, _ in parts] == [0, 10, 13]
            assert_array_equal(np.concatenate([part for _, part in parts]), X)
    for source in (X, X.tolist(), sparse.csr_array(X), pd.DataFrame(X), [X, X]):
        assert not are_batches(source)
    bank = FeatureBank([("map", FeatureMap(), slice(None))], batches)
    order = bank.arranged(np.random.default_rng(0).permutation(40))
    assert_array_equal(np.concatenate([s[v] for s, v, _ in bank.chunks(order)]), order)
    for changed in ([(X, Y[::-1])], pairs[:2]):
        batches._folder, batches._source = None, changed
        with pytest.raises(ValueError, match="the same batches whenever it is read"):
            list(batches.parts())
    with pytest.raises(ValueError, match="X must hold at least one batch"):
        Batches(iter([]))
    with pytest.raises(ValueError, match=r"X must hold pairs \(X, y\)"):
        Batches(iter([X]))
    with pytest.raises(ValueError, match="y of a batch must have shape"):
        Batches([(X, Y[:3])])
