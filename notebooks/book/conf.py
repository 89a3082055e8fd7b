"""The book: Sphinx reads the executed notebooks and the pages beside this file (`make book`)."""

import os

import cuelearn

project = "cuelearn"
author = "the cuelearn developers"
copyright = author
release = version = cuelearn.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx_design",
    "sphinxcontrib.bibtex",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
]
nb_execution_mode = "off"  # the runner has executed them
nb_ipywidgets_js = {}  # sliders live in the notebooks; a page needs nothing from the network
nb_merge_streams = True
nb_render_markdown_format = "myst"  # of what cells write, with its formulas
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
bibtex_bibfiles = ["references.bib"]
numfig = True
exclude_patterns = ["_*", "references.bib"]
suppress_warnings = ["mystnb.unknown_mime_type"]

# Public names with their docstrings.
autodoc_default_options = {"members": True, "inherited-members": True}
autodoc_preserve_defaults = True  # as written: a path would be this machine's
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_attributes_as_param_list = True
toc_object_entries_show_parents = "hide"

# Mathematics is drawn by one file that stands beside the pages.
mathjax_path = "mathjax-tex-svg.js"
mathjax3_config = {"svg": {"fontCache": "global"}}

html_theme = "sphinx_book_theme"
html_title = "Learning from many cues"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_domain_indices = False  # the reference lists the modules
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # a page read from disk may not fetch another
html_context = {"default_mode": "auto"}
html_theme_options = {
    "home_page_in_toc": True,
    "navbar_persistent": [],
    "use_fullscreen_button": False,
    "use_download_button": False,
    "show_toc_level": 2,
    "navigation_with_keys": False,
}
# Where the book is built from a hosted repository, its pages link back to it, to Binder and to Colab.
if os.environ.get("GITHUB_REPOSITORY"):
    html_theme_options |= {
        "repository_url": f"https://github.com/{os.environ['GITHUB_REPOSITORY']}",
        "repository_branch": "main",
        "path_to_docs": "notebooks",
        "use_repository_button": True,
        "launch_buttons": {
            "binderhub_url": "https://mybinder.org",
            "colab_url": "https://colab.research.google.com",
            "notebook_interface": "jupyterlab",
        },
    }


# Of all estimators: told of once, on the first page of the reference.
SHARED = {"get_params", "set_params", "save", "load"}


def setup(app):
    """Methods that scikit-learn or Python give are theirs to document; fields are attributes."""

    def skip(app, what, name, value, skipped, options):
        theirs = str(getattr(value, "__module__", "")).startswith("sklearn")
        theirs = theirs or getattr(value, "__objclass__", None) is tuple
        shared = what == "class" and name in SHARED and app.env.docname != "reference"
        return True if theirs or shared or type(value).__name__ == "_tuplegetter" else None

    app.connect("autodoc-skip-member", skip)
