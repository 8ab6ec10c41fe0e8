"""The cases of the drill, and the verdict expected for each: docs/DOCTOR.md, "Drill".

A case is a job for `ringside sim` and its true cause. Ranks and seeds are derived from the case's
number, so that the drill is the same everywhere.
"""

NODES = {"8": (1, 8), "8n": (2, 4), "64": (8, 8), "512": (64, 8)}
HANG = ["--at", "2s", "--seconds", "32s"]  # hung for 30 s: more than the doctor's 20 s


class Case:
    """One job, and the right verdict."""

    def __init__(self, fault, told, size, seed, options, **culprit):
        self.fault = fault          # row of the matrix
        self.told = told            # class; "none" for a healthy job
        self.size = size
        self.nodes, self.gpus = NODES[size]
        self.seed = seed
        self.options = options
        self.culprit = culprit      # key of the verdict: value, or a set of values
        self.without = ()           # nodes whose files are removed
        self.baseline = False       # compare with a healthy job of the same options

    def world(self):
        return self.nodes * self.gpus

    def command(self):
        # A named release has its own default.
        kernel = [] if "--release" in self.options else ["--kernel"]
        return ["--offline"] + kernel + ["--nodes", str(self.nodes), "--gpus", str(self.gpus),
                                         "--seed", str(self.seed)] + self.options

    def host(self, rank):
        return "node%04d" % (rank // self.gpus)

    def name(self):
        return "%s, %s ranks, seed %d: %s" % (self.fault, self.world(), self.seed,
                                              " ".join(self.options))


def pick(seed, salt, world):
    """A rank, spread over the job; the same for the same seed everywhere."""
    value = (seed * 2654435761 + salt * 40503 + 12345) & 0xffffffff
    value ^= value >> 15
    value = (value * 2246822519) & 0xffffffff
    return (value ^ value >> 13) % world


def named(case, rank, **more):
    case.culprit.update(rank=rank, host=case.host(rank), **more)
    return case


def hang(fault, told, size, seed, workload, text, rank, *extra, **more):
    case = Case(fault, told, size, seed, ["-w", workload, "-f", text] + HANG + list(extra))
    return named(case, rank, **more)


def hangs(size, seed, workload):
    """Faults that every workload can have, each once."""
    nodes, gpus = NODES[size]
    world = nodes * gpus
    rank = [pick(seed, salt, world) for salt in range(12)]

    def one(fault, told, text, who, *extra, **more):
        return hang(fault, told, size, seed, workload, text % who, who, *extra, **more)

    yield one("never arrives", "never_issued", "never-arrives:rank=%d", rank[0])
    yield one("mismatch: size", "mismatch", "mismatch:rank=%d,what=count", rank[1], rule="count")
    yield one("mismatch: type", "mismatch", "mismatch:rank=%d,what=datatype", rank[2],
              rule="datatype")
    yield one("mismatch: function", "mismatch", "mismatch:rank=%d,what=function", rank[3],
              rule="function")
    yield one("GPU not started", "gpu_not_reached", "gpu-stuck:rank=%d", rank[4])
    yield one("not launched", "not_launched", "gpu-stuck:rank=%d,what=not-launched", rank[5])
    yield one("killed process", "process_dead", "kill:rank=%d", rank[6])
    yield one("stopped process", "process_stopped", "stop:rank=%d", rank[7])
    if nodes > 1 and workload == "fsdp":
        # Transfers within a node are not reported, and in a tree most ranks have no others: rings.
        yield one("GPU does nothing", "gpu_stuck", "gpu-stuck:rank=%d,what=not-producing,comm=world",
                  rank[8])
    if nodes > 1 and workload != "tp-pp":
        yield one("stuck sending", "network_stuck", "stuck-send:rank=%d", rank[9])


RELEASES_WITHOUT_TIMES = ("2.24", "2.26", "2.27", "2.31")


def blind_hangs(size, seed, release, workload):
    """Without GPU times, as before 2.28 or with RINGSIDE_TIMES=off: inside a node only calls are reported, and a GPU that
    does nothing is not visible."""
    nodes, gpus = NODES[size]
    rank = [pick(seed, salt, nodes * gpus) for salt in range(70, 80)]
    where = "one node" if nodes == 1 else "two nodes"

    def one(fault, told, text, who, work=workload, **more):
        return hang("no GPU times, %s: %s" % (where, fault), told, size, seed, work, text % who, who,
                    "--release", release, "--times", "off", **more)

    yield one("never arrives", "never_issued", "never-arrives:rank=%d", rank[0])
    yield one("mismatch", "mismatch", "mismatch:rank=%d,what=count", rank[1], rule="count")
    yield one("killed process", "process_dead", "kill:rank=%d", rank[2])
    yield one("stopped process", "process_stopped", "stop:rank=%d", rank[3])
    base = rank[4] // gpus * gpus
    who, other = base + rank[4] % gpus, base + (rank[4] + 1) % gpus
    case = one("deadlock", "deadlock", "deadlock:rank=%d,peer=" + str(other), who, "tp-pp")
    case.culprit = {"either": who}
    yield case
    if nodes == 1:
        case = one("GPU not started", "not_judged", "gpu-stuck:rank=%d", rank[5])
        case.culprit = {}
        yield case
    else:
        yield one("stuck sending", "network_stuck", "stuck-send:rank=%d", rank[6], "fsdp")
    case = healthy(size, seed, workload, 5)
    case.fault = "no GPU times, %s: healthy" % where
    case.options += ["--release", release, "--times", "off"]
    yield case


def special_hangs(size, seed):
    nodes, gpus = NODES[size]
    world = nodes * gpus
    rank = [pick(seed, salt, world) for salt in range(20, 32)]
    yield hang("mismatch: order", "mismatch", size, seed, "fsdp",
               "mismatch:rank=%d,what=order" % rank[0], rank[0], rule="order")
    who = rank[1] or 1
    case = Case("mismatch: root", "mismatch", size, seed,
                ["-w", "ddp", "-f", "mismatch:rank=%d,what=root" % who, "--seconds", "32s"])
    yield named(case, who, rule="root")
    base = rank[2] // gpus * gpus
    who, other = base + rank[2] % gpus, base + (rank[2] + 1) % gpus
    case = Case("deadlock", "deadlock", size, seed,
                ["-w", "tp-pp", "-f", "deadlock:rank=%d,peer=%d" % (who, other)] + HANG)
    case.culprit["either"] = who
    yield case
    case = Case("deadlock", "deadlock", size, seed,
                ["-w", "moe", "-f", "deadlock:rank=%d,peer=%d" % (who, other)] + HANG)
    case.culprit["either"] = who
    yield case
    if nodes == 1:
        return
    # The ring of channel c leaves a node at its GPU c - 1: two channels per GPU make two links.
    who = rank[3]
    channel = (who % gpus + 1) % gpus + gpus
    peer = ((who // gpus + 1) % nodes) * gpus + channel % gpus
    case = hang("stuck sending, one link", "network_stuck", size, seed, "fsdp",
                "stuck-send:rank=%d,link=2" % who, who, "--channels", str(2 * gpus),
                peer=peer, channel=channel)
    yield case
    gone = pick(seed, 40, nodes)
    case = Case("node not seen", "unseen", size, seed,
                ["-w", "fsdp", "-f", "never-arrives:rank=%d" % (gone * gpus)] + HANG)
    case.without = (gone,)
    yield case


def slows(size, seed, workload):
    nodes, gpus = NODES[size]
    world = nodes * gpus
    rank = [pick(seed, salt, world) for salt in range(50, 60)]
    case = Case("slow rank", "slow_rank", size, seed,
                ["-w", workload, "-f", "slow-rank:rank=%d,factor=1.3" % rank[0], "--seconds", "20s"])
    yield named(case, rank[0])
    if nodes == 1:
        return
    who = rank[1]
    # Where rings leave the node: the last GPU of channel c's ring is c - 1.
    channel = (who % gpus + 1) % gpus
    peer = ((who // gpus + 1) % nodes) * gpus + channel
    # AllGather and ReduceScatter use the ring; for AllReduce it depends on the size. Peers are known from
    # regions, and from files of mode full.
    for mode in ("trace", "full"):
        case = Case("slow link", "slow_link", size, seed,
                    ["-w", "fsdp", "-f", "slow-link:from=%d,to=%d,factor=4" % (who, peer), "-m",
                     mode, "--seconds", "20s"])
        if mode == "full":
            case.culprit["peer"] = peer
        yield named(case, who)
    yield Case("degraded network", "slow_network", size, seed,
               ["-w", workload, "-f", "degraded-network:factor=3,at=20s", "--seconds", "40s"],
               rank=None)
    case = Case("degraded network", "slow_network", size, seed,
                ["-w", workload, "-f", "degraded-network:factor=3", "--seconds", "20s"], rank=None)
    case.baseline = True
    yield case
    # With and without communicators within nodes.
    for other in ("tp-pp", "ddp"):
        yield Case("slow NVLink", "slow_nvlink", size, seed,
                   ["-w", other, "-f", "slow-nvlink:factor=4,at=20s", "--seconds", "40s"], rank=None)
    node = pick(seed, 61, nodes)
    case = Case("slow NVLink of one node", "slow_nvlink", size, seed,
                ["-w", "tp-pp", "-f", "slow-nvlink:node=%d,factor=4,at=20s" % node,
                 "--seconds", "40s"])
    case.culprit.update(host="node%04d" % node)
    yield case
    # A tree does not show in which node.
    case = Case("slow NVLink of one node", "slow_nvlink", size, seed,
                ["-w", "ddp", "-f", "slow-nvlink:node=%d,factor=4,at=20s" % node, "--seconds", "40s"])
    case.culprit.update(host="node%04d" % node if world <= 16 else None)
    yield case
    if gpus > 8 or workload == "loop":
        return
    options = ["-w", workload, "--seconds", "20s"]
    for i in range(gpus):
        options += ["-f", "slow-rank:rank=%d,factor=1.3" % (node * gpus + i)]
    case = Case("slow host", "slow_host", size, seed, options)
    case.culprit.update(host="node%04d" % node)
    yield case


def healthy(size, seed, workload, jitter):
    return Case("healthy", "none", size, seed,
                ["-w", workload, "--jitter", str(jitter), "--seconds", "15s"])


class LiveCase(Case):
    """A running job: what files cannot show. Four nodes of two ranks; `agents`: through one per node,
    and these of them are dead."""

    def __init__(self, fault, told, options, agents=None, **culprit):
        super().__init__(fault, told, "8n", 1, ["-w", "fsdp", "--rate", "10"] + options, **culprit)
        self.nodes, self.gpus = 4, 2
        self.agents = agents

    def command(self):
        return ["--nodes", "4", "--gpus", "2"] + self.options


def live_cases():
    stuck = ["-f", "stuck-send:rank=3", "--at", "500ms"]
    yield LiveCase("running: killed process", "process_dead", ["-f", "kill:rank=5", "--at", "700ms"],
                   rank=5)
    yield LiveCase("running: stopped process", "process_stopped",
                   ["-f", "stop:rank=2", "--at", "700ms"], rank=2)
    yield LiveCase("running: stuck sending, agents", "network_stuck", stuck, (), rank=3)
    yield LiveCase("running: one agent dead", "network_stuck", stuck, (3,), rank=3)
    yield LiveCase("running: its agent dead", "agent_dead", stuck, (1,))


WORKLOADS = ("ddp", "fsdp", "tp-pp", "moe", "loop")


def plan(seeds, is_long):
    """All cases: `seeds` of each small one, one of each large one."""
    cases = []
    for seed in range(1, seeds + 1):
        for size in ("8", "8n", "64"):
            workload = ("fsdp", "ddp", "loop")[(seed + len(size)) % 3]
            cases += hangs(size, seed, workload)
            cases += special_hangs(size, seed)
            cases += slows(size, seed, ("fsdp", "ddp")[seed % 2])
        for workload in WORKLOADS:
            for jitter in (0, 2, 10):
                cases.append(healthy("8n" if jitter == 2 else "64", 100 * seed + jitter, workload,
                                     jitter))
        cases.append(healthy("8", seed, "ddp", 10))
        for number, release in enumerate(RELEASES_WITHOUT_TIMES):
            for size in ("8", "8n"):
                cases += blind_hangs(size, 10 * seed + number, release,
                                     ("fsdp", "ddp", "loop", "fsdp")[number])
    cases += hangs("512", 1, "fsdp")
    cases += special_hangs("512", 1)
    cases.append(healthy("512", 1, "fsdp", 5))
    cases += live_cases()
    if is_long:
        for seed in range(2, seeds + 1):
            for workload in ("moe", "tp-pp"):
                cases += hangs("64", seed, workload)
            cases += hangs("512", seed, "ddp")
            cases += special_hangs("512", seed)
            cases.append(healthy("512", seed, "moe", 10))
    return cases
