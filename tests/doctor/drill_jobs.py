"""Random jobs of the drill: case N is made from random.Random("drill-N") alone.

A job has a topology, a workload, a release, noise, at most two faults, and damage to its files. The true
cause is in its faults: which verdict would be right for each.
"""

import itertools
import random

WORKLOADS = ("ddp", "fsdp", "tp-pp", "moe", "loop")
PERIOD_S = {"ddp": 0.2, "fsdp": 0.8, "tp-pp": 0.8, "moe": 1.0, "loop": 0.02}
OPERATIONS = 500000         # of a job: a simulation takes less than a second
HANG_S = 20                 # what the doctor calls a hang

# Symptoms without a cause, and hangs without one: not wrong, but nobody is named.
VAGUE_SLOW = ("slow_communicator", "slow_size", "slow_algorithm", "below_expected", "not_judged")
VAGUE_HANG = ("stuck", "unseen", "agent_dead")
SLOW = ("slow_rank", "slow_host", "slow_link", "slow_rail", "slow_uplink", "slow_network", "slow_nvlink",
        "slow_communicator", "slow_size", "slow_algorithm", "below_expected")


def numbers(first, is_even):
    """Of cases, from this one on: even ones, for tuning, or odd ones."""
    return itertools.count(first + (first + is_even + 1) % 2, 2)


class Fault:
    """One fault: how it is played, and what would be right to say about it."""

    def __init__(self, row, text, grade, is_hang):
        self.row = row              # of the table
        self.text = text            # for --fault; a list if it needs several
        self.grade = grade          # verdict -> "right", "vague", "culprit" or "class"
        self.is_hang = is_hang
        self.is_seen = True         # its rank's file is there and whole
        self.baseline = False       # compared with the same job without it
        self.options = []           # instead of a fault

    def texts(self):
        return [self.text] if isinstance(self.text, str) else self.text


class Job:
    def __init__(self, number):
        self.number = number
        self.random = random.Random("drill-%d" % number)
        self.faults = []
        self.damage = []            # (what, argument)
        self.first = None           # options of the attempt before this one
        self.attempt = 1
        make(self)

    def world(self):
        return self.nodes * self.gpus

    def host(self, rank):
        return "node%04d" % ((rank // self.gpus + self.attempt - 1) % self.nodes)

    def common(self):
        """Options without faults."""
        words = ["--offline", "--nodes", str(self.nodes), "--gpus", str(self.gpus), "-w", self.workload,
                 "--seed", str(self.number), "--jitter", str(self.jitter), "--clock-shift", self.shift]
        words += self.release
        for noise in self.noise:
            words += ["--noise", noise]
        return words + self.extra

    def command(self, with_faults=True, iterations=None):
        words = self.common()
        if self.attempt > 1:
            words += ["--attempt", str(self.attempt), "--begin", "700s"]
        for fault in self.faults if with_faults else []:
            words += fault.options
            for text in fault.texts():
                words += ["-f", text]
        if iterations:
            return words + ["--iterations", str(iterations)]
        return words + ["--seconds", "%.2fs" % self.seconds] + (self.watchdog if with_faults else [])

    def has_kernels(self):
        """Whether the GPU's times are recorded: by default from NCCL 2.28 on."""
        return "--release" not in self.release or self.release[-1] in ("2.30", "2.31")

    def hidden(self):
        """Why nobody who has only this recording could name the cause of its fault; None if one could."""
        fault = self.faults[0]
        is_inside = self.workload == "tp-pp" or (self.workload == "moe" and self.nodes % 2 == 1)
        if fault.row.endswith("slow-rank") and not self.has_kernels() and is_inside and self.gpus > 1:
            return "slow ranks that the others wait for in operations inside their node, which are not timed"
        if fault.row.endswith("no baseline") and ("node=" not in fault.texts()[0] or self.nodes == 1):
            return "everything was as slow from the start, and there is no baseline"
        return None


def operations_of(job):
    """Of one rank in one iteration."""
    if job.workload == "moe":
        group = 2 * job.gpus if job.nodes % 2 == 0 else job.gpus
        return 8 * (1 + 4 * group) + 6
    return {"ddp": 17, "fsdp": 50, "tp-pp": 90, "loop": 9}[job.workload]


# ---- what is right -------------------------------------------------------------------------------

def names(verdict, job, rank):
    return verdict["rank"] == rank and verdict["host"] in (None, job.host(rank))


def grade_hang(job, told, rank):
    # Whether a kernel has started is only known of operations whose kernels are recorded.
    same = ("gpu_stuck", "gpu_not_reached")
    allowed = same if told in same and "--kernel" not in job.release else (told,)

    def grade(verdict):
        if verdict["class"] in VAGUE_HANG:
            return "vague"
        if verdict["class"] not in allowed:
            return "class"
        # Of two ranks that disagree, nobody knows which is right.
        if "evenly split" in verdict["title"] and (job.world() == 2 or job.workload in ("tp-pp", "moe")):
            return "right"
        if verdict["rank"] is None:
            return "vague" if verdict["host"] in (None, job.host(rank)) else "culprit"
        return "right" if names(verdict, job, rank) else "culprit"
    return grade


def grade_deadlock(job, ranks):
    def grade(verdict):
        if verdict["class"] in VAGUE_HANG:
            return "vague"
        if verdict["class"] != "deadlock":
            return "class"
        return "right" if {verdict["rank"], verdict["peer"]} & set(ranks) else "culprit"
    return grade


def grade_rank(job, rank):
    """A slow rank; with one GPU per node its host is the same."""
    def grade(verdict):
        if verdict["class"] in VAGUE_SLOW:
            return "vague"
        if verdict["class"] == "slow_host":
            if verdict["host"] != job.host(rank):
                return "culprit"
            return "right" if job.gpus == 1 else "vague"
        if verdict["class"] != "slow_rank":
            return "class"
        return "right" if names(verdict, job, rank) else "culprit"
    return grade


def grade_host(job, node):
    host = "node%04d" % ((node + job.attempt - 1) % job.nodes)

    def grade(verdict):
        if verdict["class"] in VAGUE_SLOW:
            return "vague"
        if verdict["class"] not in ("slow_host", "slow_rank"):
            return "class"
        if verdict["host"] != host:
            return "culprit"
        return "right" if verdict["class"] == "slow_host" or job.gpus == 1 else "vague"
    return grade


def grade_link(job, ends):
    """`ends`: the ranks of which one must be named; the sender alone unless the receiver is to blame."""
    def grade(verdict):
        if verdict["class"] in VAGUE_SLOW:
            return "vague"
        if verdict["class"] not in ("slow_link", "slow_receiver"):
            return "class"
        return "right" if {verdict["rank"], verdict["peer"]} & set(ends) else "culprit"
    return grade


def grade_network(verdict):
    if verdict["class"] in VAGUE_SLOW:
        return "vague"
    return "right" if verdict["class"] == "slow_network" else "class"


def grade_rail(job, rail):
    def grade(verdict):
        if verdict["class"] == "slow_rail" or (verdict["class"] == "slow_network" and
                                               "rail" in verdict["title"]):
            return "right"
        if verdict["class"] == "slow_network" or verdict["class"] in VAGUE_SLOW:
            return "vague"
        if verdict["class"] != "slow_link":
            return "class"
        ends = [end for end in (verdict["rank"], verdict["peer"]) if end is not None]
        return "vague" if any(end % job.gpus == rail for end in ends) else "culprit"
    return grade


def grade_uplink(job, node):
    host = "node%04d" % node

    def grade(verdict):
        if verdict["class"] in VAGUE_SLOW:
            return "vague"
        if verdict["class"] not in ("slow_uplink", "slow_host", "slow_network", "slow_link"):
            return "class"
        hosts = {verdict["host"], verdict["peer_host"]} - {None}
        if host not in hosts:
            return "culprit" if hosts else "vague"
        return "right" if verdict["class"] != "slow_link" or job.gpus == 1 else "vague"
    return grade


def grade_nvlink(job, node):
    def grade(verdict):
        if verdict["class"] in VAGUE_SLOW:
            return "vague"
        if verdict["class"] != "slow_nvlink":
            return "class"
        if job.nodes == 1:
            return "right"
        if node is None:
            return "right" if verdict["host"] is None else "culprit"
        if verdict["host"] is None:
            return "vague"
        return "right" if verdict["host"] == "node%04d" % node else "culprit"
    return grade


def grade_channels(verdict):
    said = " ".join([verdict["title"]] + verdict["evidence"])
    if verdict["class"] not in VAGUE_SLOW and verdict["class"] != "setup":
        return "class"
    return "right" if "channel" in said else "vague"


def grade_everybody(verdict):
    """The job is slower, and no rank, link or network is to blame."""
    return "right" if verdict["class"] == "below_expected" and "iterations" in verdict["title"] else "class"


# ---- faults --------------------------------------------------------------------------------------

def ring_link(job):
    """Two ranks of which the first sends to the second over the network, in the rings of all ranks."""
    node, channel = job.random.randrange(job.nodes), job.random.randrange(job.gpus)
    sender = node * job.gpus + (channel - 1) % job.gpus
    receiver = (node + 1) % job.nodes * job.gpus + channel % job.gpus
    return sender, receiver


def hang_fault(job):
    draw = job.random
    rank = draw.randrange(job.world())
    at = ",at=%.2fs" % job.at
    kinds = ["never-arrives", "never-arrives", "mismatch", "mismatch", "kill", "stop"]
    if job.has_kernels():
        kinds += ["not-started", "not-launched"]
    if job.nodes > 1:
        kinds += ["stuck-send", "stuck-send"]
        if job.has_kernels():
            kinds.append("not-producing")
    if job.workload in ("tp-pp", "moe") and job.gpus > 1:
        kinds.append("deadlock")
    kind = draw.choice(kinds)
    if kind == "mismatch":
        what = draw.choice(("count", "function", "datatype", "order") if job.has_kernels() else ("count",))
        return rank, Fault("mismatch", "mismatch:rank=%d,what=%s%s" % (rank, what, at),
                           grade_hang(job, "mismatch", rank), True)
    if kind == "deadlock":
        base = rank // job.gpus * job.gpus
        peer = base + (rank + 1 - base) % job.gpus
        return rank, Fault("deadlock", "deadlock:rank=%d,peer=%d%s" % (rank, peer, at),
                           grade_deadlock(job, (rank, peer)), True)
    told = {"never-arrives": "never_issued", "kill": "process_dead", "stop": "process_stopped",
            "not-started": "gpu_not_reached", "not-launched": "not_launched", "stuck-send": "network_stuck",
            "not-producing": "gpu_stuck"}[kind]
    row = "gpu-stuck " + kind if kind.startswith("not-") else kind
    text = "%s:rank=%d%s" % (kind, rank, at)
    if kind.startswith("not-"):
        text = "gpu-stuck:rank=%d,what=%s%s" % (rank, kind, at)
    return rank, Fault(row, text, grade_hang(job, told, rank), True)


SLOW_KINDS = ("slow-rank",) * 4 + ("slow-host",) * 2 + ("slow-link",) * 3 + (
    "degraded-network", "degraded-network", "slow-nvlink", "slow-nvlink", "slow-rail", "slow-uplink", "slow-receiver",
    "starved", "power-cap", "fewer-channels", "link-in-node")


def slow_fault(job):
    draw = job.random
    kind = draw.choice(SLOW_KINDS)
    while (job.nodes == 1 and kind in ("slow-host", "slow-link", "degraded-network", "slow-rail", "slow-uplink",
                                       "slow-receiver", "fewer-channels")) or \
            (job.gpus == 1 and kind in ("slow-nvlink", "slow-rail", "fewer-channels", "link-in-node")):
        kind = draw.choice(SLOW_KINDS)
    rank, node = draw.randrange(job.world()), draw.randrange(job.nodes)
    when = ",at=%.2fs" % job.at
    from_start = kind in ("degraded-network", "slow-nvlink") and draw.random() < 0.3
    if from_start:
        when = ""
    elif draw.random() < 0.15 and kind not in ("fewer-channels",):
        when += ",until=%.2fs" % (job.at + (job.seconds - job.at) * draw.uniform(0.5, 0.8))
        job.is_over = True
    factor = draw.choice((1.05, 1.15, 1.3, 1.6, 3))
    far = draw.choice((1.15, 1.3, 1.6, 2, 3, 4, 8))
    row = kind
    if kind == "slow-rank":
        fault = Fault(row, "slow-rank:rank=%d,factor=%s%s" % (rank, factor, when), grade_rank(job, rank), False)
    elif kind == "slow-host":
        fault = Fault(row, ["slow-rank:rank=%d,factor=%s%s" % (node * job.gpus + i, factor, when)
                            for i in range(job.gpus)], grade_host(job, node), False)
    elif kind == "slow-link":
        sender, receiver = ring_link(job)
        fault = Fault(row, "slow-link:from=%d,to=%d,factor=%s%s" % (sender, receiver, far, when),
                      grade_link(job, (sender,)), False)
    elif kind == "link-in-node":
        first = node * job.gpus + draw.randrange(job.gpus)
        other = node * job.gpus + (first + 1 - node * job.gpus) % job.gpus
        fault = Fault(row, "slow-link:from=%d,to=%d,factor=%s%s" % (first, other, 4 * far, when),
                      grade_nvlink(job, node), False)
    elif kind == "degraded-network":
        fault = Fault(row, "degraded-network:factor=%s%s" % (far, when), grade_network, False)
    elif kind == "slow-nvlink":
        whole = draw.random() < 0.5
        fault = Fault(row, "slow-nvlink:%sfactor=%s%s" % ("" if whole else "node=%d," % node, 2 * far, when),
                      grade_nvlink(job, None if whole else node), False)
    elif kind == "slow-rail":
        rail = draw.randrange(job.gpus)
        fault = Fault(row, "slow-rail:rail=%d,factor=%s%s" % (rail, far, when), grade_rail(job, rail), False)
    elif kind == "slow-uplink":
        way = draw.choice(("both", "sending", "receiving"))
        fault = Fault(row, "slow-uplink:node=%d,what=%s,factor=%s%s" % (node, way, far, when),
                      grade_uplink(job, node), False)
    elif kind == "slow-receiver":
        how = draw.choice(("credits", "wire"))
        fault = Fault(row, "slow-receiver:rank=%d,what=%s,factor=%s%s" % (rank, how, far, when),
                      grade_link(job, (rank,)), False)
    elif kind == "starved":
        fault = Fault(row, "starved:rank=%d,factor=%s%s" % (rank, draw.choice((2, 5, 10)), when),
                      grade_rank(job, rank), False)
    elif kind == "power-cap":
        fault = Fault(row, "power-cap:factor=%s%s" % (draw.choice((1.2, 1.4, 1.6)), when), grade_everybody, False)
    else:
        fault = Fault("fewer channels than the baseline", [], grade_channels, False)
        fault.options = ["--channels", str(draw.choice((1, 2, 4)))]
        fault.baseline = True
    if from_start:
        fault.baseline = draw.random() < 0.5
        fault.row += ", from start, %s" % ("baseline" if fault.baseline else "no baseline")
    return rank, fault


# ---- everything else -----------------------------------------------------------------------------

def make_noise(draw, workload):
    """Up to three kinds, of which some last long enough to matter in a short job."""
    # A rank that is slow for a large part of a short job is not noise.
    kinds = {"compute": "compute:percent=%d,every=%ds" % draw.choice(((2, 1), (5, 1), (10, 1), (5, 2), (2, 5))),
             "tail": "tail:percent=%s,for=%dms" % (draw.choice((0.2, 0.5, 1)), draw.choice((5, 20, 50))),
             "loader": "loader:every=%ds,for=%dms" % (draw.choice((10, 20)), draw.choice((100, 300))),
             "gc": "gc:every=%ds,for=%dms" % (draw.choice((2, 5)), draw.choice((10, 50))),
             # By one rank alone, but so short that it costs less than 2%: longer ones are its fault.
             "checkpoint": "checkpoint:every=%ds,%s" % (draw.choice((5, 10)), draw.choice(
                 ("for=1s", "for=1s", "for=70ms,rank=0"))),
             "evaluation": "evaluation:every=%ds,for=2s" % draw.choice((8, 15)),
             "thermal": "thermal:percent=%d,every=%ds" % draw.choice(((2, 5), (4, 2), (1, 15))),
             "gpus": "gpus:percent=%s" % draw.choice((0.5, 1, 1.5)),
             "batches": "batches:percent=%d%s" % (draw.choice((10, 30)), draw.choice(("", ",per=rank"))),
             "contention": "contention:percent=%d" % draw.choice((30, 70)),
             "loss": "loss:percent=%s,for=%dms" % (draw.choice((0.2, 1)), draw.choice((1, 5))),
             "experts": "experts:percent=%d" % draw.choice((20, 60))}
    if workload != "moe":
        del kinds["experts"]
    return [kinds[name] for name in draw.sample(sorted(kinds), draw.choice((1, 1, 2, 3)))]


def make_topology(job, draw):
    job.nodes = draw.choice((1, 1, 2, 2, 3, 4, 4, 6, 8, 8, 12, 16, 24, 32, 64))
    job.gpus = draw.choice((1, 2, 4, 8, 8, 8))
    job.workload = draw.choice(WORKLOADS)
    if job.nodes == 1 and job.gpus == 1:
        job.gpus = 8
    if job.workload == "moe" and job.world() > 64:
        job.nodes = max(1, 64 // job.gpus)
    kernels = draw.random()
    often = 0.4 if job.workload in ("tp-pp", "moe") else 0.62
    job.release = [] if kernels < often else ["--kernel"] if kernels < 0.72 else \
        ["--release", "2.30"] if kernels < 0.8 else \
        ["--release", draw.choice(("2.24", "2.26", "2.27", "2.31"))]
    job.jitter = draw.choice((0, 1, 2, 2, 5, 10))
    job.shift = draw.choice(("0s", "1ms", "100ms", "1s"))
    job.extra = []
    job.noise = make_noise(draw, job.workload) if draw.random() < 0.5 else []


def make_damage(job, culprits, draw):
    """Files that are missing or cut. The culprit's own, or others'."""
    what = draw.random()
    if what >= 0.14 or job.world() < 4:
        return
    if what < 0.05:
        rank = draw.randrange(job.world())
        job.damage.append(("without rank", rank))
        lost = {rank}
    elif what < 0.08 and job.nodes > 2:
        node = draw.randrange(job.nodes)
        job.damage.append(("without node", node))
        lost = set(range(node * job.gpus, (node + 1) * job.gpus))
    else:
        share = draw.choice((0, 0.3, 0.98))
        lost = {rank for rank in range(job.world()) if draw.random() < share} or {draw.randrange(job.world())}
        job.damage.append(("cut", (sorted(lost), draw.choice((0.5, 0.67, 0.98)))))
    for fault, culprit in zip(job.faults, culprits):
        # Who disagrees is only known from the others: those of its node, in the smallest groups.
        needed = {culprit}
        if fault.row in ("mismatch", "deadlock"):
            first = culprit // job.gpus * job.gpus
            needed = set(range(first, first + job.gpus))
        fault.is_seen = not needed & lost and 2 * len(lost) < job.world()


def make(job):
    draw = job.random
    make_topology(job, draw)
    kind = draw.random()
    # With less to compute, a job depends more on its network.
    period = PERIOD_S[job.workload] / random.Random("drill-speed-%d" % job.number).choice((1, 1, 1, 3, 6))
    iterations = max(20.0, min(200.0, OPERATIONS / (job.world() * operations_of(job))))
    job.seconds = max(10.0, min(60.0, iterations * period))
    if iterations * period < job.seconds:
        job.extra += ["--rate", "%.3f" % (iterations / job.seconds)]
    elif period < PERIOD_S[job.workload]:
        job.extra += ["--rate", "%.3f" % (1 / period)]
    job.at = job.seconds * draw.uniform(0.3, 0.5)
    job.watchdog = []
    job.is_over = False         # the fault has ended
    job.is_young = False        # the hang is younger than the doctor's threshold
    culprits = []
    if kind < 0.22:
        job.row = "healthy"
    elif kind < 0.58:
        rank, fault = hang_fault(job)
        job.faults, culprits, job.row = [fault], [rank], fault.row
        draws = draw.random()
        job.at = job.seconds = min(job.seconds, 10.0)
        fault.text = fault.text.rsplit(",at=", 1)[0] + ",at=%.2fs" % job.at
        if draws < 0.08:
            job.is_young, job.row = True, "hang younger than 20 s"
            job.seconds += draw.uniform(4, 12)
        elif draws < 0.2 and fault.row != "stop":
            job.watchdog = ["--watchdog", draw.choice(("60s", "600s", "1800s"))]
        else:
            job.seconds += draw.uniform(25, 120)
    elif kind < 0.9:
        rank, fault = slow_fault(job)
        job.faults, culprits, job.row = [fault], [rank], fault.row
    elif kind < 0.96:
        both = [slow_fault(job)]
        both.append(slow_fault(job) if draw.random() < 0.5 else hang_fault(job))
        job.faults, culprits = [fault for _, fault in both], [rank for rank, _ in both]
        job.row = "two faults: slow and %s" % ("hang" if job.faults[1].is_hang else "slow")
        for fault in job.faults:
            fault.baseline = False
        if job.faults[1].is_hang:
            job.seconds += draw.uniform(25, 60)
            late = job.seconds - 25
            job.faults[1].text = job.faults[1].text.rsplit(",at=", 1)[0] + ",at=%.2fs" % min(late, job.at + 20)
    else:
        # A job that hung, was aborted and started again.
        rank, fault = hang_fault(job)
        while fault.row == "stop":
            rank, fault = hang_fault(job)
        fault.text = fault.text.rsplit(",at=", 1)[0] + ",at=3.00s"
        job.first = job.common() + ["-f", fault.text, "--watchdog", "600s", "--seconds", "10s"]
        job.attempt = 2
        job.row = "restart, then healthy"
        if draw.random() < 0.5:
            rank = draw.randrange(job.world())
            job.faults = [Fault("slow-rank", "slow-rank:rank=%d,factor=1.6,at=%.2fs" % (rank, job.at),
                                grade_rank(job, rank), False)]
            culprits, job.row = [rank], "restart, then slow-rank"
        return
    make_damage(job, culprits, draw)
