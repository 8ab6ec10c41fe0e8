#!/usr/bin/env python3
"""The random drill: jobs with random faults are simulated, and the doctor's verdicts are compared with them.

    drill_random.py [--jobs N] [--first N] [--even] [--only WORD] [-j N] [--table FILE]
    drill_random.py --case N [--keep DIR]

Cases have odd numbers; --even takes the even ones, on which the doctor may be tuned. Prints misses with the
command that repeats them, then the tables. BUILD is the build directory.
"""

import argparse
import collections
import concurrent.futures
import filecmp
import glob
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import drill_jobs  # noqa: E402
import live_job  # noqa: E402

COLUMNS = ("right", "harmless", "vague", "extra", "culprit", "class", "silent", "unjudged", "accused")
GOOD = ("right", "harmless")
WRONG = ("extra", "culprit", "class", "accused")
HARMLESS = 0.02             # of a job's time: a note is enough
COST_ERROR = (2, 0.15)      # points of a percentage, or share of it, by which a cost without a bound may be wrong
NOTED = 0.05                # up to here a note that names the culprit is right
BUCKETS = (0, 0.5, 0.8, 0.95, 0.99, 1.01)
COSTS = (("below 2%", -1, 0.02), ("2 to 5%", 0.02, 0.05), ("5 to 10%", 0.05, 0.1), ("10 to 30%", 0.1, 0.3),
         ("30% or more", 0.3, 1e9))


class Outcome:
    """What the doctor said about one job."""

    def __init__(self, job):
        self.job = job
        self.row = job.row
        self.column = None
        self.cost = None            # of slow faults: time lost while they last, relative to the time without them
        self.stated = []            # (class, percent, cost_bound) of warnings about the fault
        self.told = []              # (class, rank, peer, host, severity, confidence, title)
        self.confidence = None      # of its first warning or error
        self.wrong_confidence = 0   # the highest of a wrong one
        self.both = None            # of two faults: whether both were named
        self.matter = None          # of two faults: whether each of them would cost enough alone, and is somebody's
        self.alike = None           # of a hang: another rank whose fault would leave the same files
        self.error = None


def run(command, environment):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300,
                          env=environment, check=False)


def time_of(text, key, otherwise):
    """Seconds of ",at=3.00s" in a fault."""
    found = re.search(r",%s=([0-9.]+)s" % key, text)
    return float(found.group(1)) if found else otherwise


class Drill:
    def __init__(self, build, scratch):
        self.ringside = os.path.join(build, "ringside")
        self.scratch = scratch
        self.environment = live_job.clean_environment()

    def play(self, options, directory):
        result = run([self.ringside, "sim", "--json", *options, "-o", directory], self.environment)
        if result.returncode != 0:
            raise RuntimeError("cannot play it: %s" % result.stderr.strip())
        return json.loads(result.stdout)

    def damage(self, job, directory):
        for what, which in job.damage:
            if what == "without rank":
                wanted = ["r%d-*" % which]
            elif what == "without node":
                wanted = ["r*-node%04d-*" % which]
            else:
                wanted = ["r%d-*" % rank for rank in which[0]]
            for pattern in wanted:
                for path in glob.glob(os.path.join(directory, pattern)):
                    if what == "cut":
                        os.truncate(path, int(os.path.getsize(path) * which[1]))
                    else:
                        os.unlink(path)

    def measure_cost(self, job, played, directory):
        """Time lost while the fault lasts, against as many iterations of the same job without it."""
        calm = self.play(job.command(False, max(1, played["iterations"])), directory)
        lost_s = (played["duration_ns"] - calm["duration_ns"]) / 1e9
        began_s = min(time_of(text, "at", 0.0) for fault in job.faults for text in fault.texts() or [""])
        over_s = played["duration_ns"] / 1e9
        lasted_s = max(time_of(text, "until", over_s) for fault in job.faults for text in fault.texts() or [""]) - began_s
        return max(0.0, lost_s) / max(0.5, lasted_s - max(0.0, lost_s))

    def do_both_matter(self, job, directory):
        """Each of two faults, alone. Nobody could be named for some; a hang always matters."""
        both = job.faults
        try:
            for fault in both:
                if fault.row == "power-cap" or fault.row.startswith("fewer channels") or \
                        fault.row.endswith("baseline") or not fault.is_seen:
                    return False
                if fault.is_hang:
                    continue
                job.faults = [fault]
                played = self.play(job.command(), directory)
                shutil.rmtree(directory)
                cost = self.measure_cost(job, played, directory)
                shutil.rmtree(directory)
                if cost < HARMLESS:
                    return False
        finally:
            job.faults = both
            shutil.rmtree(directory, ignore_errors=True)
        return True

    def ask(self, job, directory, options):
        result = run([self.ringside, "doctor", "--json", *options, directory], self.environment)
        if result.returncode not in (0, 1, 3):
            raise RuntimeError("the doctor ends with %d: %s" % (result.returncode, result.stderr.strip()[-300:]))
        return json.loads(result.stdout), result.returncode

    def find_alike(self, job, directory):
        """Another rank of the same host: the same fault there leaves the same files, byte by byte."""
        fault, other = job.faults[0], directory + "-alike"
        found = re.search(r"rank=([0-9]+)", fault.text)
        text, rank, at_s = fault.text, int(found.group(1)), time_of(fault.text, "at", 0.0)
        first = rank // job.gpus * job.gpus
        others = [twin for twin in range(first, first + job.gpus) if twin != rank][:3]
        try:
            # Ranks reach the operation that hangs at slightly different times.
            for twin, later_s in ((t, s) for s in (0, 0.002, -0.002, 0.01, -0.01, 0.03, -0.03) for t in others):
                fault.text = re.sub(r"at=[0-9.]+s", "at=%.3fs" % (at_s + later_s),
                                    text.replace(found.group(0), "rank=%d" % twin))
                shutil.rmtree(other, ignore_errors=True)
                self.play(job.command(), other)
                self.damage(job, other)
                names = sorted(os.listdir(directory))
                if names == sorted(os.listdir(other)) and \
                        not any(filecmp.cmpfiles(directory, other, names, shallow=False)[1:]):
                    return twin
        finally:
            fault.text = text
            shutil.rmtree(other, ignore_errors=True)
        return None

    def judge(self, job, keep=None):
        outcome = Outcome(job)
        directory = keep or os.path.join(self.scratch, "job-%d" % job.number)
        calm = os.path.join(self.scratch, "calm-%d" % job.number)
        options = []
        try:
            if job.first:
                self.play(job.first, directory)
            played = self.play(job.command(), directory)
            if job.faults and not any(fault.is_hang for fault in job.faults):
                outcome.cost = self.measure_cost(job, played, calm)
                shutil.rmtree(calm, ignore_errors=True)
            if any(fault.baseline for fault in job.faults):
                seed = job.number
                job.number += 1000000
                self.play(job.command(False), calm)
                job.number = seed
                saved = run([self.ringside, "baseline", "save", calm, "-o", calm + ".json"], self.environment)
                if saved.returncode != 0:
                    raise RuntimeError("cannot save a baseline: %s" % saved.stderr.strip())
                options = ["--baseline", calm + ".json"]
            if len(job.faults) > 1:
                outcome.matter = self.do_both_matter(job, calm)
            self.damage(job, directory)
            document, code = self.ask(job, directory, options)
            grade_outcome(outcome, document, code, played["end"] == "hung")
            if outcome.column in ("vague", "unjudged") and len(job.faults) == 1 and \
                    job.faults[0].row.startswith("gpu-stuck"):
                outcome.alike = self.find_alike(job, directory)
        except (RuntimeError, ValueError, KeyError, OSError, subprocess.SubprocessError) as error:
            outcome.error = str(error)
            outcome.column = "unjudged"
        finally:
            if not keep:
                shutil.rmtree(directory, ignore_errors=True)
            shutil.rmtree(calm, ignore_errors=True)
            if os.path.exists(calm + ".json"):
                os.unlink(calm + ".json")
        return outcome


# ---- grading -------------------------------------------------------------------------------------

def best_grade(faults, verdict):
    """About the fault that it fits best."""
    order = ("right", "vague", "culprit", "class")
    grades = [fault.grade(verdict) for fault in faults] or ["class"]
    best = min(grades, key=order.index)
    # About a rank without a file there is nothing else to say.
    if verdict["class"] == "unseen" and any(fault.is_hang and not fault.is_seen for fault in faults):
        best = "right"
    return best


def grade_outcome(outcome, document, code, is_hung):
    job = outcome.job
    accusing = [v for v in document["verdicts"]
                if v["class"] not in ("setup", "blind") and v["severity"] != "note"]
    notes = [v for v in document["verdicts"]
             if v["class"] not in ("setup", "blind") and v["severity"] == "note"]
    faults = [fault for fault in job.faults if not fault.is_hang or is_hung]
    outcome.told = [(v["class"], v["rank"], v["peer"], v["host"], v["severity"], v["confidence"], v["title"])
                    for v in accusing + notes]
    outcome.confidence = accusing[0]["confidence"] if accusing else None
    if job.row not in ("healthy",) and job.faults and not faults:
        outcome.row = "healthy: its fault met no call"
    if not faults:
        outcome.column = "accused" if accusing else "right"
        if accusing:
            outcome.wrong_confidence = max(v["confidence"] or 0 for v in accusing)
        elif code == 3 and not job.damage:
            outcome.column = "unjudged"
        return
    outcome.stated = [(v["class"], v["cost_percent"], v["cost_bound"]) for v in accusing
                      if best_grade(faults, v) in ("right", "vague") and v["cost_percent"] is not None]
    is_harmless = outcome.cost is not None and outcome.cost < HARMLESS
    grades = [best_grade(faults, verdict) for verdict in accusing]
    outcome.wrong_confidence = max([v["confidence"] or 0 for v, grade in zip(accusing, grades)
                                    if grade in ("culprit", "class")] or [0])
    if not accusing:
        is_noted = any(best_grade(faults, v) == "right" for v in notes) and \
            (outcome.cost is None or outcome.cost < NOTED)
        if is_noted:
            outcome.column = "right"
        elif is_harmless or job.is_young:
            outcome.column = "harmless"
        else:
            outcome.column = "unjudged" if code == 3 or document["not_judged"] else "silent"
    elif grades[0] == "right":
        outcome.column = "extra" if any(grade in ("culprit", "class") for grade in grades) else "right"
    else:
        outcome.column = grades[0]
    if len(faults) > 1 and outcome.column == "right":
        outcome.both = all(any(fault.grade(v) == "right" for v in accusing) for fault in faults)


# ---- tables --------------------------------------------------------------------------------------

def is_slow(outcome):
    return outcome.cost is not None


def count_row(name, outcomes, width):
    counts = collections.Counter(outcome.column for outcome in outcomes)
    return "%-*s" % (width, name) + "".join("%9s" % (counts[c] or ".") for c in COLUMNS) + "%7d" % len(outcomes)


def matrix(title, groups):
    width = max([len(name) for name in groups] + [len(title)]) + 2
    lines = ["%-*s" % (width, title) + "".join("%9s" % column for column in COLUMNS) + "   jobs"]
    lines += [count_row(name, groups[name], width) for name in groups]
    return lines + [count_row("all", [o for some in groups.values() for o in some], width), ""]


def grouped(outcomes, key):
    groups = collections.defaultdict(list)
    for outcome in outcomes:
        groups[key(outcome)].append(outcome)
    return {name: groups[name] for name in sorted(groups)}


def calibration(outcomes):
    lines = ["stated confidence of the first warning or error, and how many of these jobs are right (vague ones named no culprit)", "",
             "%-16s%8s%8s%8s%8s%9s" % ("", "jobs", "right", "vague", "wrong", "right")]
    for kind in ("hang", "slow"):
        for low, high in zip(BUCKETS, BUCKETS[1:]):
            mine = [o for o in outcomes if o.confidence is not None and low <= o.confidence < high and
                    (o.told[0][0] in drill_jobs.SLOW) == (kind == "slow")]
            if not mine:
                continue
            right = sum(o.column in GOOD for o in mine)
            vague = sum(o.column == "vague" for o in mine)
            lines.append("%-4s %.2f to %.2f%8d%8d%8d%8d%8.1f%%" % (
                kind, low, min(high, 1), len(mine), right, vague, len(mine) - right - vague,
                100.0 * right / len(mine)))
    return lines + [""]


def by_cost(outcomes):
    slow = [o for o in outcomes if is_slow(o) and len(o.job.faults) == 1]
    groups = {name: [o for o in slow if low <= o.cost < high] for name, low, high in COSTS}
    return matrix("slow faults, by cost", {name: some for name, some in groups.items() if some})


def costly(outcomes):
    return [o for o in outcomes if all(fault.is_seen for fault in o.job.faults) and is_slow(o) and
            len(o.job.faults) == 1 and o.cost >= 0.1 and o.job.has_kernels()]


def contains(stated, bound, true):
    """Is the true cost in the stated range? Both in percent."""
    error = max(COST_ERROR[0], COST_ERROR[1] * stated)
    return (bound == "most" or true >= stated - error) and (bound == "least" or true <= stated + error)


def stated_costs(outcomes):
    """(stated, bound, true) of warnings about the only fault of a job, as shares of the time while it lasts."""
    return [(percent, bound, 100 * o.cost / (1 + o.cost)) for o in outcomes if is_slow(o) and len(o.job.faults) == 1
            for _, percent, bound in o.stated]


def wrong_costs(outcome):
    return [one for one in stated_costs([outcome]) if not contains(*one)]


def costs(outcomes):
    known = stated_costs(outcomes)
    if not known:
        return []
    names = {None: "costs N%", "most": "costs up to N%", "least": "costs at least N%"}
    lines = ["stated cost of the warnings about a job's only fault; N%% means N%% give or take %d%% of it, at least %d" % (
        100 * COST_ERROR[1], COST_ERROR[0]), "", "%-20s%8s%10s%9s" % ("", "stated", "true", "")]
    for bound, name in names.items():
        mine = [one for one in known if one[1] == bound]
        if mine:
            good = sum(contains(*one) for one in mine)
            lines.append("%-20s%8d%10d%8.1f%%" % (name, len(mine), good, 100.0 * good / len(mine)))
    return lines + [""]


def left_out(outcomes):
    """Slow faults that do not count for the target, and why."""
    why = collections.Counter(o.job.hidden() for o in costly(outcomes) if o.job.hidden())
    return ["Nor %d of the slow faults that cost 10%% or more: %s." % (why[reason], reason) for reason in sorted(why)]


def targets(outcomes):
    """(sentence, is it met?)"""
    judged = [o for o in outcomes if all(fault.is_seen for fault in o.job.faults)]
    hangs = [o for o in judged if len(o.job.faults) == 1 and o.job.faults[0].is_hang and
             o.row != "healthy: its fault met no call" and o.alike is None]
    slow = [o for o in costly(judged) if not o.job.hidden()]
    healthy = [o for o in outcomes if o.row.startswith("healthy") or o.row == "restart, then healthy"]
    sure = [o for o in outcomes if o.wrong_confidence > 0.95]

    def share(some):
        return 100.0 * sum(o.column in GOOD for o in some) / len(some) if some else 100.0

    accused = sum(o.column == "accused" for o in healthy)
    passed = sum(o.column == "silent" and o.cost is not None and o.cost >= 0.1 and not o.job.hidden() for o in judged)
    known = stated_costs(outcomes)
    true = 100.0 * sum(contains(*one) for one in known) / len(known) if known else 100.0
    return [("hangs right in class and culprit: %.1f%% of %d (target 99%%)" % (share(hangs), len(hangs)),
             share(hangs) >= 99),
            ("slow faults that cost 10%% or more right: %.1f%% of %d (target 90%%)" % (share(slow), len(slow)),
             share(slow) >= 90),
            ("healthy jobs accused: %d of %d (target 0)" % (accused, len(healthy)), accused == 0),
            ("jobs that lost 10%% or more without a warning, though judged: %d of %d (target 0)" % (passed, len(outcomes)),
             passed == 0),
            ("stated costs that contain the true cost: %.1f%% of %d (target 95%%)" % (true, len(known)), true >= 95),
            ("jobs with a wrong verdict above 95%% confidence: %d of %d (target 0)" % (len(sure), len(outcomes)),
             not sure)]


def report(outcomes, arguments):
    seen = [o for o in outcomes if o.job.has_kernels()]
    blind = [o for o in outcomes if not o.job.has_kernels()]
    numbers = [o.job.number for o in outcomes]
    lines = ["The doctor's drill: random jobs, their faults (rows), and what the doctor said (columns).", "",
             "Made by: %s" % ("make drill" if arguments.table else "tests/doctor/drill --jobs %d%s%s" % (
                 arguments.jobs, " --first %d" % arguments.first if arguments.first > 1 else "", " --even" if arguments.even else "")),
             "%d jobs of 2 to %d ranks on 1 to %d nodes; cases %d to %d, %s numbers." % (
                 len(outcomes), max(o.job.world() for o in outcomes), max(o.job.nodes for o in outcomes),
                 min(numbers), max(numbers), "even" if arguments.even else "odd"), "",
             "right       class and culprit (rank, host, link, rail), and nobody else is accused",
             "harmless    no verdict: the fault costs less than 2%, or the hang is younger than 20 s",
             "vague       trouble was seen, the culprit or cause not named",
             "extra       right first, and others are accused too",
             "culprit     right class, wrong culprit",
             "class       wrong class",
             "silent      no warning",
             "unjudged    no warning, but it says what it could not judge",
             "accused     a healthy job gets a warning",
             "Cost is measured: the same job without the fault, as many iterations.", ""]
    lines += matrix("with GPU times", grouped(seen, lambda o: o.row)) if seen else []
    lines += matrix("without GPU times", grouped(blind, lambda o: o.row)) if blind else []
    lines += matrix("by workload", grouped(outcomes, lambda o: o.job.workload))
    lines += matrix("by noise", grouped(outcomes, lambda o: "noise" if o.job.noise else "none"))
    lines += matrix("healthy jobs with noise, by kind", grouped(
        [o for o in outcomes if o.row == "healthy" and o.job.noise],
        lambda o: "+".join(sorted(noise.split(":")[0] for noise in o.job.noise)))) if any(
            o.row == "healthy" and o.job.noise for o in outcomes) else []
    damaged = [o for o in outcomes if o.job.damage]
    lines += matrix("files missing or cut", grouped(damaged, lambda o: o.job.damage[0][0] + (
        "" if all(f.is_seen for f in o.job.faults) else ", the culprit's"))) if damaged else []
    ended = [o for o in outcomes if o.job.is_over]
    lines += matrix("faults that ended", grouped(ended, lambda o: o.row)) if ended else []
    lines += by_cost(outcomes)
    lines += calibration(outcomes)
    lines += costs(outcomes)
    both = [o for o in outcomes if o.both is not None]
    lines.append("of %d jobs with two faults that are right, both were named in %d" % (
        len(both), sum(o.both for o in both)))
    for name, some in grouped([o for o in outcomes if o.matter], lambda o: o.row).items():
        lines.append("of %d jobs with %s that each cost 2%% or more alone, and have files, both were named in %d" % (
            len(some), name, sum(o.both is True for o in some)))
    alike = [o for o in outcomes if o.alike is not None]
    lines += ["", "of %d stuck GPUs that are vague or unjudged, nobody could name the rank in %d: the same fault at another rank of" % (
        sum(o.column in ("vague", "unjudged") and o.job.faults[0].row.startswith("gpu-stuck") for o in outcomes if o.job.faults),
        len(alike)), "the host leaves the same files, byte by byte (%s)" % ", ".join("%s: %d" % (name, len(some)) for name, some in grouped(
            alike, lambda o: o.row).items())] if alike else []
    lines += ["", "Targets. Not counted: culprits without a whole file; hangs in which nobody could name the rank; slow faults where the",
              "release records no times."]
    lines += left_out(outcomes)
    lines += ["%s: %s" % ("met    " if is_met else "NOT MET", sentence) for sentence, is_met in targets(outcomes)]
    return "\n".join(lines) + "\n"


def tell_miss(outcome):
    job = outcome.job
    print("# %s: %s%s" % (outcome.column, outcome.row,
                          "" if outcome.cost is None else ", costs %.1f%%" % (100 * outcome.cost)))
    print("#   tests/doctor/drill --case %d" % job.number)
    if job.first:
        print("#   ringside sim %s -o DIR" % " ".join(job.first))
    print("#   ringside sim %s -o DIR" % " ".join(job.command()))
    for what, which in job.damage:
        print("#   %s %s" % (what, str(which)[:100]))
    if outcome.error:
        print("#   %s" % outcome.error)
    for percent, bound, true in wrong_costs(outcome):
        print("#   stated cost %g%%%s, true cost %.1f%%" % (percent, " at %s" % bound if bound else "", true))
    if outcome.alike is not None:
        print("#   the same fault at rank %d leaves the same files" % outcome.alike)
    for told in outcome.told[:4]:
        print("#   verdict: %s" % " ".join(str(word) for word in told if word is not None))
    sys.stdout.flush()


def judge_all(drill, jobs, workers):
    """In their order. After Ctrl-C or SIGTERM: those that are judged."""
    outcomes = []
    pool = concurrent.futures.ThreadPoolExecutor(workers)
    try:
        for outcome in pool.map(drill.judge, jobs):
            outcomes.append(outcome)
            if outcome.column not in GOOD or wrong_costs(outcome):
                tell_miss(outcome)
            if len(outcomes) % 50 == 0:
                print("# %d of %d" % (len(outcomes), len(jobs)), file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("# interrupted after %d of %d" % (len(outcomes), len(jobs)), file=sys.stderr)
    finally:
        pool.shutdown(cancel_futures=True)
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1, help="the first number that is taken")
    parser.add_argument("--even", action="store_true", help="the cases for tuning")
    parser.add_argument("--only", default="", help="faults with this word in their row, or a workload; hang: all hangs")
    parser.add_argument("--case", type=int, help="only this one, with all verdicts")
    parser.add_argument("--keep", help="with --case: a directory for its files")
    parser.add_argument("-j", "--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--table", help="write the tables here")
    arguments = parser.parse_args()
    build = os.path.abspath(os.environ.get("BUILD", "build"))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    scratch = tempfile.mkdtemp(prefix="ringside-drill-", dir=live_job.memory(1 << 30))
    drill = Drill(build, scratch)
    try:
        if arguments.case is not None:
            outcome = drill.judge(drill_jobs.Job(arguments.case), arguments.keep)
            tell_miss(outcome)
            return 0 if outcome.column in GOOD else 1
        jobs = []
        for number in itertools.islice(drill_jobs.numbers(arguments.first, arguments.even), 50 * arguments.jobs):
            job = drill_jobs.Job(number)
            if arguments.only in job.row or arguments.only == job.workload or (
                    arguments.only == "hang" and any(fault.is_hang for fault in job.faults)):
                jobs.append(job)
            if len(jobs) == arguments.jobs:
                break
        outcomes = judge_all(drill, jobs, arguments.workers)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    text = report(outcomes, arguments)
    print(text, end="")
    if arguments.table:
        with open(arguments.table, "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
