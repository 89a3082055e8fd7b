"""The chapter runs on image folders in the layouts of KTH-IDOL2 and ETH-80 (here small ones, written from
simulated images and emoji)."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from companion.cue_tasks import emoji_objects
from cuelearn import datasets

ROOT = Path(__file__).resolve().parents[2]
CODES = {"OO": "BO", "CR": "CR", "TO": "EO", "KT": "KT", "PA": "PA"}


def write_idol2(folder, data):
    frames = data.frames
    for sequence in range(12):
        rows = np.flatnonzero(frames["sequence"] == sequence)
        number = 2 * frames["session"][rows[0]] - 2 + frames["repeat"][rows[0]]
        directory = folder / f"dum_{frames['weather'][rows[0]]}{number}"
        (directory / "png").mkdir(parents=True)
        scans = []
        for i in rows:
            time = 1152902000.0 + frames["time"][i]
            room = CODES[data.target_names[data.y[i]]]
            pose = f"x{frames['x'][i]:.3f}_y{frames['y'][i]:.3f}_a{frames['heading'][i]:.4f}"
            Image.fromarray(data.images[i]).save(directory / "png" / f"t{time:.6f}_r{room}_{pose}.png")
            second, rest = divmod(time, 1.0)
            ranges = " ".join(f"{r:.3f}" for r in data.laser[i])
            scans.append(f"0 0 {data.laser.shape[1]} {int(second)} {round(1e6 * rest)} {ranges}")
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
    write_idol2(tmp_path / "images" / "idol2", datasets.make_robot(10, 48, 64))
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
    assert "ALL" in pd.read_csv(table)
    assert {"OO", "PA"} <= set(pd.read_csv(table.with_stem("thesis-tab-3.1-rooms")).columns)
    text = table.with_suffix(".md").read_text()
    assert "KTH-IDOL2 (original)" in text and "simulated" not in text.split("Data:")[1]
    assert "ETH-80 (original)" in (table.parent / "thesis-tab-3.2.md").read_text()
