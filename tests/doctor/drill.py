#!/usr/bin/env python3
"""The fixed drill: jobs with every fault are simulated, and the doctor's verdicts are compared with it.

    drill.py [--seeds N] [--long] [--only WORD]

Prints TAP: a test per fault, with what was wrong for any of its jobs. BUILD is the build directory. Random
jobs: drill_random.py.
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import drill_cases  # noqa: E402
import live_job  # noqa: E402
import verdicts  # noqa: E402

LIVE_HANG_S = 3
LIVE_AT_A_TIME = 3
LIVE_ROOM = 800 << 20


class Outcome:
    """The verdict on one case."""

    def __init__(self, case):
        self.case = case
        self.told = "none"      # class of the first verdict that names a cause
        self.wrong = []         # differences to the simulated fault; empty: right
        self.verdicts = []

    def is_right(self):
        return not self.wrong


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=300, **options)


class Drill:
    def __init__(self, build, scratch, memory):
        self.build, self.scratch, self.memory = build, scratch, memory
        self.ringside = os.path.join(build, "ringside")
        self.environment = live_job.clean_environment()

    def call(self, *arguments):
        return run([self.ringside] + list(arguments), env=self.environment)

    def play(self, case, directory):
        result = self.call("sim", *case.command(), "-o", directory)
        if result.returncode != 0:
            raise RuntimeError("cannot play it: %s" % result.stderr.strip())
        for name in os.listdir(directory):
            if any("-node%04d-" % node in name for node in case.without):
                os.unlink(os.path.join(directory, name))

    def save_baseline(self, case, directory):
        """The same job without its fault."""
        calm = drill_cases.Case(case.fault, "none", case.size, case.seed + 1000, list(case.options))
        at = calm.options.index("-f")
        del calm.options[at:at + 2]
        self.play(calm, directory)
        path = directory + ".json"
        result = self.call("baseline", "save", directory, "-o", path)
        shutil.rmtree(directory)
        if result.returncode != 0:
            raise RuntimeError("cannot save a baseline: %s" % result.stderr.strip())
        return path

    def ask_files(self, case, directory, options):
        self.play(case, directory)
        result = self.call("doctor", "--json", *options, directory)
        # 3: it could not tell
        if result.returncode not in (0, 1, 3) or result.stderr:
            raise RuntimeError("the doctor ends with %d: %s" % (result.returncode,
                                                                result.stderr.strip()))
        return json.loads(result.stdout)

    def ask_live(self, case, number):
        """A running job, diagnosed while it runs."""
        job = live_job.LiveJob(self.build, os.path.join(self.memory, "live-%d" % number), case.nodes,
                               case.gpus, LIVE_HANG_S)
        try:
            job.start("--gpus", str(case.gpus), "--seed", str(case.seed), "--seconds", "120s",
                      *case.options)
            if case.agents is not None:
                job.start_agents()
            job.wait_still()
            for dead in case.agents or ():
                job.agents[dead].end()
            return job.ask(case.agents is not None)[0]
        finally:
            job.end()

    def ask(self, case, number):
        directory = os.path.join(self.scratch, "job-%d" % number)
        options = []
        is_live = isinstance(case, drill_cases.LiveCase)
        try:
            if case.baseline:
                options = ["--baseline", self.save_baseline(case, directory + "-calm")]
            document = self.ask_live(case, number) if is_live else \
                self.ask_files(case, directory, options)
            outcome = Outcome(case)
            outcome.verdicts = verdicts.accusing(document, not is_live)
            outcome.told, outcome.wrong = verdicts.judge(case.told, case.culprit, document,
                                                         not is_live)
            return outcome
        except (RuntimeError, ValueError, KeyError, OSError, subprocess.SubprocessError) as error:
            outcome = Outcome(case)
            outcome.wrong = [str(error)]
            return outcome
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def play_all(drill, cases, workers):
    """In the order of the cases. Running jobs mostly wait: they start at once, in parallel to the others."""
    numbered = list(enumerate(cases))
    running = [pair for pair in numbered if isinstance(pair[1], drill_cases.LiveCase)]
    files = [pair for pair in numbered if pair not in running]
    outcomes = {}
    with concurrent.futures.ThreadPoolExecutor(LIVE_AT_A_TIME) as live_pool, \
            concurrent.futures.ThreadPoolExecutor(workers) as pool:
        begun = [(number, live_pool.submit(drill.ask, case, number)) for number, case in running]
        begun += [(number, pool.submit(drill.ask, case, number)) for number, case in files]
        for number, future in begun:
            outcomes[number] = future.result()
    return [outcomes[number] for number, _ in numbered]


def faults_of(outcomes):
    return list(dict.fromkeys(outcome.case.fault for outcome in outcomes))


def tell(outcomes):
    """TAP, a test per fault."""
    failed = 0
    for number, name in enumerate(faults_of(outcomes)):
        mine = [o for o in outcomes if o.case.fault == name]
        wrong = [o for o in mine if not o.is_right()]
        print("%s %d - %s: %d of %d jobs are diagnosed correctly" % (
            "not ok" if wrong else "ok", number + 1, name, len(mine) - len(wrong), len(mine)))
        for outcome in wrong:
            print("# ringside sim %s" % " ".join(outcome.case.command()))
            for line in outcome.wrong:
                print("#     %s" % line)
            for verdict in outcome.verdicts[:3]:
                print("#     verdict: %s" % verdict["title"])
        failed += len(wrong)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only", default="", help="faults with this word in their name")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    arguments = parser.parse_args()
    build = os.path.abspath(os.environ.get("BUILD", "build"))
    has_agents = live_job.has_agents(build)
    cases = [case for case in drill_cases.plan(arguments.seeds, arguments.long)
             if arguments.only in case.fault and
             (has_agents or getattr(case, "agents", None) is None)]
    scratch = tempfile.mkdtemp(prefix="ringside-drill-")
    memory = tempfile.mkdtemp(prefix="ringside-drill-", dir=live_job.memory(LIVE_ROOM))
    try:
        outcomes = play_all(Drill(build, scratch, memory), cases, arguments.workers)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(memory, ignore_errors=True)
    failed = tell(outcomes)
    print("1..%d" % len(faults_of(outcomes)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
