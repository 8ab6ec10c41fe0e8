#!/usr/bin/env python3
"""A job runs, in flight mode, and one of its ranks computes twice as long as the others: is it named? If there are
too few collectives, a note says so. Prints TAP. On a busy machine others may be slow as well occasionally: the
test is that in the end this rank is named, and no other."""

import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import live_job  # noqa: E402

NODES, GPUS, SLOW = 2, 2, 2
ROOM = 256 << 20
OPTIONS = ("--gpus", str(GPUS), "-w", "fsdp", "-f", "slow-rank:rank=%d,factor=2" % SLOW)


def slow_ranks(document):
    return [v["rank"] for v in document["verdicts"] if v["class"] == "slow_rank"]


def is_unjudged(document):
    return any(v["class"] == "blind" and v["rule"] == "speed" for v in document["verdicts"])


def sees_all(job):
    """Regions exist before their contents."""
    try:
        return job.ask(False)[0]["looked_at"]["processes"] == NODES * GPUS
    except ValueError:
        return False


def play(job, is_through_agents):
    """The ranks named in the end."""
    told = []

    def is_named():
        told[:] = slow_ranks(job.ask(is_through_agents)[0])
        return told == [SLOW]

    job.wait(is_named, "rank %d is named, and no other" % SLOW)
    return told


def play_shortly(job):
    """A short job: is there a note that speed was not judged?"""
    job.launch(*OPTIONS, "--iterations", "1")
    job.process.wait()
    return is_unjudged(job.ask(False)[0])


def main():
    build = os.path.abspath(os.environ.get("BUILD", "build"))
    scratch = tempfile.mkdtemp(prefix="ringside-slow-", dir=live_job.memory(ROOM))
    short = live_job.LiveJob(build, os.path.join(scratch, "short"), NODES, GPUS, 20)
    job = live_job.LiveJob(build, os.path.join(scratch, "long"), NODES, GPUS, 20)
    ways = [("from regions", False)]
    if live_job.has_agents(build):
        ways.append(("through two agents", True))
    count = failed = 0
    try:
        count += 1
        is_ok = play_shortly(short)
        failed += not is_ok
        print("%s %d - too few collectives: a note says so" % ("ok" if is_ok else "not ok", count))
        job.start(*OPTIONS, "--seconds", "600s")
        job.wait(lambda: sees_all(job), "all processes are seen")
        for way, is_through_agents in ways:
            if is_through_agents:
                job.start_agents()
            named = play(job, is_through_agents)
            count += 1
            failed += named != [SLOW]
            print("%s %d - %s: rank %d is named (named: %s)" % (
                "ok" if named == [SLOW] else "not ok", count, way, SLOW, named))
    except (RuntimeError, OSError, ValueError, subprocess.SubprocessError) as error:
        count += 1
        failed += 1
        print("not ok %d - the job can be simulated\n# %s" % (count, error))
    finally:
        short.end()
        job.end()
        shutil.rmtree(scratch, ignore_errors=True)
    print("1..%d" % count)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
