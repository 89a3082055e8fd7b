"""The chapters' drawings: functions from the numbers of an experiment to a figure."""

from cuelearn.expect import require

require("plots", "matplotlib")
