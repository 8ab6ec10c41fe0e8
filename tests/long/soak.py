#!/usr/bin/env python3
"""A simulated cluster for hours: jobs start, hang, die and restart while everything around them breaks. Is every verdict right, does nothing
grow, and is nothing lost?

    soak.py [--seconds S] [--seed N] [--old BUILD] [--asan BUILD] [--table FILE]

Three nodes with an agent each, a hub and a real Prometheus. Two jobs run from the beginning to the end; others come and go (LIVES). Meanwhile
agents are killed, stopped, replaced by those of another release (--old) and run under AddressSanitizer (--asan); clocks step, the disk for traces
fills up, Prometheus and the hub disappear (TROUBLES). Prints TAP; --table writes what was measured.
"""

import argparse
import collections
import glob
import json
import os
import random
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "doctor"), os.path.join(HERE, "..", "agent")]

import live_job  # noqa: E402
from hub_cluster import free_port  # noqa: E402
from story import Tap  # noqa: E402

NODES = 3
RANKS_PER_NODE = 2
HANG_S = 10
PACE_S = 15  # at most one job is started in this time, so that as many come and go on a busy machine as on an idle one
PATIENCE_S = 240  # from the fault to the verdict, while agents are killed and stopped
DISK_MIB = 48
NAMES_NOBODY = {"unseen", "agent_dead", "elsewhere", "stuck"}
CGROUP = "/sys/fs/cgroup/memory"


class Life:
    """A job: how it is started, what is done to it, and what must be reported of it."""

    def __init__(self, kind, serial, world, cluster):
        self.kind, self.name, self.cluster = kind, "%s-%d" % (kind, serial), cluster
        self.rank = random.randrange(world)
        self.world = world
        self.told = collections.Counter()  # (class, rank) -> how often it was seen
        self.started = self.fault_at = time.monotonic()
        self.is_struck = self.is_whole = False
        self.verdict_s = None
        self.traces = None
        self.met_full_disk = False
        self.process = None

    #     kind -> fault of the simulator, and the class of the verdict; None: nothing may be reported
    FAULTS = {
        "healthy": (None, None),
        "traced": (None, None),
        "skips": ("never-arrives:rank=%d,at=8s", "never_issued"),
        "unsent": ("stuck-send:rank=%d,at=8s", "network_stuck"),
        "gpu": ("gpu-stuck:rank=%d,at=8s", "gpu_not_reached"),
        "mismatch": ("mismatch:rank=%d,at=8s", "mismatch"),
        "dies": ("kill:rank=%d,at=8s", "process_dead"),
        "stopped": ("stop:rank=%d,at=8s", "process_stopped"),
        "container": ("never-arrives:rank=%d,at=8s", "never_issued"),
        "restart": (None, "never_issued"),  # killed as a whole, then started again under its name with a fault
        "oom": (None, "process_dead"),  # the kernel kills the rank
    }

    def expected(self):
        return (self.FAULTS[self.kind][1], self.rank) if self.FAULTS[self.kind][1] else None

    def start(self, fault=None):
        fault = fault or self.FAULTS[self.kind][0]
        seconds = 25 if self.expected() is None else 3600
        command = [self.cluster.program("ringside"), "sim", "--json", "--plugin", self.cluster.program("libnccl-profiler-ringside.so"),
                   "--nodes", str(NODES), "--gpus", str(self.world // NODES), "-w", "ddp", "--kernel", "--rate", "5",
                   "--seconds", "%ds" % seconds, "--hang", "%ds" % seconds, "--node-regions", self.cluster.regions, "--seed", str(random.randrange(1 << 30))]
        if fault:
            command += ["-f", fault % self.rank]
        environment = dict(self.cluster.environment(), RINGSIDE_JOB=self.name, RINGSIDE_BUFFER="1MiB")
        if self.kind == "traced":
            self.traces = tempfile.mkdtemp(dir=self.cluster.disk)
            command += ["-m", "trace", "-o", self.traces]
        else:
            command += ["-m", "flight"]
        if self.kind == "container":
            command = ["unshare", "--pid", "--ipc", "--mount", "--fork", "--kill-child", "--mount-proc"] + command
        self.output = tempfile.TemporaryFile(dir=self.cluster.scratch)
        self.process = subprocess.Popen(command, env=environment, stdout=self.output, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                        start_new_session=True)
        self.started = time.monotonic()
        self.fault_at = self.started + 8

    def strike(self):
        """What the simulator cannot do by itself. False: not yet."""
        if self.kind == "restart":
            self.end()
            self.start("never-arrives:rank=%d,at=8s")
        elif self.kind == "oom":
            pid = self.rank_pid()
            if not pid or not self.is_whole or not kill_by_kernel(pid):
                return False
            self.fault_at = time.monotonic()
        return True

    def rank_pid(self):
        """The simulator's ranks are its children, in order."""
        try:
            with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid), encoding="ascii") as file:
                children = [int(word) for word in file.read().split()]
        except OSError:
            return None
        return children[self.rank] if len(children) == self.world else None

    def tick(self, jobs):
        """Looks at what is reported now. True: this life is over."""
        now = time.monotonic()
        for job in jobs:
            # On a busy machine a job may take longer to begin than until it is struck.
            self.is_whole |= job["name"] == self.name and job["ranks"] >= self.world and not job["nodes_silent"]
            if job["name"] != self.name or not job.get("verdict"):
                continue
            said = (job["verdict"]["class"], job["verdict"]["rank"])
            self.told[said] += 1
            if said == self.expected() and self.is_struck and self.verdict_s is None:
                self.verdict_s = now - self.fault_at - HANG_S
        if not self.is_struck and now > self.started + 8:
            self.is_struck = self.kind not in ("restart", "oom") or self.strike()
        if self.expected() is None:
            return self.process.poll() is not None
        return self.verdict_s is not None or self.is_struck and now > self.fault_at + HANG_S + PATIENCE_S

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def wrong(self):
        """What was reported and should not have been, and what was not reported. Slowness of a busy machine is real and is not judged."""
        found = ["said of it: %s, rank %s" % said for said in self.told
                 if said != self.expected() and said[0] not in NAMES_NOBODY and not said[0].startswith("slow")]
        if self.expected() and self.verdict_s is None:
            found.append("no verdict within %d s; said: %s" % (PATIENCE_S, dict(self.told)))
        return found

    def lost(self):
        """Of a traced job: is every operation accounted for? Problems, and how many were recorded and lost."""
        self.output.seek(0)
        try:
            truth = json.load(self.output)
        except ValueError:
            return ["the job did not end by itself"], 0, 0
        done = subprocess.run([self.cluster.program("ringside"), "verify", "--json", self.traces], text=True, env=self.cluster.environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if not done.stdout:
            # The disk was full from the beginning: the regions have the counts.
            return ([] if self.met_full_disk else ["verify: " + done.stderr.strip()]), 0, 0
        found = {process["rank"]: process for process in json.loads(done.stdout)["processes"]}
        problems, recorded, lost = [], 0, 0
        for rank in truth["ranks"]:
            issued = sum(one["issued"] for one in rank["communicators"])
            process = found.get(rank["rank"])
            if process is None:
                if not self.met_full_disk:
                    problems.append("rank %d has no trace" % rank["rank"])
                continue
            gone = process["lost_operations"] - process["recovered_operations"]
            if process["issued"] != issued or process["readable"] + gone != issued:
                problems.append("rank %d: issued %d, of which verify knows %d; %d readable, %d lost" %
                                (rank["rank"], issued, process["issued"], process["readable"], gone))
            if process["lost_operations"] and not self.met_full_disk:
                problems.append("rank %d lost %d although the disk had space" % (rank["rank"], process["lost_operations"]))
            recorded += process["readable"]
            lost += gone
        return problems, recorded, lost


def is_over(pid):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            with open("/proc/%d/status" % pid, encoding="ascii") as file:
                if "State:\tZ" in file.read():
                    return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


def kill_by_kernel(pid):
    """The OOM killer takes this process: it shares a memory group with one that wants everything and may not be taken."""
    group = os.path.join(CGROUP, "ringside-soak-%d" % pid)
    try:
        # The process may be there from an attempt that took too long.
        os.makedirs(group, exist_ok=True)
        with open(group + "/memory.limit_in_bytes", "w", encoding="ascii") as file:
            file.write(str(512 << 20))
        with open("/proc/%d/oom_score_adj" % pid, "w", encoding="ascii") as file:
            file.write("1000")
        with open(group + "/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(pid))
        eat = "import os;open('/proc/self/oom_score_adj','w').write('-900');open('%s/cgroup.procs','w').write(str(os.getpid()))\n" \
              "x=[]\nfor _ in range(540): x.append(b'x' * (1 << 20))\n" % group
        subprocess.run([sys.executable, "-c", eat], stderr=subprocess.DEVNULL, check=False, timeout=60)
        return is_over(pid)
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        try:
            os.rmdir(group)
        except OSError:
            pass


class Program:
    """A long-running program of the cluster, which can be killed and started again."""

    def __init__(self, name, command, scratch, environment):
        self.name, self.command, self.environment = name, command, environment
        self.log_path = os.path.join(scratch, name + ".log")
        self.process = None
        self.start()

    def start(self, command=None):
        with open(self.log_path, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(command or self.command, env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def end(self, number=signal.SIGKILL):
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(number)
        self.process.wait()

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()


class Cluster:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.regions = os.path.join(scratch, "regions")
        self.disk = os.path.join(scratch, "disk")
        self.clock = os.path.join(scratch, "clock")
        os.mkdir(self.disk)
        self.has_disk = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dm" % DISK_MIB, "none", self.disk], check=False,
                                       stderr=subprocess.DEVNULL).returncode == 0
        self.step_clock(0)
        ports = [free_port() for _ in range(NODES)]
        self.addresses = ["127.0.0.1:%d" % port for port in ports]
        self.agents = []
        for node in range(NODES):
            os.makedirs(os.path.join(self.regions, "node%04d" % node))
            self.agents.append(Program("agent%d" % node, self.agent_command(node, self.options.build), scratch, self.environment()))
        with open(os.path.join(scratch, "agents"), "w", encoding="ascii") as file:
            file.write("".join(address + "\n" for address in self.addresses))
        self.hub_port = free_port()
        self.hub_url = "http://127.0.0.1:%d" % self.hub_port
        self.hub = Program("hub", [self.program("ringside"), "hub", "--listen", "127.0.0.1:%d" % self.hub_port, "--interval", "1s",
                                   "--refresh", "5s", "--hang", "%ds" % HANG_S, "--agents", "@" + os.path.join(scratch, "agents")],
                           scratch, self.environment())
        self.prometheus = self.start_prometheus()

    def program(self, name):
        return os.path.join(self.options.build, name)

    def agent_command(self, node, build):
        return [os.path.join(build, "ringside-agent"), "--directory", os.path.join(self.regions, "node%04d" % node), "--listen",
                self.addresses[node], "--hang", "%ds" % HANG_S]

    def environment(self):
        """Of all processes on the nodes: they share a wall clock that steps."""
        return dict(live_job.clean_environment(), LD_PRELOAD=self.program("tests/stepped_clock_plugin.so"), STEPPED_CLOCK=self.clock,
                    ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0:abort_on_error=1")

    def step_clock(self, seconds):
        # Others have it mapped: it must not shrink.
        with open(self.clock, "r+b" if os.path.exists(self.clock) else "wb") as file:
            file.write(struct.pack("q", seconds * 10**9))

    def start_prometheus(self):
        if not shutil.which("prometheus"):
            return None
        config = os.path.join(self.scratch, "prometheus.yml")
        with open(config, "w", encoding="ascii") as file:
            file.write("global: {scrape_interval: 5s, scrape_timeout: 4s}\nscrape_configs:\n  - job_name: ringside\n"
                       "    static_configs:\n      - targets: %s\n" % json.dumps(self.addresses))
        return Program("prometheus", ["prometheus", "--config.file=" + config, "--storage.tsdb.path=" + os.path.join(self.scratch, "data"),
                                      "--storage.tsdb.retention.time=10m", "--web.listen-address=127.0.0.1:%d" % free_port(),
                                      "--log.level=warn"], self.scratch, live_job.clean_environment())

    def jobs(self):
        try:
            with urllib.request.urlopen(self.hub_url + "/api/v1/jobs", timeout=10) as answer:
                return json.load(answer)["jobs"]
        except (OSError, ValueError):
            return []

    def summary(self, address):
        try:
            with urllib.request.urlopen("http://%s/api/v1/summary" % address, timeout=10) as answer:
                return json.load(answer)["jobs"]
        except (OSError, ValueError):
            return []

    def series(self, address):
        try:
            with urllib.request.urlopen("http://%s/metrics" % address, timeout=10) as answer:
                return sum(1 for line in answer if not line.startswith(b"#"))
        except OSError:
            return None

    def end(self):
        for one in self.agents + [self.hub, self.prometheus]:
            if one and one.process.poll() is None:
                one.end()
        if self.has_disk:
            subprocess.run(["umount", "-l", self.disk], check=False)


class Troubles:
    """What happens to the cluster, one thing after the other; each is over after a while. Agent 0 is never killed: it shows what grows."""

    def __init__(self, cluster, seconds):
        self.cluster, self.seconds = cluster, seconds
        self.counts = collections.Counter()
        self.builds = {1: cluster.options.build, 2: cluster.options.build}
        self.begun = time.monotonic()
        self.next_at = self.begun + 20
        self.undo = []  # (when, what)
        self.is_disk_full = False
        self.down = set()  # programs that are gone or stopped on purpose

    def tick(self):
        now = time.monotonic()
        for when, what in list(self.undo):
            if now >= when:
                self.undo.remove((when, what))
                what()
        if now >= self.next_at:
            kind = random.choice(self.possible())
            getattr(self, kind)()
            self.counts[kind] += 1
            self.next_at = now + random.uniform(15, 45)

    def possible(self):
        found = ["agent_killed", "agent_stopped", "hub_stopped", "clock_stepped"]
        if self.cluster.prometheus and self.cluster.prometheus not in self.down:
            found.append("prometheus_gone")
        if self.cluster.has_disk and not self.is_disk_full:
            found.append("disk_full")
        if self.cluster.options.old:
            found.append("agent_of_another_release")
        if self.cluster.options.asan:
            found.append("agent_under_asan")
        # Afterwards one hub lives long enough to see whether it grows.
        if time.monotonic() < self.begun + self.seconds / 4:
            found.append("hub_killed")
        return [kind for kind in found if not kind.startswith("hub") or self.cluster.hub not in self.down]

    def later(self, low_s, high_s, what):
        self.undo.append((time.monotonic() + random.uniform(low_s, high_s), what))

    def gone(self, program, low_s, high_s, command=None):
        if program in self.down:
            return
        self.down.add(program)
        program.end()

        def again():
            program.start(command)
            self.down.discard(program)
        self.later(low_s, high_s, again)

    def stopped(self, program):
        if program in self.down:
            return
        self.down.add(program)
        program.process.send_signal(signal.SIGSTOP)

        def again():
            program.process.send_signal(signal.SIGCONT)
            self.down.discard(program)
        self.later(3, 20, again)

    def agent_killed(self):
        node = random.choice((1, 2))
        self.gone(self.cluster.agents[node], 1, 15, self.cluster.agent_command(node, self.builds[node]))

    def agent_stopped(self):
        self.stopped(random.choice(self.cluster.agents))

    def hub_stopped(self):
        self.stopped(self.cluster.hub)

    def hub_killed(self):
        self.gone(self.cluster.hub, 1, 10)

    def prometheus_gone(self):
        self.gone(self.cluster.prometheus, 5, 60)

    def replaced(self, node, other):
        build = self.cluster.options.build
        self.builds[node] = other if self.builds[node] == build else build
        self.gone(self.cluster.agents[node], 0, 1, self.cluster.agent_command(node, self.builds[node]))

    def agent_of_another_release(self):
        self.replaced(1, self.cluster.options.old)

    def agent_under_asan(self):
        self.replaced(2, self.cluster.options.asan)

    def clock_stepped(self):
        self.cluster.step_clock(random.choice((-7200, -60, -5, 0, 5, 60, 7200)))

    def disk_full(self):
        path = os.path.join(self.cluster.disk, "full")
        self.is_disk_full = True
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            while os.write(file, bytes(1 << 16)):
                pass
        except OSError:
            os.close(file)

        def again():
            os.unlink(path)
            self.is_disk_full = False
        self.later(5, 30, again)

    def end(self):
        for _, what in self.undo:
            what()


class Samples:
    """What must not grow, over time."""

    def __init__(self):
        self.rows = collections.defaultdict(list)  # what -> (pid, seconds, number)

    def add(self, what, pid, number):
        if number is not None:
            self.rows[what].append((pid, time.monotonic(), number))

    def add_process(self, name, pid):
        try:
            with open("/proc/%d/status" % pid, encoding="ascii") as file:
                status = dict(line.split(":", 1) for line in file if ":" in line)
            self.add(name + ": memory of its own, KiB", pid, int(status["RssAnon"].split()[0]))
            self.add(name + ": threads", pid, int(status["Threads"]))
            self.add(name + ": open files", pid, len(os.listdir("/proc/%d/fd" % pid)))
        except (OSError, KeyError, ValueError):
            pass

    def growth(self, what):
        """Medians of the second and the last third of the longest life: (minutes, second, last); None: too short."""
        lives = collections.defaultdict(list)
        for pid, at, number in self.rows[what]:
            lives[pid].append((at, number))
        longest = max(lives.values(), key=lambda rows: rows[-1][0] - rows[0][0])
        begin, end = longest[0][0], longest[-1][0]
        second = [number for at, number in longest if begin + (end - begin) / 3 <= at < begin + (end - begin) * 2 / 3]
        last = [number for at, number in longest if at >= begin + (end - begin) * 2 / 3]
        if not second or not last:
            return None
        return (end - begin) / 60, statistics.median(second), statistics.median(last)


def grew(what, second, last):
    """A twentieth more, and a little of each kind, is noise: jobs come and go."""
    slack = 512 if "KiB" in what else 40 if "series" in what else 6
    return last > second * 1.05 + slack


def start_steady(cluster, mode, seconds):
    """A job that runs all the time; it ends with the whole."""
    life = Life("healthy", 0, NODES, cluster)
    life.name = "steady-" + mode
    life.traces = os.path.join(cluster.scratch, "steady") if mode == "trace" else None
    life.output = open(os.path.join(cluster.scratch, life.name), "w+b")  # pylint: disable=consider-using-with
    command = [cluster.program("ringside"), "sim", "--json", "--plugin", cluster.program("libnccl-profiler-ringside.so"), "--nodes", str(NODES),
               "--gpus", "1", "-w", "ddp", "--kernel", "--rate", "5", "--seconds", "%ds" % seconds, "--node-regions", cluster.regions,
               "-m", mode] + (["-o", life.traces] if life.traces else [])
    life.process = subprocess.Popen(command, env=dict(cluster.environment(), RINGSIDE_JOB=life.name, RINGSIDE_BUFFER="1MiB"),
                                    stdout=life.output, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True)
    return life


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def kinds_here():
    found = [kind for kind in Life.FAULTS if kind not in ("container", "oom")]
    if os.geteuid() == 0:
        if os.access(CGROUP + "/memory.limit_in_bytes", os.F_OK) and os.access(CGROUP, os.W_OK):
            found.append("oom")
        if subprocess.run(["unshare", "--pid", "--ipc", "--mount", "--fork", "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0:
            found.append("container")
    return found


CLUSTER_CHECKS = {
    "a program ended by itself": "agents and hub only ended when they were killed",
    "ranks of two runs in one job": "a job that was restarted has the ranks of its newest run only",
}


class Soak:
    def __init__(self, options, scratch, tap):
        self.options, self.tap = options, tap
        self.cluster = Cluster(options, scratch)
        self.troubles = Troubles(self.cluster, options.seconds)
        self.samples = Samples()
        self.lives, self.steady, self.over = [], [], []
        self.traced = [0, 0]  # operations recorded, lost
        self.problems = []
        self.serial = 0
        self.bag = []

    def next_kind(self):
        if not self.bag:
            self.bag = kinds_here()
            random.shuffle(self.bag)
        return self.bag.pop()

    def finish(self, life):
        life.end()
        problems = life.wrong()
        if life.traces:
            lost, recorded, missed = life.lost()
            problems += lost
            self.traced[0] += recorded
            self.traced[1] += missed
            shutil.rmtree(life.traces, ignore_errors=True)
        for problem in problems:
            self.problems.append((life.kind, "%s: %s" % (life.name, problem)))
            self.tap.say(self.problems[-1][1])
        life.output.close()
        self.over.append(life)

    def sample(self, steady):
        for program in [self.cluster.agents[0], self.cluster.hub]:
            self.samples.add_process(program.name, program.process.pid)
        for life in steady:
            for pid in children(life.process.pid)[:1]:
                self.samples.add_process("a rank of " + life.name, pid)
        if self.cluster.agents[0] not in self.troubles.down:
            # Agents also find jobs in namespaces of this machine, which other tests may run.
            ours = {life.name for life in self.lives + steady + self.over}
            self.problems += [("ranks of two runs in one job", "agent0 counts %d ranks of %s" % (job["ranks"], job["name"]))
                              for job in self.cluster.summary(self.cluster.addresses[0])
                              if job["ranks"] > RANKS_PER_NODE and job["name"] in ours]
            self.samples.add("agent0: series", self.cluster.agents[0].process.pid, self.cluster.series(self.cluster.addresses[0]))
        self.samples.add("regions", 0, len(glob.glob(self.cluster.regions + "/*/*/*")))
        self.samples.add("traces", 0, len(glob.glob(self.cluster.disk + "/*")))

    def tick(self):
        self.troubles.tick()
        for program in self.cluster.agents + [self.cluster.hub]:
            if program not in self.troubles.down and program.process.poll() is not None:
                self.problems.append(("a program ended by itself", "%s ended with %d: %s" %
                                      (program.name, program.process.poll(), program.log()[-2000:])))
                program.start()
        jobs = [] if self.cluster.hub in self.troubles.down else self.cluster.jobs()
        for life in list(self.lives):
            life.met_full_disk |= self.troubles.is_disk_full
            if life.tick(jobs):
                self.lives.remove(life)
                self.finish(life)
        return jobs

    def run(self):
        end = time.monotonic() + self.options.seconds
        self.steady = steady = [start_steady(self.cluster, mode, self.options.seconds) for mode in ("flight", "trace")]
        sampled = started = 0
        while time.monotonic() < end or self.lives:
            jobs = self.tick()
            for life in steady:
                life.tick(jobs)
            if time.monotonic() < end and len(self.lives) < self.options.jobs and time.monotonic() > started + PACE_S:
                started = time.monotonic()
                self.serial += 1
                life = Life(self.next_kind(), self.serial, NODES * RANKS_PER_NODE, self.cluster)
                life.start()
                life.met_full_disk = self.troubles.is_disk_full
                self.lives.append(life)
            if time.monotonic() > sampled + 10:
                sampled = time.monotonic()
                self.sample(steady)
            time.sleep(1)
        self.troubles.end()
        for life in steady:
            life.process.wait()
            self.finish(life)

    def judge(self):
        kinds = collections.Counter(life.kind for life in self.over)
        for kind in sorted(kinds):
            bad = [text for name, text in self.problems if name == kind]
            self.tap.ok(not bad, "%d jobs %s: everything reported of them is right, nothing is missing" % (kinds[kind], kind), bad)
        for what, sentence in CLUSTER_CHECKS.items():
            bad = [text for name, text in self.problems if name == what]
            self.tap.ok(not bad, sentence, bad)
        reports = [program.name for program in self.cluster.agents + [self.cluster.hub] if "Sanitizer" in program.log()]
        self.tap.ok(not reports, "no report of a sanitizer", reports)
        rows = []
        for what in sorted(self.samples.rows):
            grown = self.samples.growth(what)
            if not grown:
                continue
            rows.append((what,) + grown)
            if self.options.seconds >= 1800:
                self.tap.ok(not grew(what, *grown[1:]), "does not grow: %s" % what, ["%.0f, then %.0f" % grown[1:]])
        return kinds, rows

    def table(self, kinds, rows):
        delays = sorted(life.verdict_s for life in self.over if life.verdict_s is not None)
        lines = ["A simulated cluster of %d nodes for %.0f minutes: an agent on each, a hub, %s Prometheus." %
                 (NODES, self.options.seconds / 60, "a real" if self.cluster.prometheus else "no"), "",
                 "Made by: tests/long/soak.py --seconds %d --seed %d --jobs %d%s%s --table FILE" %
                 (self.options.seconds, self.options.seed, self.options.jobs, " --old BUILD" if self.options.old else "",
                  " --asan BUILD" if self.options.asan else ""), "",
                 "jobs, by what happened to them                 jobs  wrong"]
        for kind in sorted(kinds):
            lines.append("%-44s %6d %6d" % (kind, kinds[kind], len({text.split(":")[0] for name, text in self.problems if name == kind})))
        lines += ["", "what must not happen to the cluster           times"]
        lines += ["%-44s %6d" % (what, sum(name == what for name, _ in self.problems)) for what in CLUSTER_CHECKS]
        lines += ["", "what happened to the cluster                  times"]
        lines += ["%-44s %6d" % (kind.replace("_", " "), count) for kind, count in sorted(self.troubles.counts.items())]
        if delays:
            lines += ["", "Verdicts: %d, median %.0f s, last %.0f s after the threshold of %d s." %
                      (len(delays), statistics.median(delays), delays[-1], HANG_S)]
        lines += ["Operations of traced jobs: %d recorded, %d lost and counted while the disk was full." % tuple(self.traced), "",
                  "medians of the second and last third of its life        minutes   second     last"]
        lines += ["%-52s %10.0f %8.0f %8.0f" % row for row in rows]
        slow = sum(1 for life in self.over if any(said[0].startswith("slow") for said in life.told))
        lines += ["", "Not judged: %d jobs were also called slow; the machine's load average was %.1f at the end." % (slow, os.getloadavg()[0])]
        return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=int, default=7200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="at a time, besides the two that run all the time")
    parser.add_argument("--build", default=os.environ.get("BUILD", "build"))
    parser.add_argument("--old", help="build of another release, for its agent")
    parser.add_argument("--asan", help="build with AddressSanitizer, for its agent")
    parser.add_argument("--table", help="write what was measured to this file")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    random.seed(options.seed)
    tap = Tap()
    scratch = tempfile.mkdtemp(prefix="soak.", dir=live_job.memory(2 << 30))
    soak = Soak(options, scratch, tap)
    try:
        soak.run()
        kinds, rows = soak.judge()
        table = soak.table(kinds, rows)
        print("".join("# %s\n" % line for line in table.splitlines()), end="")
        if options.table:
            with open(options.table, "w", encoding="utf-8") as file:
                file.write(table)
    finally:
        for life in soak.lives + soak.steady:
            life.end()
        soak.cluster.end()
        shutil.rmtree(scratch, ignore_errors=True)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
