"""UFO-MKL in partitions: the scheme in one process, and on two workers of Dask, one of which may die."""

import os
import signal
import sys

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from mkl_data import EXPLICIT_CUES as CUES
from mkl_data import make_data
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from cuelearn.core.estimator import load
from cuelearn.core.formulas import mean_loss
from cuelearn.kernels import FeatureMap, Linear
from cuelearn.kernels import features as kernel_features
from cuelearn.kernels.features import FeatureBank
from cuelearn.mkl import OM2, UFOMKL
from cuelearn.mkl.optimum import partitions
from cuelearn.mkl.optimum.blocks import BlockProblem
from cuelearn.mkl.optimum.partitions import Consensus, Partition, scaled_bank, solve_partitions
from cuelearn.mkl.optimum.problem import weights_of

N = 240
X, Y = make_data(N)
NEW = make_data(30, seed=1)[0]


def in_parts(K, samples=X, y=Y, cues=CUES, memory=2e9, class_weight=None, loss="multiclass", **options):
    """Problem, scaled bank, partitions."""
    bank = FeatureBank(cues, samples, memory=memory).on()
    parts = np.array_split(np.arange(y.size), K)
    scaled = scaled_bank(bank, [bank.on(samples[part]).second_moments() for part in parts], y.size)
    bank.n_samples = y.max() + 1
    classes = np.arange(bank.n_samples)
    counts = np.bincount(y).astype(np.float64)
    options |= weights_of(class_weight, classes, classes, counts)
    problem = BlockProblem(bank, classes, classes.size, loss=loss, **{"C": 10.0, **options})
    weights = problem.loss_weights / counts
    held = [
        Partition(scaled, samples[part], y[part], weights, y.size, loss=loss, number=k)
        for k, part in enumerate(parts)
    ]
    return problem, scaled, held


def answers(held):
    def ask(message, state_of):
        reports = [part.round(message) for part in held]
        for k, report in enumerate(reports):
            if report is None:
                reports[k] = held[k].round(message._replace(state=state_of(k)))
        return reports

    return ask


def solved(K, tol=0.01, **options):
    problem, scaled, held = in_parts(K, **options)
    return solve_partitions(problem, scaled, K, answers(held), tol=tol)


OPTIONS = {
    "default": {},
    "sparse": {"alpha": 0.05},
    "nothing": {"alpha": 5.0},
    "p": {"p": 1.1, "C": 100.0, "alpha": 0.01},
    "weights, on disk": {"class_weight": {0: 1.0, 1: 3.0, 2: 0.5}, "memory": 0.0},
    "hinge": {"loss": "hinge", "y": (Y > 0).astype(int)},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_optimum_is_that_of_one_machine(options):
    options = dict(options)
    y = options.pop("y", Y)
    wanted = UFOMKL(CUES, random_state=0, tol=1e-3, **options).fit(X, y)
    for K in (1, 7):
        result = solved(K, y=y, **options)
        assert result.converged and result.n_iter < 200
        assert result.dual_gap <= 0.01 * result.objective
        assert result.objective - result.dual_gap <= wanted.objective_ * (1 + 1e-9)
        assert wanted.objective_ - wanted.dual_gap_ <= result.objective * (1 + 1e-9)


def test_rounds_are_those_of_a_plain_twin(monkeypatch):
    """With partitions solved to the end, against cvxpy."""
    monkeypatch.setattr(partitions, "SWEEPS", 3000)
    monkeypatch.setattr(partitions, "LEAST", 1e-9)
    monkeypatch.setattr(partitions, "LOCAL_SHARE", 1e-9)
    n, K, p, C, alpha = 40, 2, 1.5, 2.0, 0.02
    problem, bank, held = in_parts(K, X[:n], Y[:n], p=p, C=C, alpha=alpha)
    Phi = bank.on(X[:n]).features(X[:n]).astype(np.float64)
    consensus = Consensus(problem, bank, K)
    messages = []

    def ask(message, state_of):
        messages.append(message)
        return [part.round(message) for part in held]

    for _ in range(4):
        consensus.round(ask)
    lam = 1.0 / (C * n)
    rho = partitions.RELAXATION
    Z = np.zeros((3, Phi.shape[1]))
    centers = [Z, Z]
    for _, candidate, step, *_ in messages:
        W = cp.Variable(Z.shape)
        plain = W @ np.diag(1.0 / np.sqrt(bank.metric))
        cues = zip(bank.starts, bank.starts[1:], strict=False)
        norms = cp.hstack([cp.norm(plain[:, a:b], "fro") for a, b in cues])
        value = lam / 2 * cp.square(cp.pnorm(norms, p)) + alpha * cp.sum(norms)
        value += cp.sum_squares(W - Z - step / K * sum(centers)) * K / (2 * step)
        cp.Problem(cp.Minimize(value)).solve(solver=cp.CLARABEL)
        assert_allclose(candidate, W.value, atol=2e-3 * np.abs(candidate).max() + 1e-5)
        moved = []
        for part, center in zip(np.array_split(np.arange(n), K), centers, strict=True):
            B = cp.Variable((part.size, 3))
            theta = B.T @ Phi[part] / n
            own = np.eye(3)[Y[part]]
            value = cp.sum(cp.multiply(B, own)) / n - cp.sum(cp.multiply(theta, 2 * candidate - Z))
            value -= step / 2 * cp.sum_squares(theta - center)
            cp.Problem(cp.Maximize(value), [B <= own, cp.sum(B, axis=1) == 0]).solve(solver=cp.CLARABEL)
            moved.append(B.value.T @ Phi[part] / n)
        Z = Z + rho * (candidate - Z)
        centers = [c + rho * (theta - c) for c, theta in zip(centers, moved, strict=True)]


def test_the_point_and_its_certificate_are_those_of_the_definitions():
    problem, bank, held = in_parts(3, alpha=0.01)
    result = solve_partitions(problem, bank, 3, answers(held))
    plain = FeatureBank(CUES, X)
    blocks = np.ascontiguousarray(result.dual_coef.T)
    scores = plain.scores(X, blocks, result.kernel_weights)
    norms = result.kernel_weights * np.sqrt(problem.norms_sq_of(blocks))
    assert_allclose(problem.regularizer(norms) + mean_loss(scores, Y), result.objective, rtol=1e-5)
    B = np.concatenate([part.B for part in held])
    assert np.abs(B.sum(axis=1)).max() < 1e-12 and B.max() <= 1.0
    assert np.all(np.delete(B.ravel(), np.arange(N) * 3 + Y) <= 0.0)
    theta = B.T @ plain.features(X) / N
    bound = problem.dual_value(B[np.arange(N), Y].sum() / N, np.sqrt(problem.norms_sq_of(theta)))
    assert bound <= result.objective - result.dual_gap + 1e-6 * result.objective


def test_a_lost_partition_costs_no_more_than_its_round():
    wanted = solved(4)
    problem, scaled, held = in_parts(4)
    fresh = in_parts(4)[2]

    def lose(consensus, number):
        if number == 5:
            held[2] = fresh[2]

    with pytest.warns(ConvergenceWarning, match="relative duality gap is .* after 2 rounds"):
        solve_partitions(problem, scaled, 4, answers(in_parts(4)[2]), max_rounds=2)
    result = solve_partitions(problem, scaled, 4, answers(held), callback=lose)
    assert result.converged and result.n_iter <= wanted.n_iter + 10
    sent = result.history["bytes"].diff()
    assert_allclose(sent[5] - sent[4], 2 * 8 * 3 * scaled.n_features)


def test_sparse_and_wide_cues_are_scaled_by_feature(monkeypatch):
    table = X * (np.abs(X) > 0.7)
    cues = [("shape", FeatureMap(), slice(0, 3)), ("line", Linear(), slice(3, 6))]
    result = solved(3, samples=sparse.csr_array(table), cues=cues)
    monkeypatch.setattr(kernel_features, "WIDEST", 1)
    wanted = solved(3, samples=table, cues=cues)
    assert_allclose(result.dual_coef, wanted.dual_coef, rtol=1e-3, atol=1e-5)


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def arrays():
    da = pytest.importorskip("dask.array")
    return da.from_array(X, chunks=(70, 4)), da.from_array(Y, chunks=100)


def test_arrays_of_dask(client, tmp_path):
    model = UFOMKL(CUES, random_state=0).fit(*arrays())
    wanted = UFOMKL(CUES, random_state=0).fit(X, Y)
    assert model.converged_ and model.dual_gap_ <= 0.01 * model.objective_
    assert_allclose(model.objective_, wanted.objective_, rtol=0.01)
    assert np.mean(model.predict(X) == wanted.predict(X)) > 0.97
    assert model.n_seen_ == N and model.n_features_in_ == 6 and model.transform(NEW).shape == (30, 18)
    assert model.history_["bytes"].iloc[0] == 4 * 2 * 4 * 3 * 18
    model.save(tmp_path / "model.npz")
    assert_array_equal(load(tmp_path / "model.npz").decision_function(NEW), model.decision_function(NEW))
    assert_array_equal(model.fit(X, Y).decision_function(NEW), wanted.decision_function(NEW))


@pytest.mark.long
def test_bits_do_not_depend_on_the_worker(client):
    scores = []
    for worker in client.scheduler_info()["workers"]:
        held = [client.persist(part, workers=[worker]) for part in arrays()]
        scores.append(UFOMKL(CUES, random_state=0).fit(*held).decision_function(NEW))
    assert_array_equal(*scores)


@pytest.mark.long
def test_frames_of_dask(client):
    dd = pytest.importorskip("dask.dataframe")
    table = pd.DataFrame(X, columns=list("abcdef")).assign(label=np.array(["x", "y", "z"])[Y])
    table = table.sort_values("label", ignore_index=True).assign(row=np.arange(N))
    frame = dd.from_pandas(table, npartitions=5)
    # unknown lengths, one partition empty, most of one class
    frame = frame[frame["row"] > 60].drop(columns="row")
    model = UFOMKL(CUES, random_state=0).fit(frame, "label")
    rest = table[table["row"] > 60]
    features = rest.drop(columns=["label", "row"])
    wanted = UFOMKL(CUES, random_state=0).fit(features, rest["label"])
    assert_allclose(model.objective_, wanted.objective_, rtol=0.01)
    assert model.n_seen_ == len(rest) and model.predict(features)[0] in "xyz"
    assert list(model.feature_names_in_) == list("abcdef")


def test_a_worker_that_dies_costs_a_round(client):
    wanted = UFOMKL(CUES, random_state=0).fit(*arrays())
    killed = []

    def kill(model, step):
        if step == 3:
            killed.append(min(client.run(os.getpid).values()))
            os.kill(killed[0], signal.SIGKILL)

    model = UFOMKL(CUES, random_state=0, callback=kill).fit(*arrays())
    assert killed and model.converged_ and model.n_iter_ <= wanted.n_iter_ + 15
    assert_allclose(model.objective_, wanted.objective_, rtol=0.01)


def test_errors_are_one_message(client):
    samples, labels = arrays()
    unknown = samples[samples[:, 0] > 0]
    for message, x, y, options in (
        ("y must be labels of Dask, or a column", samples, None, {}),
        ("all a FeatureMap, and a hinge loss", samples, labels, {"loss": "logistic"}),
        ("sample_weight must be None", samples, labels, {"sample_weight": np.ones(N)}),
        ("y must have the 4 partitions of X, got 2", samples, labels[:200], {}),
        ("y must have the 4 partitions of X, got 3", unknown, labels, {}),
        ("partition .: y must have shape", unknown, labels.rechunk(70), {}),
        ("partition 1: cue 'shape': column 0 of X", samples.map_blocks(spoil, dtype=float), labels, {}),
        ("at least 2 classes", samples, labels * 0, {}),
        ("must hold samples", samples[:0], labels[:0], {}),
    ):
        weights = options.pop("sample_weight", None)
        with pytest.raises(ValueError, match=message):
            UFOMKL(CUES, **options).fit(x, y, weights)


def spoil(block, block_info=None):
    if block_info and block_info[0]["chunk-location"] == (1, 0):
        return np.full_like(block, np.nan)
    return block


def test_without_distributed_the_extra_is_named(monkeypatch):
    class Collection:
        __dask_graph__ = to_delayed = None

    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setattr("cuelearn.expect.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"distributed is not installed: .*\[dask\]"):
        UFOMKL(CUES).fit(Collection(), Y)


def test_incremental_of_dask_ml_is_one_pass():
    wrappers = pytest.importorskip("dask_ml.wrappers")
    samples, labels = arrays()
    samples = samples.rechunk((70, 6))
    model = wrappers.Incremental(OM2(CUES), shuffle_blocks=False)
    model.fit(samples, labels.rechunk(70), classes=[0, 1, 2])
    wanted = OM2(CUES)
    for part in np.split(np.arange(N), [70, 140, 210]):
        wanted.partial_fit(X[part], Y[part], classes=[0, 1, 2])
    assert_array_equal(model.estimator_.decision_function(NEW), wanted.decision_function(NEW))
