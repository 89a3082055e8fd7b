"""Files that appear whole or not at all."""

import inspect
import json
import os
import secrets
from pathlib import Path

import numpy as np

__all__ = [
    "Loadable",
    "atomic_write",
    "construct",
    "expect_class",
    "read_model",
    "saved_parameters",
    "write_model",
]


def atomic_write(path, content):
    """Write a file so that no reader ever sees half of it.

    The content goes to a temporary file in the same directory, which then takes the name in one step. A process killed at any
    moment leaves either the old file or the new one.

    Parameters
    ----------
    path : str or Path
        Where to write. Missing directories are made.
    content : str or bytes or callable
        Text (written as UTF-8 with ``\\n``), bytes, or a function that is called with a binary file object.

    Returns
    -------
    Path
        `path`.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with open(temporary, "wb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content.encode("utf-8") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def write_model(path, head, arrays):
    """Write a model as one .npz file without pickle, whole or not at all.

    Parameters
    ----------
    path : str or Path
    head : dict
        What JSON holds: class, parameters, plain attributes.
    arrays : dict of str to ndarray

    Raises
    ------
    TypeError
        If `head` holds what JSON cannot.
    """
    text = json.dumps(head, default=_plain)
    atomic_write(
        path,
        lambda file: np.savez_compressed(file, header=np.frombuffer(text.encode(), dtype=np.uint8), **arrays),
    )


def read_model(path, rebuild):
    """Read a file of `write_model` and make a model of it.

    Parameters
    ----------
    path : str or Path
    rebuild : callable(head, arrays)
        Any exception of it means a damaged file.

    Returns
    -------
    object
        Of `rebuild`.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file; if it is damaged or not one of ours.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return rebuild(json.loads(arrays.pop("header").tobytes().decode()), arrays)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(
            f"{os.fspath(path)} is not a model saved by cuelearn, or is damaged: {error}"
        ) from error


def saved_parameters(estimator, kernels):
    """Constructor arguments of an estimator for JSON: without a callback and a `random_state` that is no seed.

    Parameters
    ----------
    estimator : BaseEstimator
    kernels : bool
        Whether its `kernels` are kept ("precomputed"), or come back from elsewhere in the file.
    """
    parameters = estimator.get_params(deep=False)
    parameters.pop("callback", None)
    if not kernels:
        parameters["kernels"] = None
    if not isinstance(parameters.get("random_state"), (type(None), int, np.integer)):
        parameters["random_state"] = None
    return parameters


def construct(cls, parameters):
    """An estimator of saved constructor arguments; lists where its defaults are tuples were tuples, which JSON has not."""
    model = cls(**parameters)
    for name, parameter in inspect.signature(cls).parameters.items():
        if isinstance(parameter.default, tuple) and isinstance(parameters.get(name), list):
            setattr(model, name, tuple(parameters[name]))
    return model


def expect_class(model, cls, path):
    """`model`, read from `path`, if it is of a class; else a ValueError that says what the file holds."""
    if not isinstance(model, cls):
        raise ValueError(f"{path} holds a {type(model).__name__}, not a {cls.__name__}")
    return model


class Loadable:
    """Gives a class the `load` that goes with its `save`. `_rebuild` makes a model of what `write_model` wrote."""

    @classmethod
    def load(cls, path):
        """Load a model saved by `save`.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        estimator

        Raises
        ------
        ValueError
            If the file is damaged, of another format, or holds another class.
        """
        return expect_class(read_model(path, cls._rebuild), cls, path)


def _plain(value):
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"cannot save a value of type {type(value).__name__} without pickle")
