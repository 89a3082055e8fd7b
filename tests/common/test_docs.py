"""The examples in the docstrings run, and every public name says what it does."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
from estimators import CHAPTERS, ESTIMATORS

import companion
import cuelearn

PACKAGES = ("core", "kernels", *CHAPTERS, "datasets")
MODULES = [
    module.name
    for package in PACKAGES
    for module in pkgutil.walk_packages(
        importlib.import_module(f"cuelearn.{package}").__path__, f"cuelearn.{package}."
    )
    if not module.ispkg
]
MODULES += ["companion.study", "companion.run.claims"]
#: Where users find what is public.
PUBLIC = [*(f"cuelearn.{package}" for package in ("kernels", *CHAPTERS, "datasets")), "companion.run.claims"]
#: All of them, also what draws and what runs.
FILES = sorted(f for module in (cuelearn, companion) for f in Path(module.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    """They import all that they use: a reader has nothing else."""
    options = {"globs": {}, "optionflags": doctest.NORMALIZE_WHITESPACE, "raise_on_error": True}
    try:
        doctest.testmod(importlib.import_module(name), **options)
    except doctest.UnexpectedException as error:
        raise error.exc_info[1] from error


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_have_examples(name):
    module = importlib.import_module(name)
    for public in module.__all__:
        value = getattr(module, public)
        if not callable(value):
            continue
        _, _, shown = (inspect.getdoc(value) or "").partition("Examples\n--------\n")
        assert ">>> " in shown and public in shown, public


def test_no_control_characters():
    r"""In a docstring that is not raw, ``\frac`` begins with a form feed."""
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and len(text) > 40:
                assert not re.search(r"[\x00-\x09\x0b-\x1f]", text), file


#: Modules that every package may use.
SHARED = "checkpoint|compiled|expect"


@pytest.mark.parametrize(
    "package, allowed", [("kernels", f"kernels|{SHARED}"), ("core", f"core|kernels|{SHARED}")]
)
def test_imports_run_downward(package, allowed):
    for file in (Path(cuelearn.__file__).parent / package).glob("*.py"):
        text = file.read_text(encoding="utf-8")
        used = re.findall(r"^ *(?:from|import) cuelearn\.(\w+)", text, re.MULTILINE)
        assert all(re.fullmatch(allowed, name) for name in used), file.name


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_every_parameter_is_described(name):
    cls = ESTIMATORS[name]
    text = inspect.getdoc(cls)
    for parameter in inspect.signature(cls).parameters:
        assert re.search(rf"^(\w+, )*{parameter}(, \w+)* : ", text, re.MULTILINE), parameter
    assert not re.search(r"^ *\$\w", text, re.MULTILINE)
    assert not re.search(r"^    See `", text, re.MULTILINE)
    for method in ("fit", "predict"):
        assert inspect.getdoc(getattr(cls, method))


def test_functions_named_in_the_book_exist():
    text = Path(companion.__file__).parents[1].joinpath("book/built.md").read_text()
    names = re.findall(r"`((?:kernels|core|omcl|mkl|mms|mktl|oks|datasets)(?:\.\w+)+)`", text)
    assert len(names) > 20
    for name in names:
        module, _, function = name.rpartition(".")
        assert hasattr(importlib.import_module(f"cuelearn.{module}"), function), name
