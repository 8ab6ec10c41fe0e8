"""A running simulated job, with an agent for each of its nodes if wanted, and the doctor's answer."""

import json
import os
import re
import subprocess
import time

PATIENCE_S = 120


def clean_environment():
    """Our environment, without variables that would affect a job or the access to its agents."""
    return {key: value for key, value in os.environ.items()
            if not key.startswith(("RINGSIDE_", "NCCL_")) and
            key.lower() not in ("http_proxy", "all_proxy")}


class Agent:
    """The agent of one node."""

    def __init__(self, build, regions, hang_s):
        self.process = subprocess.Popen(
            [os.path.join(build, "ringside-agent"), "--directory", regions, "--listen",
             "127.0.0.1:0", "--hang", "%ds" % hang_s], env=clean_environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.address = None

    def wait_address(self):
        for line in self.process.stderr:
            found = re.search(r"listening on https?://([^,\s]*)", line)
            if found:
                self.address = found.group(1).rstrip("/")
                return
        raise RuntimeError("an agent does not listen")

    def end(self):
        self.process.kill()
        self.process.wait()


class LiveJob:
    """In `scratch`, which should be in memory: regions/nodeNNNN, and a file with the agents' addresses."""

    def __init__(self, build, scratch, nodes, per_node, hang_s):
        self.build, self.scratch, self.hang_s = build, scratch, hang_s
        self.per_node = per_node  # processes
        self.ringside = os.path.join(build, "ringside")
        self.nodes = [os.path.join(scratch, "regions", "node%04d" % node) for node in range(nodes)]
        self.process, self.agents = None, []

    def launch(self, *options):
        """Its ranks are processes, or threads of one per node, as the options say."""
        os.makedirs(self.scratch, exist_ok=True)
        self.process = subprocess.Popen(
            [self.ringside, "sim", "--kernel", "--nodes", str(len(self.nodes)), "--node-regions",
             os.path.dirname(self.nodes[0]), "-m", "flight"] + list(options),
            env=clean_environment(), stdout=subprocess.DEVNULL)

    def start(self, *options):
        """A job that runs for longer than it takes to see it."""
        self.launch(*options)
        self.wait(lambda: all(self.count(node) == self.per_node for node in self.nodes), "every node has its regions")

    def count(self, node):
        """Processes that readers see on a node: a file is there before it is a region."""
        done = subprocess.run([self.ringside, "ls", "--json", node], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, env=clean_environment(), check=False)
        return len(json.loads(done.stdout)["processes"]) if done.stdout else 0

    def start_agents(self):
        self.agents = [Agent(self.build, node, self.hang_s) for node in self.nodes]
        for agent in self.agents:
            agent.wait_address()
        with open(os.path.join(self.scratch, "agents"), "w", encoding="ascii") as file:
            file.write("".join(agent.address + "\n" for agent in self.agents))
        # They search for new processes periodically.
        self.wait(lambda: self.ask(True)[0]["looked_at"].get("processes") ==
                  len(self.nodes) * self.per_node, "agents see all processes")

    def wait(self, is_so, what):
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            if self.process.poll() is not None:
                raise RuntimeError("the job ended with %d before: %s" % (self.process.poll(), what))
            if time.monotonic() > deadline:
                raise RuntimeError("never: %s" % what)
            time.sleep(0.2)

    def wait_still(self, node=0):
        self.wait(lambda: self.age(self.nodes[node]) > self.hang_s + 2, "the job hangs")

    def age(self, regions):
        """Age of the oldest operation in flight on a node, in seconds."""
        done = subprocess.run([self.ringside, "ps", "--json"], text=True, stdout=subprocess.PIPE,
                              env=dict(clean_environment(), RINGSIDE_SHM=regions), check=False)
        issued = [op["issue_wall_ns"] for op in json.loads(done.stdout)["operations"]
                  if op["issue_wall_ns"]]
        return time.time() - min(issued) / 1e9 if issued else 0

    def ask(self, is_through_agents):
        """The doctor's document, and how long it took."""
        started = time.monotonic()
        # A busy machine is not a dead agent; dead ones refuse at once.
        sources = ["--timeout", "30s", "--agents", "@" + os.path.join(self.scratch, "agents")] \
            if is_through_agents else self.nodes
        done = subprocess.run([self.ringside, "doctor", "--json", "--hang", "%ds" % self.hang_s]
                              + sources, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=120, env=clean_environment(), check=False)
        # 3: it could not tell
        if done.returncode not in (0, 1, 3) or not done.stdout:
            raise RuntimeError("the doctor ends with %d: %s" % (done.returncode, done.stderr))
        return json.loads(done.stdout), time.monotonic() - started

    def end(self):
        for agent in self.agents:
            agent.end()
        if self.process:
            self.process.terminate()
            self.process.wait()


def memory(wanted_bytes):
    """A directory in memory with enough space; None: there is none."""
    if not os.access("/dev/shm", os.W_OK):
        return None
    space = os.statvfs("/dev/shm")
    return "/dev/shm" if space.f_bavail * space.f_frsize > wanted_bytes else None


def has_agents(build):
    return all(os.path.exists(os.path.join(build, name))
               for name in ("ringside-agent", "ringside-fetch"))
