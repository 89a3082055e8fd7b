"""The executed chapters, the figures and the verdicts as one HTML file, by nbconvert."""

import nbformat
from nbconvert import HTMLExporter

from cuelearn.book.gallery import gallery
from cuelearn.core.storage import atomic_write


def report(directory, chapters):
    """Write report.html: all executed chapters, then the gallery, pictures inside. Returns its path."""
    markdown = nbformat.v4.new_markdown_cell
    cells, contents = [], []
    for chapter in chapters:
        executed = directory / "notebooks" / f"{chapter}.ipynb"
        if executed.is_file():
            contents.append(f"[{chapter}](#chapter-{chapter})")
            cells.append(markdown(f'<a id="chapter-{chapter}"></a>'))
            cells += nbformat.read(executed, as_version=4).cells
    if not cells:
        raise FileNotFoundError(f"there is no executed chapter in {directory}: run make figures first")
    links = ", ".join([*contents, "[figures, tables and verdicts](#gallery)"])
    title = f"# Learning from many cues\n\nProfile {directory.name}: {links}."
    last = f'<a id="gallery"></a>\n\n{gallery(directory, directory)}'
    book = nbformat.v4.new_notebook(cells=[markdown(title), *cells, markdown(last)])
    exporter = HTMLExporter(embed_images=True, exclude_input_prompt=True, exclude_output_prompt=True)
    html, _ = exporter.from_notebook_node(book, {"metadata": {"path": str(directory), "name": "cuelearn"}})
    return atomic_write(directory / "report.html", html)
