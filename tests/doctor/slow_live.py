#!/usr/bin/env python3
"""A job runs, in mode flight, and one of its ranks computes twice as long as the others: is it named? Before there are
enough collectives to tell, that is said. Prints TAP. On a busy machine others may be slow as well, now and then: what
is tested is that in the end this rank is named, and no other."""

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


def slow_ranks(document):
    return [v["rank"] for v in document["verdicts"] if v["class"] == "slow_rank"]


def is_unjudged(document):
    return any(v["class"] == "blind" and v["rule"] == "speed" for v in document["verdicts"])


def sees_all(job):
    """Regions are there before what is in them."""
    try:
        return job.ask(False)[0]["looked_at"]["processes"] == NODES * GPUS
    except ValueError:
        return False


def play(job, is_through_agents):
    """(said at first that there is too little, ranks that were named in the end)."""
    first, _ = job.ask(is_through_agents)
    told = [first]

    def is_named():
        told.append(job.ask(is_through_agents)[0])
        return slow_ranks(told[-1]) == [SLOW]

    job.wait(is_named, "rank %d is named, and no other" % SLOW)
    return is_unjudged(first) or bool(slow_ranks(first)), slow_ranks(told[-1])


def main():
    build = os.path.abspath(os.environ.get("BUILD", "build"))
    scratch = tempfile.mkdtemp(prefix="ringside-slow-", dir=live_job.memory(ROOM))
    job = live_job.LiveJob(build, scratch, NODES, GPUS, 20)
    ways = [("from regions", False)]
    if live_job.has_agents(build):
        ways.append(("through two agents", True))
    count = failed = 0
    try:
        job.start("--gpus", str(GPUS), "--seconds", "600s", "-w", "fsdp", "-f",
                  "slow-rank:rank=%d,factor=2" % SLOW)
        job.wait(lambda: sees_all(job), "all processes are seen")
        for way, is_through_agents in ways:
            if is_through_agents:
                job.start_agents()
            is_honest, named = play(job, is_through_agents)
            for is_ok, what in ((is_honest, "too few collectives: that is said"),
                                (named == [SLOW], "rank %d is named, %s told" % (SLOW, named))):
                count += 1
                failed += not is_ok
                print("%s %d - %s: %s" % ("ok" if is_ok else "not ok", count, way, what))
    except (RuntimeError, OSError, ValueError, subprocess.SubprocessError) as error:
        count += 1
        failed += 1
        print("not ok %d - the job can be played\n# %s" % (count, error))
    finally:
        job.end()
        shutil.rmtree(scratch, ignore_errors=True)
    print("1..%d" % count)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
