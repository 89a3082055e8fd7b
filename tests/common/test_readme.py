"""The README's examples of use run as they are pasted, each by itself."""

import re
from pathlib import Path

import matplotlib.pyplot as plt

TEXT = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def test_code_runs_as_pasted(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    use = TEXT.split("## Use it on your own kernels")[1].split("## Add a method")[
        0
    ]  # that is tested with mkl
    found = []
    for block in re.findall(r"^```python\n(.*?)^```", use, re.DOTALL | re.MULTILINE):
        assert max(map(len, block.splitlines())) <= 120
        names = {}
        exec(compile(block, "README.md", "exec"), names)
        found.append(names)
    plt.close("all")
    _, search, labels, stream, kinds, bags, transfer, photos = found
    assert search["search"].best_score_ > 0.8
    assert labels["model"].kernel_weights_.shape == (4,) and not labels["model"].skipped_classes_.size
    assert stream["model"].online_errors_.mean() < 0.4 and len(stream["model"].online_errors_) > 100
    assert kinds["model"].score(kinds["data"].X, kinds["data"].y) > 0.9
    assert bags["model"].predict(bags["X"], bags["sets"]).tolist()[2] == "Ada Lovelace"
    assert all((bags["sets"].bag(i) == bags["same"].bag(i)).all() for i in (0, 1))
    new, old = transfer["new"][60:], transfer["model"]
    assert old.transfer_weights_.shape == (5, 21 + 1) == (5, len(old.prior_names_))
    assert old.score(transfer["X"][new], transfer["y"][new]) > 0.6 and old.dual_gap_ <= 1e-3 * old.objective_
    data = photos["data"]
    assert len(data.cues) == 7 and photos["model"].score(data.X[data.test], data.y[data.test]) > 0.6
