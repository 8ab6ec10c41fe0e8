#!/usr/bin/env python3
"""The random drill, watched while it runs: what would agents have shown, and when?

    drill_live.py [--jobs N] [--first N] [--even] [-j N] [--table FILE]

Agents judge speed every ten seconds, over what the buffers hold, and show what two judgements in a row find (doctor/live_speed.c). A job is
judged thousands of times a day, so a rule that is right about whole recordings could still accuse somebody every night, or report a fault and
drop it again. Each job is played once, and its recording judged at every tenth second over the minute before. Jobs are those of
drill_jobs.py that have no hang and no damaged files, up to 64 ranks, and last minutes instead of seconds. Prints what was wrong with the command
that repeats it, then the table. BUILD is the build directory.
"""

import argparse
import concurrent.futures
import itertools
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import drill_jobs  # noqa: E402
import live_job  # noqa: E402
from drill_random import Drill, best_grade, time_of  # noqa: E402

STEP_S = 10                 # between judgements
WINDOW_S = 60               # what the buffers hold
LEAST_S = 60
MOST_S = 200
OPERATIONS = 2000000
MATTERS = 0.1               # of the job's time: a fault that should be found
NEVER_S = 1e9


class Watched:
    """What agents would have shown of one job."""

    def __init__(self, job):
        self.job = job
        self.judgements = 0
        self.seconds = 0
        self.cost = None
        self.shown = []             # (second, grade, verdict)
        self.dropped = []           # (second, verdict) while the fault lasted and could be compared with before
        self.error = None

    def wrong(self):
        return [entry for entry in self.shown if entry[1] not in ("right", "vague")]

    def found(self):
        """Seconds from the fault to the right verdict."""
        times = [second for second, grade, _ in self.shown if grade == "right"]
        return min(times) - begin_of(self.job) if times else None


def times_of(job, key, otherwise):
    return [time_of(text, key, otherwise) for fault in job.faults for text in fault.texts()]


def begin_of(job):
    return min(times_of(job, "at", 0.0) or [NEVER_S])


def end_of(job):
    return min(times_of(job, "until", NEVER_S) or [NEVER_S])


def is_suitable(job):
    is_plain = not job.damage and not job.first and not any(fault.is_hang or fault.baseline for fault in job.faults)
    iterations = 20 if "--rate" in job.extra else 1 / drill_jobs.PERIOD_S[job.workload]
    job.seconds = min(MOST_S, OPERATIONS / (drill_jobs.operations_of(job) * iterations * job.world()))
    return is_plain and job.world() <= 64 and job.seconds >= LEAST_S


def is_over(verdict):
    """In a running job it would be a note that it was so."""
    return any(re.search(r"until [0-9][0-9]:[0-9][0-9]", line) for line in verdict["evidence"])


def key_of(verdict):
    return verdict["class"], verdict["rank"], verdict["peer"], verdict["host"]


def watch(drill, watched, directory):
    job, before, shown = watched.job, {}, set()
    faults = job.faults
    for second in range(STEP_S, int(watched.seconds) + 1, STEP_S):
        document, _ = drill.ask(job, directory, ["--since", "%ds" % max(0, second - WINDOW_S), "--until", "%ds" % second])
        now = {key_of(verdict): verdict for verdict in document["verdicts"]
               if verdict["class"] in drill_jobs.SLOW and verdict["severity"] != "note" and not is_over(verdict)}
        watched.judgements += 1
        for key in [key for key in now if key in before and key not in shown]:
            grade = best_grade(faults, now[key]) if second > begin_of(job) else "class"
            watched.shown.append((second, grade, now[key]))
            shown.add(key)
        for key in [key for key in shown if key not in now and key not in before]:
            shown.remove(key)
            # With little from before the fault, "slower than before" cannot be found again: agents hold it for a while.
            if begin_of(job) > second - WINDOW_S + STEP_S and second < end_of(job):
                watched.dropped.append((second, key))
        before = now


def play_and_watch(drill, job):
    watched = Watched(job)
    directory = os.path.join(drill.scratch, "job-%d" % job.number)
    try:
        played = drill.play(job.command(), directory)
        watched.seconds = played["duration_ns"] / 1e9
        watch(drill, watched, directory)
        if job.faults:
            watched.cost = drill.measure_cost(job, played, directory + "-calm")
    except (RuntimeError, ValueError, KeyError, OSError, subprocess.SubprocessError) as error:
        watched.error = str(error)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.rmtree(directory + "-calm", ignore_errors=True)
    return watched


def tell(watched):
    lines = ["# case %d, %s: cannot be judged: %s" % (watched.job.number, watched.job.row, watched.error)] if watched.error else []
    lines += ["# case %d, %s: after %d s, wrong: %s" % (watched.job.number, watched.job.row, second, verdict["title"])
              for second, _, verdict in watched.wrong()]
    lines += ["# case %d, %s: after %d s, dropped: %s" % (watched.job.number, watched.job.row, second, key)
              for second, key in watched.dropped]
    if lines:
        print("\n".join(lines + ["#   ringside sim %s -o DIR" % " ".join(watched.job.command())]), flush=True)


def report(all_watched, arguments):
    watched = [one for one in all_watched if one.error is None]
    healthy = [one for one in watched if begin_of(one.job) == NEVER_S]
    costly = [one for one in watched if one not in healthy and one.cost is not None and one.cost >= MATTERS]
    others = [one for one in watched if one not in healthy and one not in costly]
    took = sorted(one.found() for one in costly if one.found() is not None)
    numbers = [one.job.number for one in watched]
    calm_s = sum(min(one.seconds, begin_of(one.job)) if one not in healthy else one.seconds for one in watched)
    early = [one for one in watched if one not in healthy and any(second <= begin_of(one.job) for second, _, _ in one.shown)]
    lines = ["The doctor's drill, watched while it runs: what agents would have shown.", "",
             "Made by: tests/doctor/drill_live.py --jobs %d%s%s" % (
                 arguments.jobs, " --first %d" % arguments.first if arguments.first > 1 else "", " --even" if arguments.even else ""),
             "%d jobs of %d to %d ranks that last %d to %d s; cases %d to %d, %s numbers. Judged every %d s over the last %d s, %d times in all;" % (
                 len(watched), min(one.job.world() for one in watched), max(one.job.world() for one in watched),
                 min(one.seconds for one in watched), max(one.seconds for one in watched), min(numbers), max(numbers),
                 "even" if arguments.even else "odd", STEP_S, WINDOW_S, sum(one.judgements for one in watched)),
             "shown is what two judgements in a row find. %d jobs could not be judged. Jobs whose release does not record the times that" % (
                 len(all_watched) - len(watched)),
             "would show the fault are counted as well.", "",
             "healthy, or before the fault: %.1f h of job time; shown in %d of %d jobs" % (
                 calm_s / 3600, sum(bool(one.shown) for one in healthy) + len(early), len(watched)),
             "faults that cost 10%% or more: right cause shown in %d of %d; wrong in %d; shown and dropped in %d" % (
                 len(took), len(costly), sum(bool(one.wrong()) for one in costly), sum(bool(one.dropped) for one in costly)),
             "faults that cost less: right cause shown in %d of %d; wrong in %d; shown and dropped in %d" % (
                 sum(one.found() is not None for one in others), len(others), sum(bool(one.wrong()) for one in others),
                 sum(bool(one.dropped) for one in others))]
    if took:
        lines.append("from a fault that costs 10%% or more to the right verdict: median %.0f s, nine of ten within %.0f s" % (
            statistics.median(took), took[min(len(took) - 1, len(took) * 9 // 10)]))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--first", type=int, default=1, help="the first number that is taken")
    parser.add_argument("--even", action="store_true", help="the cases for tuning")
    parser.add_argument("-j", "--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--table", help="write the table here")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    scratch = tempfile.mkdtemp(prefix="ringside-drill-", dir=live_job.memory(1 << 30))
    drill = Drill(os.path.abspath(os.environ.get("BUILD", "build")), scratch)
    suitable = filter(is_suitable, map(drill_jobs.Job, drill_jobs.numbers(arguments.first, arguments.even)))
    jobs, done = list(itertools.islice(suitable, arguments.jobs)), []
    try:
        with concurrent.futures.ThreadPoolExecutor(arguments.workers) as pool:
            for watched in pool.map(lambda one: play_and_watch(drill, one), jobs):
                tell(watched)
                done.append(watched)
                if sys.stderr.isatty() and len(done) % 50 == 0:
                    print("# %d of %d" % (len(done), len(jobs)), file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    text = report(done, arguments)
    print(text, end="")
    if arguments.table:
        with open(arguments.table, "w", encoding="utf-8") as file:
            file.write(text)
    return 1 if any(watched.error for watched in done) else 0


if __name__ == "__main__":
    sys.exit(main())
