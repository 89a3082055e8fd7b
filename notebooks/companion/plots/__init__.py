"""The chapters' drawings: functions from the numbers of an experiment to a figure."""

from cuelearn.core.optional import require

require("plots", "matplotlib")
