"""The tests pass whatever a user has made, and whatever the environment says."""

import os
import shutil
import sys
from pathlib import Path

from processes import printed

ROOT = Path(__file__).resolve().parents[1]
#: Directories of a checkout that are not committed, or are not needed.
MADE = shutil.ignore_patterns(
    ".git", ".venv", ".cache", "lab", "build", "quick", "full", "smoke", "__pycache__"
)
#: Those that read results, data and caches, or are told where these lie.
TESTS = (
    "book/test_sentences.py::test_every_text_is_made_of_results[mktl]",
    "book/test_sentences.py::test_the_findings_of_readme_and_paper_are_those_of_the_reference",
    "datasets/test_bundled.py::test_damaged_file_is_refused",
    "datasets/test_originals.py",
    "experiments/test_pictures.py",
    "test_build.py::test_lab_works_on_copies_that_stay",
    "test_build.py::test_sources_are_formatted",
    "test_install.py::test_what_the_wheel_holds_and_needs",
    "test_reference.py::test_every_claim_has_a_verdict",
)
DAMAGED = """
lab/oks.ipynb lab/odd.py data/odd.py data/.hidden data/mine/emoji.npz originals/usps.h5
originals/lost/lost.mat .cache/cues .cache/numba/x/y.nbi .cache/sweeps/quick/oks/0.pkl .cache/matplotlib
.git/HEAD
"""
FOREIGN = {
    "CUELEARN_BUNDLED": "/nonexistent",
    "CUELEARN_CACHE": "/dev/null",
    "CUELEARN_RUN": "1",
    "CUELEARN_SCHEDULER": "tcp://127.0.0.1:1",
    "CUELEARN_SVG": "1",
    "GIT_DIR": "/nonexistent",
    "GIT_WORK_TREE": "/nonexistent",
    "MAKEFLAGS": "n -- PARAMS=p=3",
    "MPLBACKEND": "none",
    "PARAMS": "p=3",
    "PROFILE": "full",
}


def link(source, target):
    try:
        os.link(source, target)
    except OSError:  # on another disk
        shutil.copy(source, target)


def spoil(checkout):
    """Leave partial, damaged and foreign files where a user's results, data and caches lie."""
    reference = sorted((checkout / "figures" / "reference").glob("*.*"))
    for profile in ("quick", "full", "smoke"):
        directory = checkout / "figures" / profile
        (directory / "notebooks").mkdir(parents=True)
        for file in reference[::2]:  # half of the files, and of these half of the content
            if file.suffix in (".csv", ".json"):
                content = file.read_bytes()
                (directory / file.name).write_bytes(content[: len(content) // 2])
        (directory / "claims.csv").write_text("id,verdict\nnobody-1,holds\n")
        (directory / "notebooks" / "oks.json").write_text("{")
    for name in DAMAGED.split():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("what  =  'is damaged'")


def test_what_reads_results_data_and_caches_reads_what_is_committed(tmp_path):
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT, checkout, ignore=MADE, copy_function=link)
    spoil(checkout)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not long", "-p", "no:cacheprovider"]
    paths = {"PYTHONPATH": str(checkout), "CUELEARN_DATA": str(checkout / "originals")}
    names = [f"tests/{name}" for name in TESTS]
    printed([*command, *names], cwd=checkout, env={**os.environ, **FOREIGN, **paths})
