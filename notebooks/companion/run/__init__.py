"""From executed notebooks to figures, tables and verdicts: the runner, cached sweeps, provenance."""

from cuelearn.expect import require

require("plots", "matplotlib")
