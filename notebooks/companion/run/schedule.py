"""Figures and notebooks made by several worker processes: the longest first, whatever their chapter.

A worker is the runner in a process of its own, which keeps what it has loaded and compiled for its next task.
It reads tasks from stdin, a line of JSON each, and answers on stdout. A chapter's notebook is a task, too: it
can be executed when its figures are made. A process that ends takes its workers with it, since their stdin
ends.
"""

import _thread
import json
import os
import queue
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from companion.run.records import cpu_seconds
from companion.run.sweep import try_lock

#: Environment variable of a worker: the processes of a sweep.
WORKER = "CUELEARN_WORKER"
#: Seconds without a finished figure after which the log says what is being made.
SILENCE = 60.0
#: Seconds that a worker has to end.
PATIENCE = 10.0
#: Share of the work from which the time that is left can be told.
ENOUGH = 0.1
#: Characters of a worker's output that are shown when it has failed.
MOST_PRINTED = 3000


class Task(NamedTuple):
    """A figure to be made, or, where `figure` is empty, the notebook of a chapter to be executed."""

    chapter: str
    figure: str
    seconds: float | None  # CPU seconds that it took before, None if that is not known

    def __str__(self):
        return self.figure or f"notebook {self.chapter}"


# --- the worker ---------------------------------------------------------------------------------------------


def serve(make):
    """Make what stdin asks for until it ends; ``make(chapter, figure)`` returns an answer (dict)."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a figure prints is no answer
    requests = queue.SimpleQueue()
    busy = threading.Event()

    def listen():
        for line in open(0, "rb", buffering=0, closefd=False):
            requests.put(json.loads(line))
        requests.put(None)
        if busy.is_set():
            _thread.interrupt_main()

    threading.Thread(target=listen, daemon=True).start()
    while (request := requests.get()) is not None:
        busy.set()
        start = cpu_seconds()
        answer = make(*request)
        answer["seconds"] = round(cpu_seconds() - start, 2)
        busy.clear()
        print(json.dumps(answer), file=answers, flush=True)


class Worker:
    """A process that makes one task at a time; its answers come to the queue `answers`."""

    def __init__(self, command, number, place, n_jobs, answers):
        self.task = None
        self.command = command
        self.answers = answers
        self.core = place / "cores" / str(number)
        self.core.touch()
        self.held = None
        self.progress = place / f"progress-{number}"
        self.printed = place / f"printed-{number}"
        self.environment = os.environ | {
            WORKER: str(n_jobs),
            "CUELEARN_PROGRESS": str(self.progress),
            "CUELEARN_CORES": str(place / "cores"),
        }
        self.process = None

    def has_core(self):
        """Whether its core is its own: while it has nothing to make, a sweep may take it."""
        if self.held is None:
            self.held = try_lock(self.core)
        return self.held is not None

    def give_core(self):
        if self.held is not None:
            self.held.close()
        self.held = None

    def start(self, task):
        if self.process is None or self.process.poll() is not None:
            self._launch()
        self.task = task
        self.began = time.monotonic()
        self.progress.unlink(missing_ok=True)
        print(json.dumps([task.chapter, task.figure]), file=self.process.stdin, flush=True)

    def _launch(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with open(self.printed, "w") as printed:
            self.process = subprocess.Popen(self.command, env=self.environment, stderr=printed, **pipes)
        threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()

    def _listen(self, process):
        for line in process.stdout:
            self.answers.put((self, process, json.loads(line)))
        status = process.wait()
        printed = self.printed.read_text(errors="replace")[-MOST_PRINTED:]
        trouble = f"{printed}\nits process ended with status {status}"
        self.answers.put((self, process, {"trouble": trouble, "seconds": 0.0}))

    def end(self):
        """Let the process end, also in the middle of a task."""
        if self.process is None:
            return
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:  # it is in a long loop of compiled code
            self.process.kill()

    def state(self):
        """The task, and where it is at."""
        try:
            return f"{self.task} ({self.progress.read_text()})"
        except OSError:
            return str(self.task)


# --- the run ------------------------------------------------------------------------------------------------


class Progress:
    """What is printed while a run makes its tasks: one line when a figure or a chapter is finished."""

    def __init__(self, tasks):
        known = sorted(task.seconds for task in tasks if task.seconds is not None)
        self.usual = known[len(known) // 2] if len(known) > len(tasks) / 2 else None
        self.n_tasks = len(tasks)
        self.n_done = 0
        self.total = sum(map(self.expected, tasks))
        self.done = 0.0
        self.began = time.monotonic()

    def expected(self, task):
        return task.seconds or self.usual or 0.0

    def finish(self, task):
        self.n_done += 1
        self.done += self.expected(task)

    def line(self, message, workers):
        """A message after how many tasks are done and, where it is known how long they take, their share of
        the work and the time that is left."""
        count = f"{self.n_done:{len(str(self.n_tasks))}}/{self.n_tasks}"
        if self.usual:
            now = time.monotonic()
            begun = [worker for worker in workers if worker.task is not None]
            done = self.done + sum(min(now - w.began, 0.9 * self.expected(w.task)) for w in begun)
            share = done / self.total
            count += f", {share:.0%}"
            if ENOUGH < share < 1.0:
                count += f", {_minutes((now - self.began) * (1.0 / share - 1.0))} left"
        print(f"[{count}] {message}", flush=True)


def _minutes(seconds):
    return f"about {seconds / 60:.0f} min" if seconds >= 90 else f"about {seconds:.0f} s"


def in_order(tasks):
    """The order in which tasks begin: the longest first, but before them the shortest figure, to be seen at
    once. Notebooks come when their figures are made."""
    figures = [task for task in tasks if task.figure]
    known = [task for task in figures if task.seconds is not None]
    first = sorted(known, key=lambda task: task.seconds)[:1]
    unknown = [task for task in tasks if task.seconds is None]
    others = [task for task in tasks if task not in first + unknown]
    return first + unknown + sorted(others, key=lambda task: -task.seconds)


def run(tasks, command, n_workers, n_jobs, finished):
    """Make all tasks in `n_workers` processes of `n_jobs` each; ``finished(task, answer)`` returns the line
    that is printed then."""
    answers = queue.SimpleQueue()
    waiting = in_order(tasks)
    progress = Progress(tasks)
    with tempfile.TemporaryDirectory() as place:
        Path(place, "cores").mkdir()
        workers = [Worker(command, number, Path(place), n_jobs, answers) for number in range(n_workers)]
        try:
            while waiting or any(worker.task for worker in workers):
                for worker in workers:
                    unfinished = {task.chapter for task in waiting if task.figure}
                    unfinished |= {w.task.chapter for w in workers if w.task is not None}
                    ready = [task for task in waiting if task.figure or task.chapter not in unfinished]
                    if worker.task is None and ready and worker.has_core():
                        waiting.remove(ready[0])
                        worker.start(ready[0])
                    elif worker.task is None:
                        worker.give_core()
                try:
                    worker, process, answer = answers.get(timeout=SILENCE)
                except queue.Empty:
                    progress.line("at work: " + ", ".join(w.state() for w in workers if w.task), workers)
                    continue
                task = worker.task
                if task is None or process is not worker.process:  # it ended when it had nothing to make
                    continue
                worker.task = None
                progress.finish(task)
                progress.line(finished(task, answer), workers)
        finally:
            for worker in workers:
                worker.end()
