"""From executed notebooks to figures, tables and verdicts: the runner, cached sweeps, provenance."""

from cuelearn.core.optional import require

require("plots", "matplotlib")
