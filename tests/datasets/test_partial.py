"""USPS in all its forms, Lost and MSRCv2: from small files of their layout, and from the real ones where they are."""

import base64
import bz2
import os
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from sklearn.datasets import dump_svmlight_file

from cuelearn import datasets
from cuelearn.datasets import DataFileError
from cuelearn.datasets._hdf5 import read_hdf5
from cuelearn.datasets.partial import load_lost, load_msrcv2, load_usps

REAL = Path(os.environ.get("CUELEARN_DATA", "/nowhere"))

# Written by h5py in the oldest format: train/data float32 chunked (2, 200), shuffled and deflated; train/target int32 chunked and deflated;
# test/data big-endian float64 contiguous; test/target uint8 chunked. The rows of all data are arange(1280) % 8 / 8, 256 a row.
SMALL_H5 = zlib.decompress(
    base64.b85decode(
        b"c-rloPe>F|9LIm}jq6UDG1h`>3T|MmbW{&ZvALGo9;~D~M1<^;yKNv5x|wy!Q`jN$D1oPlymqrrb!v}67o`qD9V|Ll1VT15@6GJan;i}9pZWcO{Pw;1{eCO&"
        b"{d_a?eb2k;zJZ3i{dHua>r_JqRk9`-I__;d*E7;GX{V)~=T1MfuSI2lqs*`RojcRtZ+WjNIN!4z5>_X$6G`{?4q5iRY&-Q-;$FYvSoX?Q%jU+5m35ig<o5>E"
        b"Z(0-WLg?q}Hz5nxz*M4sE9z-F<n<fL7PEF8XU8t*id(PWv!_n?G2(9BeQWow*Rg{#f84vi#x$>=TJJjzMzvxrnA7eMmWvLJyf;FBJ8FMyjJ28fSbK!2NvEdU"
        b"(k*0;ymg&xB4Irx>^76@8@I1B8ZTVW=SOoghm~IRkL2>B*<!h0mldXQZEBa3!dx!RAL)|V(s(#^<<v_@czu7T{uWxW7F1&0H<&pk>V2bqgSdr#!gebCC8hmV"
        b"`pG|Y;sN>gM1+kiermq1h_|i!)nG~i00000ehZVsmom}N!%SqkwjmsiwC)}F(0lC7($bRlq9d6o&|uTkdp@7^<8VvrM%$CmF>PXE;%h3^nOvl2tJ9Cd%|zcn"
        b"c75?h+&P*YoSK`POB%ax-kK#^nZ5Y3O4<|br0|*<yw4vH&A)D5HQn-4_Ipmv<nX%@>*EmBg&F1!0002kEPg#w=zWZN^~ka{Y*#}kSAVqd>y9y@JGyx{(ieHD"
        b"RdiWWP=)+c_@m<?bTsbM(dq;IFGwBBxvuJBxd5FD`W65H0I;2(pQ@khQ1`<(I@eJW+rT*2u|o+u*O7^P{eJbi4rV^NuXi4SmmRCN-SY?sdgLB{in{BmdriJD"
        b"xbFpABy^wmnQ@4!mi**jod@+i!a{s~f9IDs4x@&v(eqr|SJEy@yDaT{X;-BEgm}aw9`T4rJmL|Lc*G+f@rXw};<rn@Usv+(D?2)pW8HmaH$?a9N1CD^aUMHT"
        b"PEm0hZ04WTLBzhYU;hpIKZ<Js`^Gr-1^@s6{J;DFzaHWZ"
    )
)


def small_images():
    return (np.arange(5 * 256) % 8 / 8).reshape(5, 256)


# --- USPS -------------------------------------------------------------------------------------------------------------------


def test_the_hdf5_reader():
    held = read_hdf5(SMALL_H5)
    assert sorted(held) == ["test/data", "test/target", "train/data", "train/target"]
    assert {name: array.dtype.str for name, array in held.items()} == {
        "train/data": "<f4",
        "train/target": "<i4",
        "test/data": ">f8",
        "test/target": "|u1",
    }
    assert np.array_equal(np.vstack([held["train/data"], held["test/data"]]), small_images())
    assert held["train/target"].tolist() == [3, 0, 9] and held["test/target"].tolist() == [7, 1]


def test_the_hdf5_reader_refuses_what_is_damaged_or_unknown():
    for content in (b"", b"no file", SMALL_H5[:60], SMALL_H5[:8] + b"\2" + SMALL_H5[9:]):
        with pytest.raises(ValueError, match="HDF5"):
            read_hdf5(content)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(400):  # never another kind of error, never a hang
        content = bytearray(SMALL_H5[: rng.integers(1, len(SMALL_H5))] if rng.random() < 0.3 else SMALL_H5)
        for place in rng.integers(0, len(content), 4):
            content[place] = rng.integers(256)
        try:
            read_hdf5(bytes(content))
        except ValueError:
            refused += 1
    assert refused > 50


def check_usps(data):
    assert data.X.dtype == np.float32 and np.array_equal(
        data.X, (2.0 * small_images() - 1.0).astype(np.float32)
    )
    assert data.y.tolist() == [3, 0, 9, 7, 1] and data.y.dtype == np.int64
    assert data.train.tolist() == [0, 1, 2] and data.test.tolist() == [3, 4]
    assert (
        data.cues == {"pixels": slice(0, 256)}
        and len(data.feature_names) == 256
        and data.target_names == list("0123456789")
    )
    assert data.provenance.tier == "original" and len(data.provenance.sha256) >= 64


def test_usps_from_either_form(tmp_path, monkeypatch):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "usps.h5").write_bytes(SMALL_H5)
    monkeypatch.setenv("CUELEARN_DATA", str(tmp_path / "one"))
    check_usps(load_usps(tmp_path / "one"))
    check_usps(datasets.load_original("usps"))

    (tmp_path / "two" / "usps").mkdir(parents=True)
    images, digits = 2.0 * small_images() - 1.0, np.array([3, 0, 9, 7, 1])
    for name, rows in (("usps", slice(0, 3)), ("usps.t", slice(3, 5))):
        dump_svmlight_file(images[rows], digits[rows] + 1, str(tmp_path / name), zero_based=False)
        (tmp_path / "two" / "usps" / f"{name}.bz2").write_bytes(bz2.compress((tmp_path / name).read_bytes()))
    monkeypatch.setenv("CUELEARN_DATA", str(tmp_path / "two"))
    check_usps(datasets.load_original("usps"))
    check_usps(load_usps(tmp_path))  # unpacked


def test_usps_files_that_are_not(tmp_path):
    with pytest.raises(
        DataFileError, match=r"usps\.h5 is missing; USPS comes as usps\.h5, or as usps\.bz2 and usps\.t\.bz2"
    ):
        load_usps(tmp_path)
    (tmp_path / "usps.bz2").write_bytes(bz2.compress(b"3 1:0.5\n"))
    with pytest.raises(DataFileError, match=r"usps\.t\.bz2 is missing"):
        load_usps(tmp_path)
    (tmp_path / "usps.t.bz2").write_bytes(bz2.compress(b"12 1:0.5\n"))
    with pytest.raises(
        DataFileError, match=r"usps\.t\.bz2 must hold images of 256 grey values and as many digits"
    ):
        load_usps(tmp_path)
    (tmp_path / "usps.t.bz2").write_bytes(b"nothing")
    with pytest.raises(DataFileError, match=r"does not hold USPS in the form of its source"):
        load_usps(tmp_path)
    (tmp_path / "usps.h5").write_bytes(SMALL_H5[:5000])
    with pytest.raises(DataFileError, match=r"usps\.h5 does not hold USPS in the form of its source"):
        load_usps(tmp_path)


@pytest.mark.skipif(not (REAL / "usps.h5").is_file(), reason="USPS is not there")
def test_the_real_usps():
    data = datasets.load_original("usps")
    assert data.X.shape == (9298, 256) and data.X.min() == -1.0 and data.X.max() == 1.0
    # the published class sizes
    assert np.bincount(data.y[data.train]).tolist() == [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]
    assert np.bincount(data.y[data.test]).tolist() == [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]
    ink = data.X[data.y == 0].mean(axis=0).reshape(16, 16)
    assert (
        ink[6:10, 6:10].mean() < ink.mean() < ink[6:10].max()
    )  # a zero has a hole: the pixels are where they belong


# --- partial labels ---------------------------------------------------------------------------------------------------------


def write(file, X, possible, truth, folds):
    cells = [np.empty((1, len(folds)), dtype=object) for _ in range(2)]
    for k, fold in enumerate(folds):
        for cell, part in zip(cells, fold, strict=False):
            cell[0, k] = np.array(part)[None] + 1
    scipy.io.savemat(
        file, {"features": X, "p_labels": possible, "logitlabels": truth, "tr": cells[0], "te": cells[1]}
    )


def small_partial():
    X = np.random.default_rng(0).normal(size=(4, 3))
    possible = np.array([[1, 1, 0], [0, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=float)
    return X, possible, np.eye(3)[[1, 1, 0, 1]], [([2, 0], [1, 3]), ([1, 3], [0, 2])]


@pytest.mark.parametrize(
    ("name", "file", "load"), [("lost", "lost.mat", load_lost), ("msrcv2", "MSRCv2.mat", load_msrcv2)]
)
def test_partial_labels(tmp_path, monkeypatch, name, file, load):
    X, possible, truth, folds = small_partial()
    write(tmp_path / file, X, possible, truth, folds)
    monkeypatch.setenv("CUELEARN_DATA", str(tmp_path))
    for data in (load(tmp_path), datasets.load_original(name)):
        assert data.X.dtype == np.float32 and np.allclose(data.X, X) and data.y.tolist() == [1, 1, 0, 1]
        assert (
            np.array_equal(data.candidates.mask(), possible == 1)
            and data.candidates.bag_sizes.tolist() == [1] * 4
        )
        assert [[part.tolist() for part in fold] for fold in data.folds] == [
            [[0, 2], [1, 3]],
            [[1, 3], [0, 2]],
        ]
        assert len(data.target_names) == 3 and data.provenance.tier == "original" and "4, 3" in repr(data)
        assert all(data.candidates.contains(i, [data.y[i]]) for i in range(4))


def test_partial_files_that_are_not(tmp_path):
    with pytest.raises(DataFileError, match=r"lost\.mat is missing"):
        load_lost(tmp_path)
    (tmp_path / "lost.mat").write_bytes(b"nothing")
    with pytest.raises(
        DataFileError, match=r"lost\.mat does not hold lost in the form of the partial-label benchmarks"
    ):
        load_lost(tmp_path)
    X, possible, truth, folds = small_partial()
    hidden = possible.copy()
    hidden[2, 0] = 0.0
    for given, words in [
        (
            (X, hidden, truth, folds),
            "must give each row one true label in logitlabels that is among its candidates",
        ),
        ((X, possible, np.zeros((4, 3)), folds), "must give each row one true label"),
        ((X[:3], possible, truth, folds), "must hold features"),
        ((X, 2 * possible, truth, folds), "must hold features"),
        (
            (X, possible, truth, [([0, 1], [2])]),
            "must give in tr and te, for each fold, two parts that hold each of the 4 rows once",
        ),
        ((X, possible, truth, [([0, 1, 2], [2])]), "must give in tr and te"),
    ]:
        write(tmp_path / "lost.mat", *given)
        with pytest.raises(DataFileError, match=words):
            load_lost(tmp_path)


@pytest.mark.skipif(
    not (REAL / "lost.mat").is_file() or not (REAL / "MSRCv2.mat").is_file(),
    reason="Lost and MSRCv2 are not there",
)
def test_the_real_partial_labels():
    for name, shape, n_classes, mean in (("lost", (1122, 108), 16, 2.23), ("msrcv2", (1758, 48), 23, 3.16)):
        data = datasets.load_original(name)
        assert data.X.shape == shape and len(data.target_names) == n_classes == data.candidates.n_labels[0]
        assert round(np.mean(data.candidates.n_candidates), 2) == mean
        assert data.candidates.mask()[np.arange(len(data.y)), data.y].all()
        assert len(data.folds) == 5 and sorted(np.concatenate([test for _, test in data.folds])) == list(
            range(len(data.y))
        )
    assert len(np.unique(datasets.load_original("lost").y)) == 14  # two names are only ever wrong
