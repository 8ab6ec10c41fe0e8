#!/usr/bin/env bash
# The random drill works: a few of its jobs can be played and judged, the same ones in the same way, and its jobs
# cover what they should. How well the doctor does is in docs/results/doctor-drill.txt.
. "$(dirname "$0")/../tap.sh"
command -v python3 >/dev/null || tap_skip_all "there is no python3"

export PYTHONDONTWRITEBYTECODE=1

# Every word of a list is in the jobs up to a number, and no number makes another job the second time.
covers() {
	python3 - "$(dirname "$0")" <<'PYTHON'
import sys

sys.path.insert(0, sys.argv[1])
import drill_jobs

jobs = [drill_jobs.Job(number) for number in range(1, 2001)]
said = " ".join(" ".join(job.command()) for job in jobs)
rows = {job.row for job in jobs}
missing = [word for word in drill_jobs.WORKLOADS if "-w %s " % word not in said]
missing += [word for word in (
    "slow-rank", "slow-link", "degraded-network", "slow-nvlink", "slow-rail", "slow-uplink", "slow-receiver", "starved",
    "power-cap", "never-arrives", "stuck-send", "mismatch", "deadlock", "gpu-stuck", "stop", "kill") if " %s:" % word not in said]
missing += [word for word in (
    "compute", "tail", "loader", "gc", "checkpoint", "evaluation", "thermal", "gpus", "batches", "contention", "loss",
    "experts") if "--noise %s" % word not in said]
missing += [word for word in ("until=", "--watchdog", "--attempt", "--channels", "--clock-shift 1s") if word not in said]
missing += [row for row in ("healthy", "two faults: slow and slow", "two faults: slow and hang", "hang younger than 20 s",
                            "restart, then healthy") if row not in rows]
missing += [what for what in ("without rank", "without node", "cut")
            if not any(job.damage and job.damage[0][0] == what for job in jobs)]
missing += ["%d nodes" % nodes for nodes in (1, 64) if not any(job.nodes == nodes for job in jobs)]
missing += ["the same job" for job in jobs[:50] if drill_jobs.Job(job.number).command() != job.command()]
print("\n".join(missing))
sys.exit(bool(missing))
PYTHON
}
expect_ok "jobs have every workload, fault, noise and damage" covers

drill() { python3 "$(dirname "$0")/drill_random.py" "$@"; }
# Six small ones: healthy, slow and hung.
drill --first 313 --jobs 6 -j 2 >"$tap_scratch/first" 2>"$tap_scratch/said"
expect_same "it ends normally" "$?" 0
drill --first 313 --jobs 6 -j 1 >"$tap_scratch/second" 2>>"$tap_scratch/said"
expect_same "and says nothing else" "$(cat "$tap_scratch/said")" ""
expect_ok "the same jobs are judged in the same way" diff "$tap_scratch/first" "$tap_scratch/second"
expect_same "all of them" "$(grep -c '^6 jobs of .*; cases 313 to 323, odd numbers.$' "$tap_scratch/first")" 1
expect_same "each could be played" "$(grep -E "cannot play|cannot save|the doctor ends with" "$tap_scratch/first")" ""
expect_same "six targets" "$(grep -cE '^(met    |NOT MET): ' "$tap_scratch/first")" 6
drill --case 2 --keep "$tap_scratch/kept" >"$tap_scratch/case" 2>&1
expect_ok "one case says how to repeat it" grep -q "ringside sim --offline .*--seed 2 .* -o DIR" "$tap_scratch/case"
expect_ok "and keeps its files" sh -c "ls '$tap_scratch/kept' | grep -q ringside"

# Judged repeatedly while it runs: a slow link is shown within three judgements and stays, and nobody before.
python3 "$(dirname "$0")/drill_live.py" --even --first 20056 --jobs 1 -j 1 >"$tap_scratch/live" 2>&1
expect_same "a job is watched" "$?" 0
expect_ok "nobody is accused before the fault" grep -q '^healthy, or before the fault: 0.0 h of job time; shown in 0 of 1 jobs$' "$tap_scratch/live"
expect_ok "the link is found, and not dropped" \
	grep -q '^faults that cost 10% or more: right cause shown in 1 of 1; wrong in 0; shown and dropped in 0$' "$tap_scratch/live"

# Hangs on which the doctor was once wrong or vague, each for a reason of its own.
once_wrong() { # sentence case
	expect_same "$1" "$(drill --case "$2" 2>&1 | sed -n '1s/:.*//p')" "# right"
}
once_wrong "a dead rank, while the other's next kernel has not started" 3786
once_wrong "a rank that never arrives, while the other's next kernel has not started" 4328
once_wrong "a truncated file is not a dead rank" 2986
once_wrong "nor are many" 552
once_wrong "a stuck GPU inside a host, from how far the ring got" 216
once_wrong "and in a ring whose buffers are full" 5140
once_wrong "a deadlock behind many Sends and Recvs" 528
once_wrong "a deadlock of which one GPU is in a visible collective" 5328
once_wrong "a deadlock next to what leads nowhere" 1330
once_wrong "a deadlock with later exchanges queued behind it" 2530
once_wrong "a deadlock with one rank not recorded" 4652
once_wrong "a stuck sender, while the next exchange queues behind a launch that is not timed" 12
tap_done
