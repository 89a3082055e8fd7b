"""A state of an estimator to return to when a call fails or is interrupted."""

import numpy as np


class Changing:
    """Base of objects within an estimator that `partial_fit` changes.

    Attributes may be replaced freely. Arrays are changed in place only after `_own`, or beyond the part in
    use, since a `Checkpoint` shares them.
    """

    #: Arrays that are only written beyond the part in use.
    APPENDED = ()

    def _own(self):
        """Copy the arrays that are changed in place."""
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and name not in self.APPENDED:
                setattr(self, name, value.copy())


class Checkpoint:
    """Attributes of an estimator and of all `Changing` objects within it, and states of random generators; no
    array is copied."""

    def __init__(self, estimator):
        self.estimator = estimator
        self.take()

    def take(self):
        """Note the state to return to."""
        objects = {}
        generators = {}
        _collect(self.estimator, objects, generators)
        self._state = objects, generators

    def restore(self):
        objects, generators = self._state
        for generator, state in generators.values():
            generator.bit_generator.state = state
        for changed, attributes in objects.values():
            changed.__dict__ = dict(attributes)


def _collect(value, objects, generators):
    """Add {id: (object, attributes)} and {id: (generator, state)} of a value and all within it."""
    if isinstance(value, Changing):
        if id(value) in objects:
            return
        attributes = {name: held for name, held in vars(value).items() if name != "_checkpoint"}
        objects[id(value)] = value, attributes
        for held in attributes.values():
            _collect(held, objects, generators)
    elif isinstance(value, (list, tuple)):
        for held in value:
            _collect(held, objects, generators)
    elif isinstance(value, np.random.Generator):
        generators[id(value)] = value, value.bit_generator.state
