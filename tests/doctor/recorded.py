#!/usr/bin/env python3
"""Recordings of real NCCL jobs while they hung (tests/gpu/recorded, made by tests/gpu/run): the doctor finds
their true causes. And NCCL's own logs of these jobs are read completely."""

import glob
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
GPU = os.path.join(os.path.dirname(HERE), "gpu")
sys.path[:0] = [HERE, GPU]

import gpu_scenes  # noqa: E402
import verdicts  # noqa: E402

count = failed = 0


def ok(is_ok, what, more=()):
    global count, failed
    count += 1
    failed += not is_ok
    print("%s %d - %s" % ("ok" if is_ok else "not ok", count, what))
    for line in more if not is_ok else ():
        print("# %s" % line)


def doctor(*arguments):
    build = os.path.abspath(os.environ.get("BUILD", "build"))
    done = subprocess.run([os.path.join(build, "ringside"), "doctor", "--json"] + list(arguments),
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                          check=False)
    try:
        return json.loads(done.stdout), done.stderr
    except ValueError:
        return None, done.stderr


def check_scene(recorded, name, truth):
    document, said = doctor("--hang", truth["hang"], os.path.join(recorded, name + ".tar"))
    if document is None:
        ok(False, "%s: the doctor reads it" % name, [said])
        return
    first, wrong = verdicts.judge(truth["told"], truth["culprit"], document, truth["is_timed"])
    ok(not wrong, "%s: %s" % (name, first), wrong + [v["title"] for v in document["verdicts"]])


def check_logs(recorded, name):
    logs = sorted(glob.glob(os.path.join(recorded, name + "-*.log")))
    lines = sum(len(open(path, "rb").read().splitlines()) for path in logs)
    document, said = doctor("--log", *logs)
    ok(document is not None and len(logs) == gpu_scenes.RANKS and lines > 0 and
       document["looked_at"]["log_lines"] == lines,
       "%s: all %d lines of %d logs of NCCL are read" % (name, lines, len(logs)), [said])


def check_slow(recorded):
    """Made by TorchJob of tests/gpu/gpu_torch.py, scenes slow-ahead, slow-sampled (with RINGSIDE_SAMPLE_AFTER=5) and slow-ahead-even;
    and bundles of scene calm of tests/gpu/gpu_scenes.py at moments that looked slow: transfers queue up at one rank, or all of
    them take longer for some seconds."""
    for name, wanted in (("late", ["slow_rank 1"]), ("late-sampled", ["slow_rank 1"]), ("even", []),
                         ("queue-of-sends", []), ("one-host", [])):
        document, said = doctor(os.path.join(recorded, name + ".tar"))
        found = ["%s %s" % (one["class"], one["rank"]) for one in (document or {"verdicts": []})["verdicts"]
                 if one["severity"] != "note" and one["class"].startswith("slow")]
        ok(document is not None and found == wanted, "slow %s: %s" % (name, ", ".join(wanted) or "nobody"), found + [said])
    build = os.path.abspath(os.environ.get("BUILD", "build"))
    said = subprocess.run([os.path.join(build, "ringside"), "report", os.path.join(recorded, "late.tar")], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60, check=False).stdout
    ok("rank 1 on vm (its GPU comes " in said and "last in" not in said, "slow late: the report says how it is known", [said])


def check_folder(recorded, has_logs):
    with open(os.path.join(recorded, "expected.json"), encoding="utf-8") as file:
        expected = json.load(file)
    scenes = expected["scenes"]
    names = [scene.name for scene in gpu_scenes.SCENES]
    ok(sorted(scenes) == sorted(names), "all scenes were recorded, and no others",
       ["recorded: %s" % " ".join(sorted(scenes)), "scenes: %s" % " ".join(sorted(names))])
    for name in names:
        if name in scenes:
            check_scene(recorded, name, scenes[name])
            if has_logs:
                check_logs(recorded, name)


def main():
    recorded = os.environ.get("RECORDED", os.path.join(GPU, "recorded"))
    check_folder(recorded, True)
    # The first were recorded with kernel events for every operation; these with the default.
    check_folder(os.path.join(recorded, "default"), False)
    check_slow(os.path.join(recorded, "slow"))
    print("1..%d" % count)
    return 1 if failed else 0


sys.exit(main())
