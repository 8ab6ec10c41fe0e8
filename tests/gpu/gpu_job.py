"""Runs one job: its environment, watching it, ending it if it hangs, reading its output."""

import glob
import os
import shutil
import signal
import subprocess
import time

from gpu_machine import capture, clean_environment

IDLE_S = 40
ENDED_WELL = "ended well"
MARK = "RINGSIDE_GPU_CHECK"


class Place:
    """Where a job's files are: logs on disk, regions in memory."""

    def __init__(self, work, shm, name):
        self.directory = os.path.join(work, name)
        self.regions = os.path.join(shm, name)
        self.traces = os.path.join(self.directory, "trace")
        for path in (self.directory, self.regions):
            shutil.rmtree(path, ignore_errors=True)
            os.makedirs(path, mode=0o700)

    def recorded(self, mode):
        """Files with recordings."""
        if mode in ("trace", "full"):
            return sorted(glob.glob(self.traces + "/**/*.ringside", recursive=True))
        return sorted(glob.glob(self.regions + "/**/*.region", recursive=True))

    def read(self, pattern):
        texts = {}
        for path in sorted(glob.glob(os.path.join(self.directory, pattern))):
            with open(path, encoding="utf-8", errors="replace") as file:
                texts[os.path.basename(path)] = file.read()
        return texts

    def release(self):
        shutil.rmtree(self.regions, ignore_errors=True)


def environment(place, plugin, mode, mps, is_quiet=False):
    """The environment of a job with the plugin (None: no plugin at all)."""
    settings = clean_environment()
    settings.update(mps)
    settings.update({
        "NCCL_SOCKET_IFNAME": "lo",
        "NCCL_IB_DISABLE": "1",
        "NCCL_PROFILER_PLUGIN": plugin or "none",
        "NCCL_DEBUG": "WARN",
        # Not to stdout, which is for the driver's own output.
        "NCCL_DEBUG_FILE": place.directory + "/nccl-%p.log",
        MARK: place.directory,
    })
    if not is_quiet:
        settings.update({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,PROFILE,ENV"})
    if mode:
        settings.update({"RINGSIDE_MODE": mode, "RINGSIDE_DIR": place.traces,
                         "RINGSIDE_SHM": place.regions, "RINGSIDE_JOB": "gpu-check"})
    return settings


def _growth(directory):
    total = 0
    for pattern in ("*.log", "issued-*", "pid-*"):
        for path in glob.glob(os.path.join(directory, pattern)):
            try:
                total += os.path.getsize(path)
            except OSError:
                pass
    return total


def rank_pids(directory):
    """Ranks that wrote their process id and are still running."""
    wanted = ("%s=%s" % (MARK, directory)).encode()
    for path in glob.glob(os.path.join(directory, "pid-*")):
        try:
            with open(path, encoding="utf-8") as file:
                pid = int(file.read())
            with open("/proc/%d/environ" % pid, "rb") as file:
                if wanted in file.read().split(b"\0"):
                    yield pid
        except (OSError, ValueError):
            continue


def end_job(process, directory):
    """Ends our process group with SIGTERM first, then every rank by its id."""
    for number, patience_s in ((signal.SIGTERM, 3), (signal.SIGKILL, 3)):
        try:
            os.killpg(process.pid, number)
        except OSError:
            pass
        for pid in rank_pids(directory):
            try:
                os.kill(pid, number)
            except OSError:
                pass
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            if process.poll() is not None and not list(rank_pids(directory)):
                return
            time.sleep(0.05)


class Outcome:
    """How a job ended."""

    def __init__(self, text, is_good, seconds, was_killed=False):
        self.text, self.is_good, self.seconds, self.was_killed = text, is_good, seconds, was_killed


def run_job(argv, settings, place, limit_s, on_hang=None, idle_s=None):
    """Runs to the end, until nothing was written for idle_s, or for at most limit_s."""
    idle_s = idle_s or IDLE_S
    started = moved = time.monotonic()
    size = 0
    with open(os.path.join(place.directory, "launcher.log"), "wb") as log:
        process = subprocess.Popen(argv, env=settings, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=subprocess.STDOUT, start_new_session=True,
                                   cwd=place.directory)
    try:
        while process.poll() is None:
            time.sleep(0.05)
            now, grown = time.monotonic(), _growth(place.directory)
            if grown != size:
                size, moved = grown, now
            why = ("hung: nothing written for %d s" % idle_s if now - moved > idle_s else
                   "too long: over %.0f s" % limit_s if now - started > limit_s else None)
            if why:
                if on_hang:
                    on_hang()
                return Outcome(why, False, now - started, was_killed=True)
        seconds = time.monotonic() - started
        if process.returncode:
            return Outcome("failed with exit code %d" % process.returncode, False, seconds)
        return Outcome(ENDED_WELL, True, seconds)
    finally:
        if process.poll() is None:
            end_job(process, place.directory)


class Tool:
    """build/ringside."""

    def __init__(self, path):
        self.path = path

    def dump(self, paths):
        """(text, problem or None)"""
        return self._results(["dump"] + paths, (0,))

    def verify(self, paths):
        """(exit code, JSON text, remarks)"""
        try:
            done = subprocess.run([self.path, "verify", "--json"] + paths, text=True, timeout=60,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                                  errors="replace", env=clean_environment())
        except (OSError, subprocess.TimeoutExpired) as error:
            return 127, "", str(error)
        return done.returncode, done.stdout, done.stderr

    def _results(self, arguments, good):
        try:
            done = subprocess.run([self.path] + arguments, text=True, timeout=60, errors="replace",
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                                  env=clean_environment())
        except (OSError, subprocess.TimeoutExpired) as error:
            return "", str(error)
        problem = None
        if done.returncode not in good:
            problem = "ringside %s: exit code %d: %s" % (arguments[0], done.returncode,
                                                         done.stderr.strip()[-500:])
        return done.stdout, problem

    def now(self, settings):
        """What is in flight, for a job that hangs."""
        texts = []
        for command in ("ls", "ps"):
            code, text = capture([self.path, command], 10, env=settings)
            texts.append("ringside %s: exit code %d\n%s" % (command, code, text))
        return "\n".join(texts)
