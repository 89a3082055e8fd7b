"""Types in annotations of the public interface."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike  # noqa: F401 - imported from here
from scipy.sparse import sparray, spmatrix

from cuelearn.kernels.specifications import Kernel

#: As in ColumnTransformer; a function is called with X.
ColumnSpec = int | str | slice | Sequence[int] | Sequence[str] | np.ndarray | Callable[[Any], Any]
KernelSpec = Kernel | str | Callable[[np.ndarray, np.ndarray], ArrayLike]
KernelList = (
    Sequence[KernelSpec | tuple[str, KernelSpec, ColumnSpec]] | Kernel | Literal["precomputed"] | None
)
#: DataFrames are ArrayLike.
MatrixLike = ArrayLike | sparray | spmatrix
Index = slice | Sequence[int] | np.ndarray
SampleWeight = ArrayLike | None
Missing = Literal["error", "zero"]
RandomState = int | np.random.Generator | np.random.RandomState | None
ClassWeight = Literal["balanced"] | Mapping[Any, float] | None
Folds = list[tuple[np.ndarray, np.ndarray]] | None
#: Called with the estimator and the step; a true result stops the training.
Callback = Callable[[Any, int], object] | None
