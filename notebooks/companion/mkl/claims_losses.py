"""What the claims on losses beyond the hinge are judged by."""

from companion.mkl.losses import PAIRS, PROBABILISTIC
from companion.run.claims import Part, judges

#: Of root mean square errors in standard deviations of y: what counts as no worse.
NO_WORSE = 0.01
#: Of calibration errors and log losses: the smallest difference that counts.
COUNTS = 0.01


def errors_by_task(results):
    table = results.table("loss-regression")
    for task, runs in table.groupby("task", sort=False):
        yield task, runs.pivot(index="seed", columns="method", values="error")


def no_worse(task, errors, method, rival):
    says = f"{task}: {method} errs no more than {rival}"
    measure = "difference of root mean square errors over the deviation of y"
    return Part(says, measure, errors[method], errors[rival], at_most=NO_WORSE, of=task)


@judges("loss-1", "loss-regression")
def loss_1(results):
    for task, errors in errors_by_task(results):
        for method, rival in PAIRS.items():
            yield no_worse(task, errors, method, rival)


@judges("loss-2", "loss-regression")
def loss_2(results):
    for task, errors in errors_by_task(results):
        yield no_worse(task, errors, "OBSCURE, insensitive", "p-norm SVR")


@judges("loss-3", "loss-reliability")
def loss_3(results):
    table = results.table("loss-reliability").drop_duplicates(["task", "seed", "method"])
    method, *rivals = PROBABILISTIC
    for task, runs in table.groupby("task", sort=False):
        for column, measure in (("calibration", "expected calibration error"), ("log_loss", "log loss")):
            values = runs.pivot(index="seed", columns="method", values=column)
            for rival in rivals:
                says = f"{task}: a lower {measure} than the {rival}"
                more = {"at_most": 0.0, "relevant": COUNTS, "of": task}
                yield Part(says, f"difference of the {measure}", values[method], values[rival], **more)
