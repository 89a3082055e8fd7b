"""Figures and tables as files."""

import io
import json
import subprocess

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from companion.run import figures
from companion.run.figures import METHOD_STYLE, FigureStore, band, method_style, use_style
from companion.run.records import catalogue, saved_items
from companion.study import interval

PENDIGITS = {"name": "Pendigits", "tier": "bundled", "licence": "CC BY 4.0"}
MADE = {"name": "three classes", "tier": "generated"}


@pytest.fixture
def store(tmp_path):
    parameters = {"seed": np.int64(3), "p": 1.1, "n_jobs": 2, "figures_dir": "/x"}
    return FigureStore("smoke", tmp_path / "out", parameters=parameters)


@pytest.fixture
def fig():
    with plt.rc_context():
        use_style()
        figure, ax = plt.subplots(figsize=(2, 1.5))
        band(ax, [0, 1, 2], np.arange(12).reshape(4, 3), "OM2")
        ax.legend()
        yield figure
        plt.close(figure)


TABLE = pd.DataFrame({"x": [0, 1], "error [%]": [0.1, 1 / 3]})


def saved(store):
    """Files of each finished figure."""
    return {item["name"]: item["files"] for item in saved_items(store.directory)}


def test_figure_files_and_sidecar(store, fig):
    about = {"note": "read this", "paper": {"accuracy": [98.5]}}
    path = store.save_figure(fig, "jmlr-fig-3", TABLE, suffix="p-1.1", provenance=[PENDIGITS], **about)
    name = "jmlr-fig-3-p-1.1"
    assert path == store.directory / f"{name}.png" and path.read_bytes()[:4] == b"\x89PNG"
    files = [f"{name}.{kind}" for kind in ("csv", "json", "png")]
    assert sorted(file.name for file in store.directory.iterdir()) == files
    pd.testing.assert_frame_equal(pd.read_csv(store.directory / f"{name}.csv"), TABLE, rtol=1e-14)
    record = json.loads((store.directory / f"{name}.json").read_text())
    row = catalogue().loc["jmlr-fig-3", ["source", "papers_data"]]
    expected = {"id": "jmlr-fig-3", "suffix": "p-1.1", "our_data": "Pendigits (bundled)", "tier": "bundled"}
    expected |= {"profile": "smoke", "seeds": 3, "parameters": {"seed": 3, "p": 1.1}, "data": [PENDIGITS]}
    assert {**row, **about, **expected}.items() <= record.items()
    assert {"numpy", "numba", "python"} <= set(record["versions"])
    assert record["seconds"] >= 0 and record["platform"]
    assert str(store.directory) not in json.dumps(record)
    assert list(saved(store)) == [name]


def test_panels_are_stacked_for_a_narrow_screen(store):
    fig, axes = plt.subplots(2, 2, figsize=(8, 6), sharey="row", sharex="col", layout="constrained")
    axes[0, 0].plot([0, 1], label="OM-2")
    axes[0, 1].set_title("right")
    axes[1, 0].set(xlabel="epoch", ylabel="error")
    fig.legend()
    store.save_figure(fig, "jmlr-fig-3", TABLE, provenance=[PENDIGITS])
    assert saved(store)["jmlr-fig-3"][1:] == ["jmlr-fig-3.narrow.png", "jmlr-fig-3.png"]
    wide, narrow = (Image.open(store.directory / f"jmlr-fig-3{end}.png") for end in ("", ".narrow"))
    assert narrow.width < 0.6 * wide.width and narrow.height > narrow.width
    last = axes[1, 1]
    assert (last.get_title(), last.get_ylabel()) == ("right", "error")
    tops = [ax.get_position().y0 for ax in axes.flat]
    assert tops == sorted(tops, reverse=True) and len(set(tops)) == 4


def test_items_of_a_block_are_finished_together(store):
    with pytest.raises(KeyboardInterrupt), store.all_or_none():
        store.save_table(TABLE, "jmlr-fig-3", provenance=[PENDIGITS])
        raise KeyboardInterrupt
    assert not saved(store)
    with store.all_or_none():
        store.save_table(TABLE, "jmlr-fig-3", provenance=[PENDIGITS])
        assert not saved(store)
    assert list(saved(store)) == ["jmlr-fig-3"]


def test_a_packed_picture_keeps_its_colours():
    matrix = 0.5 + 0.5 * np.kron(np.eye(3), np.ones((100, 100)))
    fig, (left, right) = plt.subplots(1, 2)
    fig.colorbar(left.imshow(matrix, cmap="cividis", vmin=-0.5, vmax=1))
    right.bar(range(len(figures.PALETTE)), 1, color=figures.PALETTE)
    png = io.BytesIO()
    fig.savefig(png)
    plt.close(fig)
    pictures = png, io.BytesIO(figures.compressed(png.getvalue()))
    before, after = (np.asarray(Image.open(file).convert("RGB"), dtype=int) for file in pictures)
    assert np.abs(after - before).max() <= 8


def test_made_data_is_named_in_the_picture(store, fig, monkeypatch):
    written, real = [], fig.text
    monkeypatch.setattr(fig, "text", lambda x, y, s, **style: written.append(s) or real(x, y, s, **style))
    store.save_figure(fig, "jmlr-fig-1", TABLE, provenance=[MADE, PENDIGITS])
    footer, word = " ".join(written[0].split()), written[1]  # wrapped to the picture's width
    assert "three classes (simulated), Pendigits (bundled)" in footer and "95% interval" in footer
    assert word == "simulated data"
    assert json.loads((store.directory / "jmlr-fig-1.json").read_text())["tier"] == "bundled+generated"
    store.save_figure(fig, "jmlr-fig-1", TABLE, provenance={**MADE, "kind": "composed"})
    assert written[3:] == ["composed data"]
    store.save_figure(fig, "jmlr-fig-1", TABLE, provenance=[PENDIGITS])
    assert len(written) == 5 and "simulated" not in written[4]
    figures.stamp(fig.axes[0], "bundled")  # where panels differ
    store.save_figure(fig, "jmlr-fig-1", TABLE, provenance=[MADE, PENDIGITS])
    assert len(written) == 6 and fig.axes[0].cuelearn_stamp.get_text() == "bundled"


def test_panels_of_one_id_share_their_numbers(store, fig):
    other = TABLE.assign(x=[1, 2])
    for suffix, data in (("a", {"": TABLE, "svm": other}), ("b", {"": TABLE, "svm": TABLE})):
        store.save_figure(fig, "jmlr-fig-2", data, suffix=suffix, provenance=[PENDIGITS])
    files = ["jmlr-fig-2-a.csv", "jmlr-fig-2-a.png", "jmlr-fig-2-a.svm.csv"]
    assert saved(store) == {"jmlr-fig-2-a": files, "jmlr-fig-2-b": ["jmlr-fig-2-a.csv", "jmlr-fig-2-b.png"]}


def test_same_drawing_same_bytes(store, fig):
    store.svg, n_texts, contents = True, len(fig.texts), []
    for note in ("", "other"):
        store.save_figure(fig, "jmlr-fig-3", TABLE, provenance=[PENDIGITS], note=note)
        files = [store.directory / f"jmlr-fig-3.{kind}" for kind in ("svg", "png", "csv")]
        contents.append([file.read_bytes() for file in files])
    assert contents[0] == contents[1] and len(fig.texts) == n_texts


def test_table_with_the_papers_numbers(store):
    ours = pd.DataFrame({"method": ["OM-2", "a|b"], "error": [1.23456, np.nan], "seconds": [2, 3]})
    about = {"provenance": PENDIGITS, "note": "Means."}
    paper = {"error": [1.5, 2.0], "AUC": [0.8, None]}
    store.save_table({"": ours, "runs": TABLE}, "jmlr-fig-6", paper=paper, **about)
    columns = ["method", "error", "paper: error", "seconds", "paper: AUC"]
    assert list(pd.read_csv(store.directory / "jmlr-fig-6.csv")) == columns
    text = (store.directory / "jmlr-fig-6.md").read_text()
    rows = "| OM-2 | 1.235 | 1.5 | 2 | 0.8 |", "| a\\|b |  | 2 | 3 |  |"
    assert all(shown in text for shown in (*rows, "Means.", "Pendigits (bundled)"))
    assert saved(store) == {"jmlr-fig-6": ["jmlr-fig-6.csv", "jmlr-fig-6.md", "jmlr-fig-6.runs.csv"]}
    theirs = pd.DataFrame({"error": [10.0]}, index=pd.Index(["OM-2"], name="method"))  # aligned by it
    store.save_table(ours.set_index("method"), "jmlr-fig-6", paper=theirs, **about)
    assert pd.read_csv(store.directory / "jmlr-fig-6.csv")["paper: error"].tolist()[0] == 10.0
    assert saved_items(store.directory)[0]["paper"] == {"error": [10.0]}
    with pytest.raises(ValueError, match="one value for each"):
        store.save_table(ours, "jmlr-fig-6", paper=pd.DataFrame({"error": [1.0]}), **about)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"id": "jmlr-fg-3"}, "not in catalogue.csv; did you mean .*jmlr-fig-3"),
        ({"id": "oks-tab-1"}, "belongs to the chapter oks"),
        ({"provenance": []}, "provenance is empty"),
        ({"provenance": ["Pendigits"]}, "needs a name and a tier"),
        ({"suffix": "../x"}, "suffix must be made of"),
        ({"data": [1, 2]}, "plotted numbers"),
    ],
)
def test_wrong_calls(store, fig, change, message):
    kind = TypeError if message == "plotted numbers" else ValueError
    with pytest.raises(kind, match=message):
        store.save_figure(fig, **{"id": "jmlr-fig-3", "data": TABLE, "provenance": [PENDIGITS], **change})
    assert not store.directory.exists()


def test_figure_without_all_its_files_is_not_finished(store, fig, monkeypatch):
    store.save_figure(fig, "jmlr-fig-3", TABLE, provenance=[PENDIGITS])
    monkeypatch.setattr(figures, "atomic_write", lambda path, content: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store.save_figure(fig, "jmlr-fig-3", TABLE, provenance=[MADE])
    assert not saved(store)  # a mixture of old and new files is not shown as a figure


def test_an_interval_of_one_run_has_no_ends():
    assert interval([4.0]).mean == 4 and np.isnan(interval([4.0]).low)
    with pytest.raises(ValueError, match="empty"):
        interval([])


def test_every_method_has_a_look():
    known = {*figures.PALETTE, *figures.TONES.values()}
    for style in METHOD_STYLE.values():
        assert set(style) == {"label", "color", "marker", "linestyle"} and style["color"] in known
    with pytest.raises(ValueError, match="did you mean OBSCURE"):
        method_style("OBSCUR")


def test_the_commit_is_that_of_the_checkout(monkeypatch, tmp_path):
    """Whatever repository GIT_DIR names."""
    figures._surroundings.cache_clear()
    commit = figures._surroundings()["commit"]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    figures._surroundings.cache_clear()
    assert figures._surroundings()["commit"] == commit
