"""Processes that tests start."""

import subprocess


def printed(command, status=0, **options):
    """What a process says, which must end with this status."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, text=True, **pipes, **options)
    assert done.returncode == status, done.stdout[-8000:]
    return done.stdout
