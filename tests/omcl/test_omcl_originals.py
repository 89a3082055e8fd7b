"""The chapter runs on image folders in the layouts of KTH-IDOL2 and ETH-80."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from companion.pictures import emoji_objects
from companion.run.records import read_verdicts

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("BO", "CR", "EO", "KT", "PA")


def write_idol2(folder, per_room=2):
    """Twelve drives through five rooms; a room has a colour and a size of its own, and noise."""
    rng = np.random.default_rng(0)
    for weather in ("cloudy", "sunny", "night"):
        for number in (1, 2, 3, 4):
            directory = folder / f"dum_{weather}{number}"
            (directory / "png").mkdir(parents=True)
            scans = []
            for k, room in enumerate(np.repeat(ROOMS, per_room)):
                place = ROOMS.index(room)
                time = 1152902000.0 + k
                image = rng.integers(0, 120, (48, 64, 3)) + 30 * (np.arange(3) == place % 3) + 15 * place
                name = f"t{time:.6f}_r{room}_x{k:.3f}_y0.000_a0.0000.png"
                Image.fromarray(image.astype(np.uint8)).save(directory / "png" / name)
                ranges = " ".join(f"{r:.3f}" for r in rng.uniform(1 + place, 2 + place, 181))
                scans.append(f"0 0 181 {int(time)} 0 {ranges}")
            (directory / "scans.tdf").write_text("\n".join(scans) + "\n")


def write_eth80(folder, data, directions=("035-045", "090-000")):
    for category, name in enumerate(data.target_names):
        drawings = np.unique(data.frames["object"][data.y == category])[:4]
        for number, drawing in enumerate(drawings, start=1):
            directory = folder / f"{name}{number}"
            (directory / "maps").mkdir(parents=True)
            views = np.flatnonzero(data.frames["object"] == drawing)
            for row, direction in zip(views, directions, strict=True):
                file = f"{name}{number}-{direction}"
                mask = 255 * data.masks[row].astype(np.uint8)
                Image.fromarray(data.images[row]).save(directory / f"{file}.png")
                Image.fromarray(mask).save(directory / "maps" / f"{file}-map.png")


@pytest.mark.long
def test_chapter_runs_on_folders_in_the_original_layouts(tmp_path):
    write_idol2(tmp_path / "images" / "idol2")
    write_eth80(tmp_path / "images" / "eth80", emoji_objects(2, 0))
    for name in ("notebooks", "data"):
        (tmp_path / name).symlink_to(ROOT / name)
    command = [sys.executable, "-m", "companion.run.runner", "--root", str(tmp_path)]
    command += ["--profile", "smoke", "--chapter", "omcl", "--data", "original"]
    kept = {k: v for k, v in os.environ.items() if k not in ("CUELEARN_CACHE", "CUELEARN_SCHEDULER")}
    environment = {**kept, "CUELEARN_DATA": str(tmp_path / "images")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    (table,) = (tmp_path / "figures").rglob("thesis-tab-3.1.csv")
    assert {"ALL", "OO", "PA", "paper: PA"} <= set(pd.read_csv(table).columns)
    assert "KTH-IDOL2 (original)" in table.with_suffix(".md").read_text()
    verdict = read_verdicts(table.parent).set_index("id").loc["omcl-6"]
    assert "4% on IDOL2 and" in verdict["text"]
    assert "ETH-80 (original)" in (table.parent / "thesis-tab-3.2.md").read_text()
