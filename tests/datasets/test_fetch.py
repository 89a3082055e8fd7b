"""Fetching originals from a server of our own."""

import hashlib
import http.server
import io
import os
import tarfile
import threading
import zipfile

import numpy as np
import pytest
import scipy.io

from companion import originals
from companion.originals import fetch_original, known_originals, load_original
from cuelearn.datasets import DataFileError

pytest.importorskip("pooch")


class Server(http.server.BaseHTTPRequestHandler):
    """Sends what `files` hold; of those in `cut` half of what it announces."""

    files, cut = {}, ()

    def do_GET(self):
        content = self.files.get(self.path)
        if content is None:
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if self.path in self.cut else content)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(Server, "files", {})
    monkeypatch.setattr(Server, "cut", set())
    monkeypatch.setenv("NO_PROXY", "*")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


@pytest.fixture
def lost(server, monkeypatch, tmp_path):
    """The set "lost", at two addresses there, for a directory that does not exist yet."""
    X, truth = np.random.default_rng(0).normal(size=(4, 3)), np.eye(2)[[0, 1, 1, 0]]
    file = tmp_path / "lost.mat"
    scipy.io.savemat(file, {"data": X, "partial_target": truth.T, "target": truth.T})
    content = file.read_bytes()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(file, "faces/lost.mat")
    Server.files = {"/lost.mat": content, "/lost.tgz": packed.getvalue()}
    place = tmp_path / "there" / "originals"
    monkeypatch.setenv("CUELEARN_DATA", str(place))

    def table(**changes):
        usual = {"urls": {"lost.mat": f"{server}/lost.mat"}, "sums": {"lost.mat": ""}, "page": "the page"}
        entry = known_originals.__wrapped__()["lost"]._replace(**usual | changes)
        for module in (originals, originals):
            monkeypatch.setattr(module, "known_originals", lambda: {"lost": entry})
        return place

    return table


def refused(words, place, name="lost"):
    """One sentence, and nothing is left."""
    with pytest.raises(DataFileError, match=words) as caught:
        fetch_original(name)
    said = str(caught.value)
    assert "\n" not in said and said.endswith(".") and ". " not in said
    assert not place.exists() or os.listdir(place) == []


def test_a_set_is_fetched_verified_and_loaded(lost, server):
    known = f"md5:{hashlib.md5(Server.files['/lost.mat']).hexdigest()}"
    place = lost(sums={"lost.mat": known})
    assert fetch_original("lost") == place / "lost" and os.listdir(place) == ["lost"]
    assert originals.verify_original("lost") == "whole, sums as known"
    assert load_original("lost").y.tolist() == [0, 1, 1, 0]
    with pytest.raises(DataFileError, match=r"lost is there already: remove it to fetch lost again\.$"):
        fetch_original("lost")
    (place / "lost" / "lost.mat").write_bytes(b"other")
    with pytest.raises(DataFileError, match="lost.mat is damaged or another edition"):
        originals.verify_original("lost")


def test_archives_are_unpacked_also_within_archives(lost, server):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("inner/lost.tgz", Server.files["/lost.tgz"])
        archive.writestr("__MACOSX/inner/x", b"")
    Server.files["/all.zip"] = packed.getvalue()
    place = lost(urls={"all.zip": f"{server}/all.zip"})
    fetch_original("lost")
    assert (place / "lost" / "lost.mat").is_file() and not list(place.rglob("*.tgz"))
    assert sorted(os.listdir(place / "lost")) == ["inner", "lost.mat"]
    assert originals.verify_original("lost") == "of the right form, sums not known"


def test_what_a_moved_page_sends_is_not_kept(lost, server):
    Server.files["/page"] = b"\n <!DOCTYPE html><html>we have moved</html>"
    place = lost(urls={"lost.mat": f"{server}/gone"})
    refused("/gone answers 404", place)
    place = lost(urls={"lost.mat": f"{server}/page"})
    refused(r"/page sends a web page in place of lost\.mat", place)


def test_damaged_and_broken_off_files_are_not_kept(lost, server):
    place = lost(sums={"lost.mat": "sha256:" + 64 * "0"})
    refused(r"the sum of lost\.mat is not sha256:0{64}\.", place)
    place = lost()
    Server.cut = {"/lost.mat"}
    refused(r"/lost\.mat broke off", place)
    Server.files["/lost.tgz"] = Server.files["/lost.tgz"][:-100]
    place = lost(urls={"lost.tgz": f"{server}/lost.tgz"})
    refused(r"/lost\.tgz sends is no whole archive", place)
    Server.cut, Server.files["/lost.mat"] = (), b"of another form"
    place = lost()
    refused(r"lost\.mat does not hold lost", place)


def test_without_a_network_nothing_is_made(lost):
    with http.server.HTTPServer(("127.0.0.1", 0), Server) as closed:
        port = closed.server_port
    refused("cannot be reached", lost(urls={"lost.mat": f"http://127.0.0.1:{port}/"}))
