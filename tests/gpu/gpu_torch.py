"""Starts the ranks of torch_hang_job.py, each as a host of its own on the one GPU."""

import glob
import os
import shutil
import signal
import subprocess
import sys

from gpu_machine import clean_environment
from gpu_steps import free_port

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RANKS = 4
# Stands in for py-spy, which is not on the machine: asks the process with this PID for its frames and prints them.
PY_SPY = """#!%s
import glob, os, re, sys, time
pid = sys.argv[sys.argv.index("--pid") + 1]
os.chdir("%s")
open("frames-now", "w").close()
for started in glob.glob("started-*"):
    frames = "frames-" + re.search("[0-9]+$", started).group() + ".json"
    if open(started).read() == pid:
        for _ in range(40):
            if os.path.exists(frames):
                print(open(frames).read())
                sys.exit(0)
            time.sleep(0.1)
sys.exit(1)
"""


class TorchJob:
    """Ranks that run a scene. `out` gets their output and what they write, `shm` their regions."""

    def __init__(self, scene, out, settings):
        self.scene, self.out = scene, os.path.join(out, scene)
        shutil.rmtree(self.out, ignore_errors=True)
        os.makedirs(self.out)
        self.shm = "/dev/shm/torch-hangs-%s-%d" % (scene, os.getpid())
        os.makedirs(self.shm)
        self.ras = "127.0.0.1:%d" % free_port()
        port = free_port()
        self.ranks = []
        for rank in range(RANKS):
            everything = {**clean_environment(), **settings, "RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": str(RANKS),
                          "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1",
                          "NCCL_HOSTID": "ringside-%d" % rank, "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1",
                          "NCCL_RAS_ADDR": self.ras,
                          "NCCL_PROFILER_PLUGIN": os.path.join(ROOT, "build", "libnccl-profiler-ringside.so"),
                          "RINGSIDE_SHM": self.shm, "RINGSIDE_JOB": "torch-" + scene,
                          "TORCH_FR_BUFFER_SIZE": "2000", "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
                          "TORCH_CPP_LOG_LEVEL": "ERROR", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}
            with open(os.path.join(self.out, "rank-%d.log" % rank), "w", encoding="utf-8") as log:
                self.ranks.append(subprocess.Popen(
                    [sys.executable, os.path.join(HERE, "torch_hang_job.py"), scene, self.out], env=everything,
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True))

    def has_started(self):
        return len(glob.glob(self.out + "/started-*")) == RANKS

    def add_py_spy(self):
        """Returns the directory in which it is."""
        tools = os.path.join(self.out, "tools")
        os.makedirs(tools, exist_ok=True)
        with open(os.path.join(tools, "py-spy"), "w", encoding="utf-8") as file:
            file.write(PY_SPY % (sys.executable, self.out))
        os.chmod(os.path.join(tools, "py-spy"), 0o755)
        return tools

    def end(self):
        for process in self.ranks:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        for path in (self.shm, os.path.join(self.out, "tools")):
            shutil.rmtree(path, ignore_errors=True)
