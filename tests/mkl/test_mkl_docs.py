"""The examples in the docstrings run, and every public name says what it does."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import cuelearn.mkl

MODULES = ["cuelearn.core.groupnorm", "cuelearn.core.losses"]
MODULES += [f"cuelearn.mkl.{module.name}" for module in pkgutil.iter_modules(cuelearn.mkl.__path__)]
ESTIMATORS = [name for name in cuelearn.mkl.__all__ if hasattr(getattr(cuelearn.mkl, name), "fit")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_public_names_have_docstrings(name):
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", []):
        assert inspect.getdoc(getattr(module, public)), public


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter_is_described(name):
    """Each parameter of an estimator appears in its docstring (or is said to be as in another's)."""
    cls = getattr(cuelearn.mkl, name)
    text = inspect.getdoc(cls)
    missing = [parameter for parameter in inspect.signature(cls).parameters if parameter not in text]
    assert not missing, f"{name} does not describe {missing}"
