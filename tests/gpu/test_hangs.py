"""The GPU check's scenarios, simulated by `ringside sim`: does the harness start, inject, observe, judge and clean up?

Without an argument runs some short scenarios, otherwise the named ones. KEEP=DIR: keeps their files there.
"""

import json
import os
import sys
import tarfile
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import gpu_hangs  # noqa: E402
from gpu_job import Tool  # noqa: E402
from gpu_report import Clock, Tap  # noqa: E402
from gpu_scenes import SCENES  # noqa: E402

QUICK = ("skip", "stop", "kill")


class NoMps:
    """No GPU, no MPS."""

    directory = None

    def environment(self):
        return {}

    def restart(self):
        pass


class Context:
    """The state shared by the steps of the GPU check, as far as needed here."""

    def __init__(self, build, scratch):
        self.build, self.work = build, os.path.join(scratch, "work")
        self.shm, self.results_directory = os.path.join(scratch, "shm"), os.path.join(scratch, "results")
        for path in (self.work, self.shm, self.results_directory):
            os.makedirs(path)
        self.clock = Clock(120)
        self.tap = Tap(self.clock, os.path.join(scratch, "tap"))
        self.tool = Tool(os.path.join(build, "ringside"))
        self.plugin = os.path.join(build, "libnccl-profiler-ringside.so")
        self.mps = NoMps()
        self.nccls = [{"driver": os.path.join(HERE, "fake_driver.py"), "version": "simulated"}]
        self.failed_places, self.results = [], {}
        self.way = []
        self.has_ras = False


def left_behind(context):
    """Ranks that outlived their scenario."""
    return [pid for scene in SCENES
            for pid in gpu_hangs.rank_pids(os.path.join(context.work, "hang-" + scene.name))]


def main():
    names = sys.argv[1:] or QUICK
    build = os.path.abspath(os.environ.get("BUILD", "build"))
    os.environ["FAKE_DRIVER_TOOL"] = os.path.join(build, "ringside")
    gpu_hangs.HANG, gpu_hangs.STILL_S, gpu_hangs.LOOP_S, gpu_hangs.RUN_S = "2s", 2.2, 0.7, 12
    with tempfile.TemporaryDirectory(prefix="ringside-hangs-") as scratch:
        context = Context(build, scratch)
        for scene in SCENES:
            if scene.name in names:
                gpu_hangs.hang_job(context, scene)
        tap = context.tap
        tap.ok(not left_behind(context), "nothing is left behind")
        with tarfile.open(os.path.join(context.results_directory, "hangs.tar.gz")) as archive:
            kept = archive.getnames()
            if os.environ.get("KEEP"):
                archive.extractall(os.environ["KEEP"], filter="data")
            expected = json.load(archive.extractfile("expected.json"))
        tap.ok(all(name + ".tar" in kept for name in names), "snapshots are kept", kept)
        tap.ok(set(expected["scenes"]) == {scene.name for scene in SCENES},
               "with the truth of each scenario")
        return tap.end()


sys.exit(main())
