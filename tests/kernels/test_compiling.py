"""Compilation is told of again and again, by name; damaged files of compiled code are replaced."""

import os
import subprocess
import sys
from types import SimpleNamespace

from cuelearn import compiled

PROGRAM = """
import sys

from joblib.externals.loky import ProcessPoolExecutor


def work(module):
    import numba

    from cuelearn import compiled

    compiled.PATIENCE = 0.0

    def function(x):
        return x + 1

    function.__module__ = module
    return numba.njit(cache=False)(function)(1)


if __name__ == "__main__":
    with ProcessPoolExecutor(1) as pool:
        assert pool.submit(work, "cuelearn.some").result() == 2
    for module in ("elsewhere", "cuelearn.one", "cuelearn.other"):
        assert work(module) == 2
        print(module, file=sys.stderr, flush=True)
"""


def test_functions_of_this_package_are_told_of_but_not_by_workers(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    plain = {name: value for name, value in os.environ.items() if name != "CUELEARN_RUN"}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=plain, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")
    lines = dict.fromkeys(line.split(", kept")[0] for line in done.stderr.splitlines())
    notices = [f"cuelearn: compiling cuelearn.{name}.function" for name in ("one", "other")]
    assert list(lines) == ["elsewhere", notices[0], "cuelearn.one", notices[1], "cuelearn.other"]


def test_a_notice_every_three_seconds_of_compilation(monkeypatch, capsys):
    now = 0.0
    monkeypatch.setattr(compiled, "perf_counter", lambda: now)
    notice = compiled.CompilationNotice()

    def event(name):
        module, name = name.rsplit(".", 1)
        return SimpleNamespace(data={"dispatcher": SimpleNamespace(__module__=module, __name__=name)})

    def expect(*expected):
        texts = [f"cuelearn: compiling {name}, kept on disk for the next start" for name in expected]
        assert [line.split(";")[0] for line in capsys.readouterr().err.splitlines()] == texts

    notice.on_start(event("cuelearn.mms.find"))
    now = 2.0
    notice.on_start(event("numba.empty"))
    expect()
    now = 4.0
    notice.on_end(event("numba.empty"))  # 4 s, told
    expect("cuelearn.mms.find")
    now = 6.0
    notice.on_end(event("cuelearn.mms.find"))
    now = 100.0  # the time between compilations does not count
    notice.on_start(event("elsewhere.function"))
    now = 200.0
    notice.on_end(event("elsewhere.function"))
    notice.on_start(event("cuelearn.oks.ask"))
    expect()
    now = 202.0  # 8 s
    notice.on_end(event("cuelearn.oks.ask"))
    expect("cuelearn.oks.ask")


COMPETITOR = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import numpy as np
    from cuelearn.core.formulas import competitor
    competitor(np.eye(2)[0], 0)
print(sorted({str(w.message) for w in caught}))
"""


def warnings_of_a_run(cache):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", COMPETITOR]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def damaged(content, damage):
    if damage == "empty":
        return b""
    if damage == "cut":
        return content[: len(content) * 2 // 3]
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]


def test_damaged_files_are_compiled_again(tmp_path):
    assert warnings_of_a_run(tmp_path) == "[]\n"
    for damage in ("cut", "empty", "garbled"):
        files = list(tmp_path.rglob("*.nb?"))
        assert {path.suffix for path in files} == {".nbi", ".nbc"}
        for path in files:
            path.write_bytes(damaged(path.read_bytes(), damage))
        assert warnings_of_a_run(tmp_path).count("damaged files of compiled code in") == 1
    assert warnings_of_a_run(tmp_path) == "[]\n"
