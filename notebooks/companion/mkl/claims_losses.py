"""What the claims on losses beyond the hinge are judged by."""

from companion.mkl.losses import PAIRS, PROBABILISTIC
from companion.run.claims import Mean, claim

#: Of root mean square errors in standard deviations of y: what counts as no worse.
NO_WORSE = 0.01
#: Of calibration errors and log losses: the smallest difference that counts.
COUNTS = 0.01
TASKS = {"by": "task", "wide": "error"}


def no_worse(method, rival):
    says = f"{{task}}: {method} errs no more than {rival}"
    measure = "difference of root mean square errors over the deviation of y"
    return Mean(says, measure, method, rival, at_most=NO_WORSE, of="{task}")


claim("loss-1", "loss-regression", *(no_worse(*pair) for pair in PAIRS.items()), **TASKS)
claim("loss-2", "loss-regression", no_worse("OBSCURE, insensitive", "p-norm SVR"), **TASKS)

method, *rivals = PROBABILISTIC
texts = "{task}: a lower {column_title} than the {rival}", "difference of the {column_title}"
pair = f"{{column}} {method}", "{column} {rival}"
claim(
    "loss-3",
    "loss-reliability",
    Mean(*texts, *pair, at_most=0.0, relevant=COUNTS, of="{task}"),
    table=lambda results: results.table("loss-reliability").drop_duplicates(["task", "seed", "method"]),
    by="task",
    wide=["calibration", "log_loss"],
    column={"calibration": "expected calibration error", "log_loss": "log loss"},
    rival=rivals,
)
