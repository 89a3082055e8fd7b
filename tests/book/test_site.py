"""The book, built from a small executed notebook and read in a browser without a network."""

import base64
import re
import shutil
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup

from companion.plots.explore import Control, explore, predict
from companion.run import course, site
from companion.run.claims import claims, judge_of
from companion.run.records import read_verdicts

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def executed_notebook():
    """A chapter of one figure, one drawing, one formula, one bar of progress and one exercise."""
    content = (ROOT / "figures" / "reference" / "thesis-fig-4.1.png").read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUELEARN_RUN", "1")
        controls = {"p": Control("norm p", tuple(range(1, 14)), 2)}
        slider = explore(lambda ax, p: ax.plot([0, p]), controls, caption="a line")
        slider = predict("mistakes", range(0, 101, 10), 23, "of 100", slider)
    v4 = nbformat.v4
    moved = v4.new_code_cell("explore()")
    moved.outputs = [v4.new_output("execute_result", {"text/html": slider.data})]
    code = v4.new_code_cell("plot()", metadata={"tags": ["call"]})
    picture = {"image/png": base64.b64encode(content).decode()}
    code.outputs = [
        v4.new_output("stream", name="stderr", text="100%|#####|"),
        v4.new_output("display_data", picture, metadata={"cuelearn": "thesis-fig-4.1"}),
        v4.new_output("execute_result", {"text/html": "<table><tr><td>0.5</td></tr></table>"}),
    ]
    drawing = v4.new_code_cell("draw.norm_balls();", id="mkl-006", metadata={"tags": ["call"]})
    content = (ROOT / "figures" / "reference" / "oks-thm-3.png").read_bytes()
    drawing.outputs = [v4.new_output("display_data", {"image/png": base64.b64encode(content).decode()})]
    words = "# Many kernels\n\nOBSCURE minimises $\\frac{1}{2}\\|w\\|_{2,p}^2$."
    cells = [v4.new_markdown_cell(words), code, drawing, moved, v4.new_code_cell("1 + 1")]
    notebook = v4.new_notebook(cells=cells)
    notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    notebook.metadata["papermill"] = {"input_path": "notebooks/mkl.ipynb"}
    notebook.metadata["widgets"] = {"state": "x" * 10**6}
    return notebook


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """Directory of a book of which one chapter is executed and judged: pages refer to all of them. Its
    checkout has no results of its own, whose times it would list."""
    directory, root = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("root")
    (root / "figures").mkdir()
    for name in ("notebooks", "figures/reference"):
        (root / name).symlink_to(ROOT / name)
    for file in (ROOT / "figures" / "reference").glob("thesis-fig-4.1*"):
        shutil.copy(file, directory / file.name)
    verdicts = read_verdicts(ROOT / "figures" / "reference")
    verdicts[verdicts["chapter"] == "mkl"].to_csv(directory / "claims.csv", index=False)
    (directory / "notebooks").mkdir()
    nbformat.write(executed_notebook(), directory / "notebooks" / "mkl.ipynb")
    (directory / "notebooks" / "mkl.json").write_text('{"seconds": 12.3}')
    return site.build(root, directory).parent


def test_pages_are_whole_small_and_local(book):
    pages = {page.name: page.read_text(encoding="utf-8") for page in book.glob("*.html")}
    assert {"index.html", "verdicts.html", "api_mkl.html", "mkl.html", "own_kernels.html"} <= set(pages)
    assert sum(file.stat().st_size for file in book.rglob("*") if file.is_file()) < 10e6
    for name, text in pages.items():
        links = re.findall(r"<a [^>]*?href=\"([^\":#?]+\.html)", text)
        for place in links + re.findall(r"<(?:script|img|link)[^>]*?(?:src|href)=\"([^\"]+)\"", text):
            local = place.startswith(("#", "data:")) or (book / place.partition("?")[0]).exists()
            assert local and not place.startswith(("http", "//")), (name, place)
    chapter = pages["mkl.html"]
    assert chapter.count("<figcaption") == chapter.count("<td>0.5</td>") == 1  # the table is no figure
    (stacked,) = re.findall(r'<picture><source media="[^"]*" srcset="([^"]*)"><img', chapter)
    assert (book / stacked).exists()  # a phone shows the panels below each other
    assert 'alt="Balls of the group norm of two blocks' in chapter  # the docstring of the function
    assert "100%|" not in chapter and "Fig. " in chapter and '<span class="n">plot' in chapter
    assert chapter.count('class="cell tag_hide-input') == 2  # the last two; the call is shown
    assert not [n for n in pages if n != "search.html" and 'class="admonition error' in pages[n]]  # scripts
    assert all(f"; {claim})" in pages["verdicts.html"] for claim in ("omcl-1", "obs-7", "oks-6"))
    map_, verdicts = pages["map.html"], pages["verdicts.html"]
    assert map_.count("<tr") == 1 + len(claims()) and 'class="tile holds' in map_
    for anchor in re.findall(r'href="verdicts.html#([^"]+)"', map_):
        assert f'id="{anchor}"' in verdicts
    assert 'href="mkl.html#fig-thesis-fig-4-1"' in map_ and '">om2_1</span>' in verdicts
    (file,) = book.rglob("_mkl.ipynb")  # to take away: it says what it needs, and writes next to it
    copy = nbformat.read(file, as_version=4)
    nbformat.validate(copy)
    (parameters,) = (cell for cell in copy.cells if "parameters" in cell.metadata.get("tags", ()))
    assert "make lab" in copy.cells[0].source and 'figures_dir = "figures"' in parameters.source


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="reads the book in a browser")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine to read the book in")
    with playwright.sync_playwright() as driver:
        shown = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield shown
        shown.close()


def text_of(element):
    """The text of an element in one line."""
    return " ".join(element.get_text(" ").split())


@pytest.mark.long
def test_pages_can_be_read_by_a_screen_reader(book):
    """What a parser finds of what axe finds: names that are missing or differ from what is seen, levels."""
    for file in sorted(book.glob("*.html")):
        page, troubles = BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser"), []
        ids = [element["id"] for element in page.find_all(id=True)]
        troubles += {name for name in ids if ids.count(name) > 1}
        for element in page.select("summary, button, a[href]"):
            seen, name = text_of(element), element.get("aria-label")
            unnamed = not (seen or name or element.img or element.get("title"))
            if unnamed or name and seen not in name:
                troubles.append(element)
        for control in page.select("input, select"):
            label = control.find_parent("label") or page.find("label", attrs={"for": control.get("id", "-")})
            seen = text_of(label) if label else control.get("aria-label", "")
            if not seen or control.get("aria-label", seen) not in seen:
                troubles.append(control)
        for picture in page.find_all("img"):
            if re.search(r"^$|\.(png|webp)$", picture.get("alt", "")):
                troubles.append(picture)
        levels = [int(heading.name[1]) for heading in (page.article or page).find_all(re.compile("^h[1-6]$"))]
        troubles += [pair for pair in pairwise([0, *levels]) if pair[1] > pair[0] + 1]
        troubles += [cell for cell in page.find_all("th") if not text_of(cell)]
        troubles += page.select('[role="doc-biblioentry"]')
        assert page.html["lang"] and text_of(page.title) and troubles == [], file.name


def test_every_page_in_a_browser(book, browser):
    """No error, no request that fails, no picture that is missing, nothing wider than a screen."""
    context = browser.new_context(offline=True, viewport=WIDE)
    page, troubles = context.new_page(), []
    page.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("requestfailed", lambda request: troubles.append(request.url))
    for file in sorted(book.glob("*.html")):
        page.goto(file.as_uri())
        page.wait_for_load_state("load")
        broken = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
        assert page.evaluate(broken) == [], file.name
        for size in (WIDE, NARROW):
            page.set_viewport_size(size)
            across = page.evaluate("document.documentElement.scrollWidth")
            assert across <= size["width"] + 2, f"{file.name} is {across} pixels wide"
        if page.locator(".math").count():
            page.wait_for_selector("mjx-container svg", state="attached", timeout=20_000)
        assert troubles == [], (file.name, troubles)
    context.close()


def test_a_guess_by_keyboard_shows_the_outcome_whose_slider_changes_its_picture(book, browser):
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto((book / "mkl.html").as_uri())
    guess, answer, _ = page.locator(".predict input").all()
    assert page.get_by_label("Your guess: mistakes").input_value() == guess.input_value() == "5"
    assert not answer.is_visible() and not page.locator(".explore").is_visible()
    guess.focus()
    for key in ("ArrowLeft", "Tab", "Enter"):
        page.keyboard.press(key)
    assert page.locator(".predict [role=status]").text_content() == "You said 40, it is 23 of 100."
    assert answer.is_visible() and answer.input_value() == "2" and page.locator(".explore").is_visible()
    page.keyboard.press("Tab")  # past the answer, which is no control
    assert page.evaluate("document.activeElement.matches('.explore input')")
    picture, slider = page.locator(".explore img"), page.locator(".explore input")
    page.wait_for_function("document.querySelector('.explore img')?.src.length > 100")
    assert picture.count() == 1 and slider.input_value() == "1"  # the default
    assert page.locator(".explore output").text_content() == slider.get_attribute("aria-valuetext") == "2"
    before = picture.get_attribute("src")
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("src => document.querySelector('.explore img').src !== src", arg=before)
    context.close()


def test_every_slider_of_a_page_moves(browser, tmp_path, monkeypatch):
    """The third moves alone: the others go back to their defaults."""
    monkeypatch.setenv("CUELEARN_RUN", "1")
    controls = {name: Control(name, (0, 1, 2), 1) for name in "abc"}
    html = explore(lambda ax, a, b, c: ax.set(xlim=(0, 9), title=f"{a}{b}{c}"), controls).data
    (tmp_path / "page.html").write_text(html)
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    picture, sliders = page.locator("img"), page.locator("input").all()
    seen = {picture.get_attribute("src")}
    for moved, wanted in ((0, "211"), (2, "112"), (1, "121"), (0, "221")):
        sliders[moved].press("ArrowRight")
        seen.add(picture.get_attribute("src"))
        assert "".join(slider.input_value() for slider in sliders) == wanted
    assert len(seen) == 5
    page.close()


def test_slides_fit_a_screen(browser, tmp_path):
    """Also with a slider, a picture, formulas and code; keys turn the page."""
    shutil.copy(ROOT / "notebooks" / "book" / "_static" / "mathjax-tex-svg.js", tmp_path)
    notebook = nbformat.read(ROOT / "notebooks" / "mkl.ipynb", as_version=4)
    notebook.cells[4:4] = executed_notebook().cells[1:]
    (tmp_path / "mkl.html").write_text(course.slides("mkl", notebook), encoding="utf-8")
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 720})
    page, troubles = context.new_page(), []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("requestfailed", lambda request: troubles.append(request.url))
    page.goto((tmp_path / "mkl.html").as_uri())
    page.wait_for_selector("mjx-container svg", state="attached", timeout=20_000)
    page.wait_for_function("slides.every(slide => slide.querySelector('div').style.fontSize)")
    sizes = "d => [d.scrollHeight, d.clientHeight, d.style.fontSize]"
    for height, room, letters in page.evaluate(
        f"[...document.querySelectorAll('section > div')].map({sizes})"
    ):
        assert height <= room + 1 and letters != "60%"
    assert page.locator("figure img").count() and page.locator(".explore").count() and troubles == []
    page.keyboard.press("ArrowRight")
    page.wait_for_function("scrollY === innerHeight")
    context.close()


def test_the_code_of_a_claim_has_what_is_assigned_for_it():
    """Also where a name is assigned again for the next claim."""
    code = site.code_of("mlmkl-4", judge_of("mlmkl-4").file)
    assert (
        code.startswith("says = ") and "ratio = Mean(says, measure" in code and "def mlmkl_4(results)" in code
    )
    assert code.count("says = ") == code.count("measure = ") == 1 and "SUMS = (" in code
    code = site.code_of("om2-2", judge_of("om2-2").file)
    assert code.startswith("INFORM = {")
    assert '\nSAME_ERROR = 0.002\n@claim("om2-2", "thesis-fig-4.2")\ndef om2_2(results):' in code
