"""Scenarios for the rules: series as agents would export them for a job, and the alerts that must fire at each time.

    rule_stories.py DIRECTORY

writes one file for `promtool test rules` per scenario and prints their names with a description each. A job has two nodes
with two GPUs: communicator "world" (mixed), "tp" of each node (nvlink-only), "dp" of GPUs with the same number (net-only).
The second node is a target twice, in all scenarios: nothing may depend on it.
"""
import json
import os
import sys
import urllib.parse

RULES = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../deploy/prometheus/rules"))
HOSTS = [f"node{number}" for number in range(6)]
TWICE = "node1"
# The dashboard that an alert links to.
DASHBOARDS = {alert: "ringside-" + dashboard for dashboard, alerts in {
    "hang": ("NcclHangRankMissing", "NcclHangProcessGone", "NcclHangCulprit", "NcclHangAllArrived", "NcclHangUnexplained", "NcclMismatch"),
    "waiting": ("NcclStraggler", "NcclSlowRank"),
    "bandwidth": ("NcclNetworkDegraded", "NcclNvlinkDegraded", "NcclSlowLink", "NcclSlowNvlink", "NcclSlowNetwork"),
    "job": ("NcclRecordingLosses", "NcclRanksUnseen")}.items() for alert in alerts}
# Those that link to the agent of a node.
OF_NODE = ("NcclHangRankMissing", "NcclHangProcessGone", "NcclHangCulprit", "NcclStraggler", "NcclNvlinkDegraded", "NcclSlowRank",
           "NcclSlowLink", "NcclSlowNvlink")
LINKS = "ringside-links.rules.yml"


class Member:
    def __init__(self, job, comm, comm_name, kind, rank, nranks, global_rank):
        self.job, self.global_rank, self.kind, self.name = job, global_rank, kind, comm_name
        self.host = HOSTS[global_rank // 2]
        self.labels = {"nccl_job": job.name, "comm": comm, "rank": str(rank)}
        self.info = dict(self.labels, comm_name=comm_name, kind=kind, nranks=str(nranks), host=self.host,
                         nnodes="1" if kind == "nvlink-only" else "2", global_rank=str(global_rank),
                         pid=job.pid(global_rank), gpu=str(global_rank % 2), gpu_uuid="")


class Job:
    """Series by name and labels, each a function of the time in seconds that returns a number, or None if absent."""

    def __init__(self, name="train", comm_suffix="", first_pid=100, ranks=4, process_per_node=False):
        self.name, self.first_pid, self.ranks, self.series = name, first_pid, ranks, []
        self.process_per_node = process_per_node
        world = "aa" + comm_suffix
        self.members = [Member(self, world, "world", "mixed", rank, ranks, rank) for rank in range(ranks)]
        if ranks != 4:
            return
        for node in range(2):
            self.members += [Member(self, f"b{node}{comm_suffix}", "tp", "nvlink-only", rank, 2, node * 2 + rank)
                             for rank in range(2)]
        for gpu in range(2):
            self.members += [Member(self, f"c{gpu}{comm_suffix}", "dp", "net-only", rank, 2, rank * 2 + gpu)
                             for rank in range(2)]

    def pid(self, global_rank):
        return str(self.first_pid + (global_rank // 2 if self.process_per_node else global_rank))

    def on(self, comm_name):
        return [member for member in self.members if member.name == comm_name]

    def add(self, metric, labels, host, value):
        """Adds a series; those of TWICE also as Prometheus has them if it scrapes that agent a second time, two seconds earlier."""
        target = dict(labels, instance=host + ":9400", job="ringside")
        self.series.append((metric, target, value))
        if host == TWICE:
            self.series.append((metric, dict(target, partition="debug"), lambda t: value(max(0, t - 2))))

    def describe(self, there=lambda t, host: True, state="alive"):
        """Info series; there(t, host): whether the agent of that host was scraped."""
        for rank in range(0, self.ranks, 2 if self.process_per_node else 1):
            host = HOSTS[rank // 2]
            labels = {"nccl_job": self.name, "host": host, "pid": self.pid(rank), "global_rank": str(rank),
                      "local_rank": str(rank % 2), "mode": "flight", "interface": "5", "state": state}
            self.add("nccl_process_info", labels, host, lambda t, h=host: 1 if there(t, h) else None)
        for member in self.members:
            self.add("nccl_communicator_info", member.info, member.host,
                     lambda t, h=member.host: 1 if there(t, h) else None)

    def progress(self, issue, age, in_flight=None, signature=lambda m, t: 7, there=lambda t, host: True):
        """issue(member, t): collectives called; age(member, t): age of the oldest in flight, 0 if none."""
        in_flight = in_flight or (lambda m, t: 1 if age(m, t) else 0)
        for m in self.members:
            for metric, function in (("nccl_collective_number_issued", issue), ("nccl_oldest_operation_age_seconds", age),
                                     ("nccl_operations_in_flight", in_flight), ("nccl_collective_signature", signature)):
                self.add(metric, m.labels, m.host,
                         lambda t, f=function, m=m: f(m, t) if there(t, m.host) else None)

    def totals(self, seconds, bus_bytes=None, there=lambda t, host: True, function="AllReduce", size="1MiB", timed=1):
        """seconds(member, t), bus_bytes(member, t): counters of all operations; `timed` is the timed share."""
        for m in self.members:
            labels = dict(m.labels, function=function, size=size)

            def add(metric, value, host=m.host, labels=labels):
                self.add(metric, labels, host, lambda t: value(t) if there(t, host) else None)
            add("nccl_operations_total", lambda t: 1000 * t)
            add("nccl_timed_operations_total", lambda t: 1000 * t * timed)
            if timed:
                add("nccl_operation_seconds_total", lambda t, m=m: seconds(m, t) * timed)
            if timed and bus_bytes:
                add("nccl_operation_bus_bytes_total", lambda t, m=m: bus_bytes(m, t) * timed)


def selector(metric, labels):
    return metric + "{" + ", ".join(f"{key}={json.dumps(value)}" for key, value in sorted(labels.items())) + "}"


def values(function, step, until):
    out, was_there = [], False
    for t in range(0, until + 1, step):
        value = function(t)
        if value is None:
            out.append("stale" if was_there else "_")
        else:
            out.append(repr(value))
        was_there = value is not None
    return " ".join(out)


class Story:
    def __init__(self, sentence, step, until):
        self.sentence, self.step, self.until, self.jobs, self.checks, self.words = sentence, step, until, [], [], []
        self.recorded = []

    def job(self, *arguments, **named):
        self.jobs.append(Job(*arguments, **named))
        return self.jobs[-1]

    def expect(self, t, *alerts):
        """At t exactly these alerts fire: (name, severity, {labels})."""
        self.checks.append((t, alerts))

    def series(self, t, expr, *samples):
        """At t the expression has exactly these samples: (labels, value)."""
        self.recorded.append({"expr": expr, "eval_time": f"{t}s",
                              "exp_samples": [{"labels": selector("", labels), "value": value} for labels, value in samples]})

    def never(self, first=0):
        for t in range(first, self.until + 1, self.step):
            self.expect(t)

    def text(self, t, alert, labels, annotations):
        self.texts(t, alert, [(labels, annotations)])

    def texts(self, t, alert, alerts):
        """At t the alert has these labels and texts, and the links that belong to them."""
        self.words.append({"eval_time": f"{t}s", "alertname": alert,
                           "exp_alerts": [{"exp_labels": labels, "exp_annotations": dict(words, **self.links(alert, labels))}
                                          for labels, words in alerts]})

    def links(self, alert, labels):
        links = {"runbook_url": f"https://ringside.example.org/runbooks/{alert}.md"}
        if "nccl_job" not in labels:
            return dict(links, node_url=f"http://{labels['instance']}/")
        job = urllib.parse.quote_plus(labels["nccl_job"])
        links["dashboard_url"] = f"https://grafana/d/{DASHBOARDS[alert]}?var-nccl_job={job}"
        links["job_url"] = f"https://hub/?job={job}"
        if alert in OF_NODE:
            processes = [at for job in self.jobs for metric, at, _ in job.series if metric == "nccl_process_info"]
            is_known = any(at["nccl_job"] == labels["nccl_job"] and at["host"] == labels.get("host") for at in processes)
            links["node_url"] = f"http://{labels['host']}:9400/" if is_known else ""
        return links

    def document(self):
        series = [{"series": selector(metric, labels), "values": values(function, self.step, self.until)}
                  for job in self.jobs for metric, labels, function in job.series]
        tests = []
        for t, alerts in self.checks:
            wanted = [{"value": 1, "labels": selector("ALERTS", dict(labels, alertname=name, severity=severity,
                                                                    alertstate="firing"))}
                      for name, severity, labels in alerts]
            tests.append({"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{t}s", "exp_samples": wanted})
        return {"rule_files": [LINKS] + sorted(os.path.join(RULES, name) for name in os.listdir(RULES) if name != LINKS),
                "evaluation_interval": f"{self.step}s",
                "tests": [{"interval": f"{self.step}s", "input_series": series, "promql_expr_test": tests + self.recorded,
                           "alert_rule_test": self.words}]}


stories = {}


def story(sentence, step, until):
    def register(function):
        made = Story(sentence, step, until)
        function(made)
        stories[function.__name__] = made
        return function
    return register


# --- Hangs. Healthy jobs call 10 collectives per second, and none takes a second.

def healthy_issue(m, t):
    return 10 * t


def healthy_age(m, t):
    return 0.02


def culprit(member):
    wanted = ("nccl_job", "comm", "comm_name", "kind", "nranks", "rank", "host", "pid", "global_rank", "gpu")
    return {key: member.info[key] for key in wanted}


def hang_at(start, missing, comm_name="world"):
    """From `start` on the ranks of comm_name wait for global rank `missing`; nothing else is in flight."""
    def issue(m, t):
        if t < start:
            return 10 * t
        return 10 * start + (0 if m.name != comm_name or m.global_rank == missing else 1)

    def age(m, t):
        if t < start:
            return 0.02
        return 0 if m.name != comm_name or m.global_rank == missing else t - start + 0.5
    return issue, age


@story("a missing rank is named within 30 s, and no other rank", 5, 120)
def rank_missing(s):
    job = s.job()
    job.describe()
    job.progress(*hang_at(60, 2))
    late = culprit(job.members[2])
    for t in range(0, 75, 5):
        s.expect(t)
    for t in range(90, 121, 5):
        s.expect(t, ("NcclHangRankMissing", "warning", late))
    s.text(90, "NcclHangRankMissing", dict(late, severity="warning"), {
        "summary": "Job train hangs: rank 2 on node1 has not arrived",
        "description": "Other ranks have been in an operation of communicator world (aa) for 30.5s. Its rank 2 of 4 has not called that"
                       " operation and waits nowhere else: rank 2 of the job, process 102 on node1, GPU 0."})


@story("a hang of five minutes is critical", 5, 400)
def hang_lasts(s):
    job = s.job()
    job.describe()
    job.progress(*hang_at(60, 2))
    late = culprit(job.members[2])
    s.expect(370, ("NcclHangRankMissing", "warning", late))
    s.expect(395, ("NcclHangRankMissing", "warning", late), ("NcclHangRankMissing", "critical", late))


@story("ranks that share a process are distinguished", 5, 120)
def one_process(s):
    job = s.job(process_per_node=True)
    job.describe()
    job.progress(*hang_at(60, 2))
    s.expect(90, ("NcclHangRankMissing", "warning", culprit(job.members[2])))


@story("hosts that ran ahead by different amounts are not missing", 5, 120)
def ran_ahead(s):
    job = s.job()
    job.describe()
    issue, age = hang_at(60, 2)
    job.progress(lambda m, t: issue(m, t) + (m.global_rank if t >= 60 and m.name == "world" and m.global_rank != 2 else 0), age)
    s.expect(90, ("NcclHangRankMissing", "warning", culprit(job.members[2])))


@story("the root cause of a chain of waiting ranks is named", 5, 120)
def cascade(s):
    job = s.job()
    job.describe()

    # Rank 3 does not arrive in tp of its node: rank 2 waits there. Ranks 0 and 1 wait in dp for 2 and 3.
    def waits(m):
        return (m.name == "tp" and m.global_rank == 2) or (m.name == "dp" and m.global_rank in (0, 1))
    job.progress(lambda m, t: 10 * min(t, 60) + (1 if t >= 60 and waits(m) else 0),
                 lambda m, t: 0.02 if t < 60 else (t - 60 + 0.5 if waits(m) else 0))
    rank3 = [m for m in job.members if m.global_rank == 3]
    s.expect(90, *[("NcclHangRankMissing", "warning", culprit(m)) for m in rank3 if m.name in ("tp", "dp")])


@story("a rank missing in a replayed graph is named", 5, 120)
def replay_missing(s):
    job = s.job()
    job.describe()
    issue, age = hang_at(60, 2)
    job.progress(lambda m, t: 40, age)
    for m in job.members:
        job.add("nccl_collective_number_replayed", m.labels, m.host, lambda t, m=m: issue(m, t))
    s.expect(90, ("NcclHangRankMissing", "warning", culprit(job.members[2])))


@story("a waiting Recv names the peer that has not sent", 5, 120)
def peer_missing(s):
    job = s.job()
    job.describe()
    waiting = job.on("dp")[1]
    job.progress(lambda m, t: 10 * min(t, 60), lambda m, t: t - 59.5 if m is waiting and t >= 60 else 0)
    job.add("nccl_oldest_operation_info", dict(waiting.labels, function="Recv", number="5", state="running", waits_for="recv_net",
                                               peer="0"), waiting.host, lambda t: 1 if t >= 65 else None)
    s.expect(90, ("NcclHangRankMissing", "warning", culprit(job.on("dp")[0])))
    s.series(90, "max by (comm, rank) (member:nccl_missing:peers)", ({"comm": "c0", "rank": "0"}, 1))


@story("a hang with all ranks present is reported as such", 5, 120)
def all_arrived(s):
    job = s.job()
    job.describe()
    issue, age = hang_at(60, None)
    job.progress(issue, age)
    labels = {"nccl_job": "train", "comm": "aa", "comm_name": "world", "kind": "mixed", "nranks": "4"}
    s.expect(70)
    s.expect(90, ("NcclHangAllArrived", "warning", labels))
    s.text(90, "NcclHangAllArrived", dict(labels, severity="warning"), {
        "summary": "Job train hangs: all 4 ranks of world have arrived, none makes progress",
        "description": "All ranks of communicator world (aa, mixed) are in an operation, the oldest for 30.5s. No rank is missing: check the"
                       " network, the GPUs and whether the calls match."})


@story("with unmonitored ranks no rank is named, and not all have arrived", 5, 120)
def half_seen(s):
    job = s.job()
    there = lambda t, host: host == "node0"
    job.describe(there)
    job.progress(*hang_at(60, None), there=there)
    s.expect(90, ("NcclHangUnexplained", "warning", {"nccl_job": "train"}))
    s.text(90, "NcclHangUnexplained", {"nccl_job": "train", "severity": "warning"}, {
        "summary": "Job train hangs, cause unknown",
        "description": "The oldest operation of job train has been in flight for 30.5s. The missing rank could not be determined: some ranks"
                       " are not monitored, many are missing, or communicators wait for each other."})


@story("communicators that wait for each other are a hang without a culprit", 5, 120)
def circle(s):
    job = s.job()
    job.describe()

    # The ranks of node 0 are in world, those of node 1 in tp 1 and dp: all wait, and each communicator lacks a rank.
    def waits(m):
        return (m.name == "world" and m.global_rank < 2) or (m.name == "dp" and m.global_rank >= 2)
    job.progress(lambda m, t: 10 * min(t, 60) + (1 if t >= 60 and waits(m) else 0),
                 lambda m, t: 0.02 if t < 60 else (t - 60 + 0.5 if waits(m) else 0))
    s.expect(90, ("NcclHangUnexplained", "warning", {"nccl_job": "train"}))


@story("more than eight missing ranks are not listed", 5, 120)
def many_missing(s):
    for name, missing in (("eight", 8), ("nine", 9)):
        job = s.job(name, ranks=12)
        job.describe()
        waits = lambda m, first=missing: m.global_rank >= first
        job.progress(lambda m, t, w=waits: 10 * min(t, 60) + (1 if t >= 60 and w(m) else 0),
                     lambda m, t, w=waits: 0.02 if t < 60 else t - 59.5 if w(m) else 0)
    s.expect(90, ("NcclHangUnexplained", "warning", {"nccl_job": "nine"}),
             *[("NcclHangRankMissing", "warning", culprit(m)) for m in s.jobs[0].members if m.global_rank < 8])


@story("a killed rank is named as gone, in an operation or not", 5, 120)
def killed_rank(s):
    for name, was_in_flight in (("calm", False), ("busy", True)):
        job = s.job(name)
        job.describe()
        for index, (metric, labels, _) in enumerate(list(job.series)):
            if metric == "nccl_process_info" and labels["global_rank"] == "2":
                job.series[index] = (metric, labels, lambda t: 1 if t < 60 else None)
                job.series.append((metric, dict(labels, state="killed"), lambda t: 1 if t >= 60 else None))
        issue, age = hang_at(60, None if was_in_flight else 2)
        job.progress(issue, age)
    gone = [culprit(m) for job in s.jobs for m in job.members if m.global_rank == 2 and m.name == "world"]
    s.expect(90, *[("NcclHangProcessGone", "warning", labels) for labels in gone])
    s.texts(90, "NcclHangProcessGone", [(dict(labels, severity="warning"), {
        "summary": f"Job {labels['nccl_job']} hangs: the process of rank 2 on node1 is gone",
        "description": "Other ranks have been in an operation of communicator world (aa) for 30.5s. The process of its rank 2 of 4 has ended"
                       " or was killed: rank 2 of the job, process 102 on node1, GPU 0."}) for labels in gone])


@story("no alert for a running job", 5, 120)
def runs(s):
    job = s.job()
    job.describe()
    # Agents are not scraped at the same time: numbers and signatures differ.
    job.progress(lambda m, t: 10 * t + 3 * (m.global_rank // 2), healthy_age, signature=lambda m, t: t * 4 + m.global_rank // 2)
    s.never()


@story("no alert for an idle job", 5, 300)
def idle(s):
    job = s.job()
    job.describe()
    job.progress(lambda m, t: 50, lambda m, t: 0)
    s.never()


@story("no alert for an evaluation pause: nothing is in flight, whatever the numbers", 5, 300)
def evaluation_pause(s):
    job = s.job()
    job.describe()
    number = lambda m, t: 10 * min(t, 60) + m.global_rank % 2 + 10 * max(0, t - 240)
    job.progress(number, lambda m, t: 0 if 60 <= t < 240 else 0.02, signature=lambda m, t: 7 * number(m, t))
    s.never()


@story("no alert for an operation of 14 s", 5, 120)
def long_operation(s):
    job = s.job()
    job.describe()
    job.progress(healthy_issue, lambda m, t: max(0.02, min(14, t - 60) if t < 75 else 0.02))
    s.never()


@story("no alert for a short job", 5, 120)
def short_job(s):
    job = s.job()
    there = lambda t, host: 30 <= t <= 50
    job.describe(there)
    job.progress(lambda m, t: 10 * (t - 30), healthy_age, there=there)
    s.never()


@story("no alert for a missed scrape", 5, 120)
def scrape_missing(s):
    job = s.job()
    there = lambda t, host: not (host == "node1" and t == 60)
    job.describe(there)
    job.progress(healthy_issue, healthy_age, there=there)
    s.never()


@story("a missed scrape hides a hang only until the next one", 5, 120)
def scrape_missing_in_hang(s):
    job = s.job()
    there = lambda t, host: not (host == "node1" and t == 90)
    job.describe(there)
    job.progress(*hang_at(60, 2), there=there)
    s.expect(85, ("NcclHangRankMissing", "warning", culprit(job.members[2])))
    s.expect(95, ("NcclHangRankMissing", "warning", culprit(job.members[2])))


@story("no alert for a restarted job, although its killed processes have operations in flight", 5, 200)
def restarted(s):
    old, new = s.job(), s.job(comm_suffix="2", first_pid=200)
    before = lambda t, host: t < 60
    kept = lambda t, host: 60 <= t < 150
    old.describe(before)
    old.describe(kept, state="killed")
    old.progress(lambda m, t: 10 * min(t, 60) + m.global_rank, lambda m, t: 0.02 if t < 60 else t - 60,
                 there=lambda t, host: t < 150)
    after = lambda t, host: t >= 70
    new.describe(after)
    new.progress(lambda m, t: 10 * (t - 70), healthy_age, there=after)
    s.never()


@story("unmonitored ranks of a running job are reported after five minutes, not as a hang", 5, 360)
def fewer_visible(s):
    job = s.job()
    there = lambda t, host: host == "node0"
    job.describe(there)
    job.progress(healthy_issue, healthy_age, there=there)
    for t in range(0, 300, 5):
        s.expect(t)
    s.expect(320, ("NcclRanksUnseen", "info", {"nccl_job": "train"}))
    s.text(320, "NcclRanksUnseen", {"nccl_job": "train", "severity": "info"}, {
        "summary": "Job train: some ranks are not monitored",
        "description": "3 communicators of job train have ranks without data: their nodes have no agent, it is not scraped, or their"
                       " processes are not recorded. Other alerts cannot name these ranks."})


# --- Verdicts of the agents.

def verdict(job, kind, host, member=None, confidence="certain", peer=None, comm="aa", there=lambda t: t >= 60):
    """The agent on `host` reports `member`, or no rank."""
    labels = {"nccl_job": job.name, "class": kind, "comm": comm, "confidence": confidence}
    if member:
        labels.update(comm=member.labels["comm"], rank=member.labels["rank"], global_rank=str(member.global_rank), host=member.host)
    if peer is not None:
        labels["peer_global_rank"] = str(peer)
    job.add("nccl_verdict_info", labels, host, lambda t: 1 if there(t) else None)
    return {key: value for key, value in labels.items() if key != "confidence"}


@story("a verdict of an agent fires at once and is critical after five minutes", 5, 400)
def culprit_named(s):
    job = s.job()
    job.describe()
    job.progress(healthy_issue, healthy_age)
    said = verdict(job, "network_stuck", "node1", job.members[2], peer=1)
    s.expect(55)
    s.expect(65, ("NcclHangCulprit", "warning", said))
    s.expect(395, ("NcclHangCulprit", "warning", said), ("NcclHangCulprit", "critical", said))
    s.text(65, "NcclHangCulprit", dict(said, severity="warning"), {
        "summary": "Job train hangs: network send stuck, rank 2 on node1 -> rank 1",
        "description": "Rank 2 of 4 in communicator world (aa): process 102 on node1, GPU 0. Class network_stuck, reported by 1 agent,"
                       " confidence: certain."
                       " For the evidence, run ringside doctor on that host, or with --agents or --prometheus."})


@story("the same verdict of two agents with varying confidence is one continuous alert", 5, 400)
def culprit_twice(s):
    job = s.job()
    job.describe()
    job.progress(healthy_issue, healthy_age)
    verdict(job, "process_stopped", "node0", job.members[1], "likely", there=lambda t: 60 <= t < 200)
    verdict(job, "process_stopped", "node0", job.members[1], "certain", there=lambda t: t >= 200)
    said = verdict(job, "process_stopped", "node1", job.members[1])
    s.expect(100, ("NcclHangCulprit", "warning", said))
    s.expect(200, ("NcclHangCulprit", "warning", said))
    s.expect(395, ("NcclHangCulprit", "warning", said), ("NcclHangCulprit", "critical", said))


@story("verdicts about another node name no rank; a known culprit is described without a process", 5, 120)
def culprit_elsewhere(s):
    job = s.job()
    job.progress(healthy_issue, healthy_age)
    for host in ("node0", "node1"):
        verdict(job, "unseen", host)
        verdict(job, "stuck", host)
    s.expect(90)
    other = s.job("circle")
    said = verdict(other, "deadlock", "node0", confidence="likely", comm="cc", there=lambda t: t >= 100)
    s.expect(110, ("NcclHangCulprit", "warning", said))
    s.text(110, "NcclHangCulprit", dict(said, severity="warning"), {
        "summary": "Job circle hangs: deadlock between ranks, one of them is an unknown rank",
        "description": "Communicator cc. Class deadlock, reported by 1 agent, confidence: likely."
                       " For the evidence, run ringside doctor on that host, or with --agents or --prometheus."})


@story("a job name may contain anything", 5, 120)
def culprit_odd_name(s):
    job = s.job('a "job" {{ 1 }} \\d')
    said = verdict(job, "never_issued", "node0", job.members[0])
    s.expect(90, ("NcclHangCulprit", "warning", said))
    s.text(90, "NcclHangCulprit", dict(said, severity="warning"), {
        "summary": 'Job a "job" {{ 1 }} \\d hangs: rank 0 on node0 has not called the operation the others are in',
        "description": "Communicator aa. Class never_issued, reported by 1 agent, confidence: certain."
                       " For the evidence, run ringside doctor on that host, or with --agents or --prometheus."})


@story("more than eight culprits are not listed", 5, 120)
def culprit_many(s):
    job = s.job("many", ranks=12)
    for member in job.members[:9]:
        verdict(job, "process_dead", "node0", member)
    s.expect(90)


# --- Thresholds of a job, and checkpoints.

def patient(job, seconds):
    for host in ("node0", "node1"):
        job.add("nccl_job_hang_threshold_seconds", {"nccl_job": job.name}, host, lambda t: seconds)


@story("a checkpoint of four minutes is no hang in a job that allows five, whatever the agents say", 5, 400)
def checkpoint(s):
    job = s.job()
    job.describe()
    patient(job, 300)
    issue, age = hang_at(60, 0)
    over = lambda t: t >= 300
    job.progress(lambda m, t: issue(m, t) + (10 * (t - 300) if over(t) else 0), lambda m, t: 0.02 if over(t) else age(m, t))
    for kind in ("never_issued", "gpu_not_reached", "not_launched"):
        verdict(job, kind, "node0", job.members[0], there=lambda t: 80 <= t < 300)
    s.never()


@story("a process that is gone is reported whatever the threshold", 5, 120)
def threshold_gone(s):
    job = s.job()
    job.describe()
    patient(job, 600)
    for index, (metric, labels, _) in enumerate(job.series):
        if metric == "nccl_process_info" and labels["global_rank"] == "2":
            job.series[index] = (metric, dict(labels, state="killed"), lambda t: 1)
    job.progress(*hang_at(60, 2))
    s.expect(90, ("NcclHangProcessGone", "warning", culprit(job.members[2])))


@story("the threshold of a job is for that job, and for what a checkpoint looks like", 5, 400)
def threshold(s):
    slow, other = s.job("slow"), s.job("other", comm_suffix="2", first_pid=200)
    for job in (slow, other):
        job.describe()
        job.progress(*hang_at(60, 2))
    patient(slow, 120)
    stopped = verdict(slow, "process_stopped", "node1", slow.members[2])
    never = verdict(slow, "never_issued", "node1", slow.members[2])
    late = [culprit(job.members[2]) for job in (slow, other)]
    s.expect(150, ("NcclHangRankMissing", "warning", late[1]), ("NcclHangCulprit", "warning", stopped))
    s.expect(200, *[("NcclHangRankMissing", "warning", each) for each in late],
             ("NcclHangCulprit", "warning", stopped), ("NcclHangCulprit", "warning", never))


# --- Slowness that agents report.

def slow_verdict(job, kind, hosts, member=None, peer=None, ratio=None, **more):
    """Labels of the alert; reported by the agents of `hosts`."""
    labels = {"nccl_job": job.name, "class": kind}
    if member:
        labels.update(comm=member.labels["comm"], rank=member.labels["rank"], global_rank=str(member.global_rank), host=member.host)
    if peer:
        labels.update(peer_global_rank=str(peer.global_rank), peer_host=peer.host)
    labels.update({key: value for key, value in more.items() if key in ("host",)})
    there = lambda t: t >= 60
    for host in hosts:
        job.add("nccl_verdict_info", dict(labels, severity=more.get("severity", "warning"), confidence=more.get("confidence", "certain")),
                host, lambda t: 1 if there(t) else None)
        if ratio is not None:
            job.add("nccl_verdict_slowdown_ratio", labels, host, lambda t: ratio if there(t) else None)
    return labels


def runs_well(job):
    job.describe()
    job.progress(healthy_issue, healthy_age)


@story("a slow link is named with both ends, once, however many agents report it", 15, 480)
def slow_link(s):
    job = s.job()
    runs_well(job)
    labels = slow_verdict(job, "slow_link", ("node0", "node1"), job.members[1], job.members[2], 0.22)
    s.expect(60)
    s.expect(150)
    s.expect(300, ("NcclSlowLink", "warning", labels))
    s.text(300, "NcclSlowLink", dict(labels, severity="warning"), {
        "summary": "Job train: slow link from rank 1 on node0 to rank 2 on node1",
        "description": "Sends over this link take longer than over the others, by 22%. For the evidence, run ringside doctor on node0."})


@story("a slow rank and a slow host are named", 15, 480)
def slow_rank(s):
    job = s.job()
    runs_well(job)
    rank = slow_verdict(job, "slow_rank", ("node1",), job.members[3], ratio=0.4)
    host = slow_verdict(job, "slow_host", ("node1",), host="node0")
    s.expect(300, ("NcclSlowRank", "warning", rank), ("NcclSlowRank", "warning", host))
    s.texts(300, "NcclSlowRank", [(dict(rank, severity="warning"), {
        "summary": "Job train: rank 3 on node1 is slow",
        "description": "The other ranks of job train wait for it in collectives, 40% of the time. For the evidence, run ringside doctor on"
                       " node1."}),
        (dict(host, severity="warning"), {
            "summary": "Job train: most ranks on node0 are slow",
            "description": "The other ranks of job train wait for it in collectives. For the evidence, run ringside doctor on node0."})])


@story("slow NVLink is named with its node", 15, 480)
def slow_nvlink(s):
    job = s.job()
    runs_well(job)
    labels = slow_verdict(job, "slow_nvlink", ("node1",), host="node1", ratio=0.6)
    s.expect(300, ("NcclSlowNvlink", "warning", labels))
    s.text(300, "NcclSlowNvlink", dict(labels, severity="warning"), {
        "summary": "Job train: NVLink is slow on node1",
        "description": "Collectives within the node take longer than they should, by 60%, and it is not waiting. For the evidence, run"
                       " ringside doctor on node1."})


@story("a slow network is one alert", 15, 480)
def slow_network(s):
    job = s.job()
    runs_well(job)
    for name, host in (("aa", "node0"), ("c0", "node1")):
        job.add("nccl_verdict_info", {"nccl_job": "train", "class": "slow_network", "comm": name, "severity": "warning",
                                      "confidence": "very likely"}, host, lambda t: 1)
    labels = {"nccl_job": "train", "class": "slow_network"}
    s.expect(300, ("NcclSlowNetwork", "warning", labels))
    s.text(300, "NcclSlowNetwork", dict(labels, severity="warning"), {
        "summary": "Job train: the network between its nodes is slow",
        "description": "Collectives over the network take longer than they should, and it is not one link. For the evidence, run ringside"
                       " doctor with --agents or --prometheus."})


def hub_verdict(job, labels, confidence, ratio):
    labels = dict(labels, instance="hub:9748", job="ringside-hub")
    job.series.append(("ringside_hub_verdict_info", dict(labels, severity="warning", confidence=confidence), lambda t: 1 if t >= 60 else None))
    job.series.append(("ringside_hub_verdict_slowdown_ratio", labels, lambda t: ratio if t >= 60 else None))


@story("what the hub finds is an alert, and what agents see alone of that job is none", 15, 480)
def slow_hub(s):
    job = s.job()
    runs_well(job)
    labels = {"nccl_job": "train", "class": "slow_network"}
    hub_verdict(job, labels, "certain", 0.98)
    slow_verdict(job, "slow_rank", ("node1",), job.members[3], ratio=0.4)
    s.expect(300, ("NcclSlowNetwork", "warning", labels))
    s.text(300, "NcclSlowNetwork", dict(labels, severity="warning"), {
        "summary": "Job train: the network between its nodes is slow",
        "description": "Collectives over the network take longer than they should, by 98%, and it is not one link. For the evidence, run ringside"
                       " doctor with --agents or --prometheus."})


@story("what the hub only guesses does not hide what agents know", 15, 480)
def slow_hub_unsure(s):
    job = s.job()
    runs_well(job)
    hub_verdict(job, {"nccl_job": "train", "class": "slow_network"}, "likely", 0.98)
    rank = slow_verdict(job, "slow_rank", ("node1",), job.members[3], ratio=0.4)
    s.expect(300, ("NcclSlowRank", "warning", rank))


@story("notes, guesses and other classes of slowness are no alert, and slowness is no hang", 15, 480)
def slow_unsure(s):
    job = s.job()
    runs_well(job)
    slow_verdict(job, "slow_link", ("node0",), job.members[1], job.members[2], 0.01, severity="note")
    slow_verdict(job, "slow_rank", ("node0",), job.members[1], ratio=0.3, confidence="likely")
    slow_verdict(job, "slow_size", ("node0",), ratio=0.3)
    slow_verdict(job, "below_expected", ("node0",), ratio=0.3)
    s.never()


# --- Mismatched calls.

@story("the same number of collectives with different signatures is a mismatch", 5, 120)
def mismatch(s):
    job = s.job()
    job.describe()
    job.progress(lambda m, t: 10 * min(t, 60), lambda m, t: 0,
                 signature=lambda m, t: 4503599627370495 if t >= 60 and m.name == "world" and m.global_rank == 1 else 7 + min(t, 60))
    s.expect(60)
    s.expect(80, ("NcclMismatch", "critical", {"nccl_job": "train", "comm": "aa"}))
    s.text(80, "NcclMismatch", {"nccl_job": "train", "comm": "aa", "severity": "critical"}, {
        "summary": "Job train: ranks call different collectives on one communicator",
        "description": "Ranks of communicator aa have called the same number of collectives, but not the same ones: function, count, datatype"
                       " or root differ. They hang or exchange wrong data."})


@story("a mismatch between stuck ranks is found although others ran ahead", 5, 120)
def mismatch_behind(s):
    job = s.job()
    job.describe()
    world = lambda m: m.name == "world"
    job.progress(lambda m, t: 600 + (5 if world(m) and m.global_rank == 3 else 0), lambda m, t: t + 1 if world(m) else 0,
                 signature=lambda m, t: 4503599627370490 + m.global_rank // 2 if world(m) and m.global_rank != 1 else 7)
    s.expect(60, ("NcclMismatch", "critical", {"nccl_job": "train", "comm": "aa"}),
             ("NcclHangAllArrived", "warning", {"nccl_job": "train", "comm": "aa", "comm_name": "world", "kind": "mixed", "nranks": "4"}))


@story("stuck ranks at different numbers with different signatures are no mismatch", 5, 120)
def no_mismatch(s):
    job = s.job()
    job.describe()
    issue, age = hang_at(60, None)
    job.progress(lambda m, t: issue(m, t) + m.global_rank, age, signature=lambda m, t: issue(m, t) + m.global_rank)
    s.expect(115, ("NcclHangAllArrived", "warning", {"nccl_job": "train", "comm": "aa", "comm_name": "world", "kind": "mixed", "nranks": "4"}))


@story("a mismatch reported by an agent fires", 5, 120)
def mismatch_noticed(s):
    job = s.job()
    job.describe()
    job.progress(lambda m, t: 600 + m.global_rank, lambda m, t: 0, signature=lambda m, t: m.global_rank)
    job.add("nccl_notice_info", {"nccl_job": "train", "kind": "mismatch", "comm": "aa", "rank": "1"}, "node0", lambda t: 1)
    job.add("nccl_notice_info", {"nccl_job": "train", "kind": "straggler", "comm": "b0", "rank": "1"}, "node0", lambda t: 1)
    s.expect(60, ("NcclMismatch", "critical", {"nccl_job": "train", "comm": "aa"}))


# --- Waiting: seconds per second in collectives.

def process(job, rank):
    info = job.members[rank].info
    return {key: info[key] for key in ("nccl_job", "host", "pid", "global_rank", "gpu")}


def share(of):
    """A counter whose rate is of(member), or of(member, t) piecewise: integrated by seconds."""
    sums = {}

    def seconds(m, t):
        key = id(m)
        line = sums.setdefault(key, [0.0])
        while len(line) <= t:
            line.append(line[-1] + of(m, len(line) - 1))
        return round(line[t], 6)
    return seconds


@story("a straggler is named", 15, 480)
def straggler(s):
    job = s.job()
    job.describe()
    slow = lambda m, t: 0.1 if m.global_rank == 1 and t >= 60 else 0.3 if t >= 60 else 0.1
    job.totals(share(lambda m, t: slow(m, t) if m.name == "world" else 0.01))
    for t in range(0, 180, 15):
        s.expect(t)
    s.expect(300, ("NcclStraggler", "warning", process(job, 1)))
    s.expect(480, ("NcclStraggler", "warning", process(job, 1)))
    # Three of four ranks wait for a fifth of the time.
    s.series(300, "round(job:nccl_wait:gpus, 0.01)", ({"nccl_job": "train"}, 0.6))
    s.text(300, "NcclStraggler", dict(process(job, 1), severity="warning"), {
        "summary": "Job train: straggler, rank 1 on node0",
        "description": "For more than two minutes, the other ranks of job train have spent 20% of the time waiting in collectives for rank 1"
                       " (process 101 on node0, GPU 1), which hardly waits itself."})


@story("a straggler is named when one operation in fifty is timed", 15, 480)
def straggler_sampled(s):
    job = s.job()
    job.describe()
    job.totals(share(lambda m, t: (0.1 if m.global_rank == 1 else 0.3) if m.name == "world" else 0.01), timed=0.02)
    s.expect(300, ("NcclStraggler", "warning", process(job, 1)))


@story("sizes with different timed shares are scaled separately", 15, 480)
def straggler_sizes(s):
    job = s.job()
    job.describe()
    # Rank 1 is late in the small ones only, of which fewer are timed; the large ones take the same time on all.
    job.totals(share(lambda m, t: (0.05 if m.global_rank == 1 else 0.25) if m.name == "world" else 0.01), timed=0.01)
    job.totals(share(lambda m, t: 0.3 if m.name == "world" else 0.01), timed=0.5, size="64MiB")
    s.expect(300, ("NcclStraggler", "warning", process(job, 1)))


@story("no straggler without timed operations", 15, 480)
def straggler_untimed(s):
    job = s.job()
    job.describe()
    job.totals(share(lambda m, t: 0.1 if m.global_rank == 1 else 0.4), timed=0)
    s.never()


@story("a straggler among ranks that share a process is named", 15, 480)
def straggler_in_process(s):
    job = s.job(process_per_node=True)
    job.describe()
    job.totals(share(lambda m, t: (0.1 if m.global_rank == 1 else 0.4) if m.name == "world" else 0.01))
    s.expect(300, ("NcclStraggler", "warning", process(job, 1)))


@story("all ranks of a slow node are named when half the job is slow", 15, 480)
def slow_node(s):
    job = s.job()
    job.describe()
    job.totals(share(lambda m, t: (0.1 if m.host == "node1" else 0.4) if m.name == "world" else 0.01))
    s.expect(300, ("NcclStraggler", "warning", process(job, 2)), ("NcclStraggler", "warning", process(job, 3)))


@story("a rank that is late because it waits elsewhere is not named", 15, 480)
def late_by_waiting(s):
    job = s.job()
    job.describe()

    # Rank 3 is slow: rank 2 waits for it in tp, so both are late in dp, where 0 and 1 wait.
    def of(m, t):
        if m.name == "tp" and m.host == "node1":
            return 0.05 if m.global_rank == 3 else 0.45
        if m.name == "dp":
            return 0.05 if m.global_rank >= 2 else 0.45
        return 0.05
    job.totals(share(of))
    s.expect(300, ("NcclStraggler", "warning", process(job, 3)))


@story("other ranks waited for the checkpoint, but it is no straggler", 15, 900)
def checkpoint_waiting(s):
    job = s.job()
    job.describe()
    # Barriers of four minutes: the waiting counts when they end.
    waited = lambda m, t: 240 * (t // 300) if m.global_rank != 0 and m.name == "world" else 0
    base = share(lambda m, t: 0.1)
    job.totals(lambda m, t: base(m, t) + waited(m, t))
    s.never()


@story("ranks that are late in turns are not named", 15, 480)
def in_turns(s):
    job = s.job()
    job.describe()
    job.totals(share(lambda m, t: 0.1 if m.global_rank == t // 60 % 4 else 0.4))
    s.never()


@story("a single early rank does not make the others stragglers", 15, 480)
def early_bird(s):
    job = s.job()
    job.describe()
    job.totals(share(lambda m, t: 0.5 if m.global_rank == 0 and m.name == "world" else 0.1))
    s.never()


@story("Broadcast, Send and Recv do not indicate a straggler", 15, 480)
def rooted(s):
    job = s.job()
    job.describe()
    for function in ("Broadcast", "Send", "Recv", "Reduce"):
        job.totals(share(lambda m, t: 0.05 * m.global_rank), function=function)
    s.never()


@story("an idle job has no straggler", 15, 480)
def idle_waiting(s):
    job = s.job()
    job.describe()
    job.totals(share(lambda m, t: (0.1 if m.global_rank == 1 else 0.4) if t < 60 else 0))
    s.never()


@story("a two-minute job with one node scraped later has no straggler", 15, 480)
def short_waiting(s):
    job = s.job()
    there = lambda t, host: (60 if host == "node0" else 75) <= t <= 180
    job.describe(there)
    job.totals(share(lambda m, t: 0.9 if t >= 60 else 0), there=there)
    s.never()


@story("a restarted job whose nodes are scraped one after the other has no straggler", 15, 480)
def restarted_waiting(s):
    old, new = s.job(), s.job(comm_suffix="2", first_pid=200)
    before = lambda t, host: t < 120
    old.describe(before)
    old.totals(share(lambda m, t: 0.8), there=before)
    after = lambda t, host: t >= (135 if host == "node0" else 165)
    new.describe(after)
    new.totals(share(lambda m, t: 0.8), there=after)
    s.never()


@story("a missed scrape does not indicate a straggler", 15, 480)
def scrape_missing_waiting(s):
    job = s.job()
    there = lambda t, host: not (host == "node1" and t % 120 == 60)
    job.describe(there)
    job.totals(share(lambda m, t: 0.8), there=there)
    s.never()


@story("no other rank is named if the straggler is not monitored", 15, 285)
def straggler_unseen(s):
    job = s.job()
    there = lambda t, host: host == "node0"
    job.describe(there)
    job.totals(share(lambda m, t: 0.1 if m.global_rank == 3 else 0.4), there=there)
    s.never()


# --- Bandwidth: 100 GB/s on NVLink, 20 GB/s over the network; a tenth of the time each.

@story("communicators have names for legends, with the beginning of their hash", 30, 60)
def names(s):
    job = s.job()
    for hash_, name in (("0123456789abcdef", "dp"), ("fedcba9876543210", ""), ("tp#12.3", "tp")):
        labels = {"nccl_job": "train", "comm": hash_, "rank": "0", "comm_name": name}
        job.add("nccl_communicator_info", {key: value for key, value in labels.items() if value}, "node1", lambda t: 1)
    s.series(60, "comm:nccl_name:info * 1", *[({"nccl_job": "train", "comm": hash_, "comm_label": label}, 1) for hash_, label in (
        ("0123456789abcdef", "dp 012345"), ("fedcba9876543210", "fedcba"), ("tp#12.3", "tp tp#12."))])


def transfers(job, slower, busy=lambda t: True, there=lambda t, host: True, wait=lambda m, t: 0.0, timed=1):
    """slower(member, t): time relative to the usual time."""
    seconds = share(lambda m, t: 0.1 * slower(m, t) + wait(m, t) if busy(t) else 0)
    moved = share(lambda m, t: 0.1 * (100e9 if m.kind == "nvlink-only" else 20e9) if busy(t) else 0)
    job.describe(there)
    job.totals(seconds, moved, there=there, timed=timed)


LONG = 1800  # long enough for a past to compare with


@story("a network that is 13% slower is attributed to the network and not to NVLink", 30, LONG + 1200)
def network(s):
    job = s.job()
    transfers(job, lambda m, t: 1 / 0.87 if t >= LONG and m.kind != "nvlink-only" else 1)
    labels = {"nccl_job": "train"}
    for t in range(0, LONG + 300, 30):
        s.expect(t)
    s.expect(LONG + 600, ("NcclNetworkDegraded", "warning", labels))
    s.expect(LONG + 1200, ("NcclNetworkDegraded", "warning", labels))
    s.text(LONG + 600, "NcclNetworkDegraded", dict(labels, severity="warning"), {
        "summary": "Job train: the network between nodes has become slower",
        "description": "Collectives over the network take 1.15x the time of the last 6 h on at least 80% of the communicators of job train"
                       " that span nodes. Those within a node do not: the cause is the network, not NVLink."})


@story("a slower network is detected when one operation in fifty is timed", 30, LONG + 1200)
def network_sampled(s):
    transfers(s.job(), lambda m, t: 1 / 0.87 if t >= LONG and m.kind != "nvlink-only" else 1, timed=0.02)
    s.expect(LONG + 600, ("NcclNetworkDegraded", "warning", {"nccl_job": "train"}))


@story("NVLink that is 13% slower on one node is attributed to NVLink of that node", 30, LONG + 1200)
def nvlink(s):
    job = s.job()
    transfers(job, lambda m, t: 1 / 0.87 if t >= LONG and m.name == "tp" and m.host == "node1" else 1)
    labels = {"nccl_job": "train", "comm": "b1", "comm_name": "tp", "host": "node1"}
    s.expect(LONG)
    s.expect(LONG + 600, ("NcclNvlinkDegraded", "warning", labels))
    s.text(LONG + 600, "NcclNvlinkDegraded", dict(labels, severity="warning"), {
        "summary": "Job train: NVLink on node1 has become slower",
        "description": "Collectives of communicator tp (b1), whose ranks are all on node1, take 1.15x the time of the last 6 h."})


@story("a slowdown of NVLink that also affects the network is not attributed to the network", 30, LONG + 1200)
def both(s):
    job = s.job()
    transfers(job, lambda m, t: 1 / 0.87 if t >= LONG else 1)
    s.expect(LONG + 600, *[("NcclNvlinkDegraded", "warning", {"nccl_job": "train", "comm": f"b{node}", "comm_name": "tp",
                                                              "host": HOSTS[node]}) for node in range(2)])


@story("no alert for 9% slower", 30, LONG + 1200)
def little_slower(s):
    job = s.job()
    transfers(job, lambda m, t: 1.09 if t >= LONG and m.kind != "nvlink-only" else 1)
    s.never()


@story("one slow communicator of three is a link, not the network", 30, LONG + 1200)
def one_link(s):
    job = s.job()
    transfers(job, lambda m, t: 1.5 if t >= LONG and m.labels["comm"] == "c0" else 1)
    s.never()


@story("waiting for a slow rank is not a slow network", 30, LONG + 1800)
def waiting_is_not_slow(s):
    job = s.job()
    transfers(job, lambda m, t: 1, wait=lambda m, t: 0.3 if t >= LONG and m.global_rank != 1 and m.name == "world" else 0)
    s.expect(LONG + 1800, ("NcclStraggler", "warning", process(job, 1)))


@story("a job that resumes after a long pause is not slow", 30, 3 * LONG)
def idle_bandwidth(s):
    job = s.job()
    transfers(job, lambda m, t: 1, busy=lambda t: not LONG <= t < 2 * LONG)
    s.never()


@story("a job of twenty minutes is not judged", 30, 1800)
def short_bandwidth(s):
    job = s.job()
    there = lambda t, host: 300 <= t <= 1500
    transfers(job, lambda m, t: 2 if t >= 900 and m.kind != "nvlink-only" else 1, there=there)
    s.never()


@story("a restarted job is not compared with the previous run", 30, 2 * LONG)
def restarted_bandwidth(s):
    old, new = s.job(), s.job(comm_suffix="2", first_pid=200)
    transfers(old, lambda m, t: 1, there=lambda t, host: t < LONG)
    transfers(new, lambda m, t: 1.3 if m.kind != "nvlink-only" else 1, there=lambda t, host: t >= LONG + 60)
    s.never()


@story("missed scrapes are not a slowdown", 30, LONG + 1200)
def scrape_missing_bandwidth(s):
    job = s.job()
    transfers(job, lambda m, t: 1, there=lambda t, host: not (host == "node1" and t % 600 == 300))
    s.never()


# --- The recorder itself.

@story("lost operations are reported with reason and rank", 30, 900)
def losses(s):
    job = s.job()
    labels = {"nccl_job": "train", "global_rank": "2", "pid": "102", "reason": "live_full"}
    job.add("nccl_lost_operations_total", labels, TWICE, lambda t: 0 if t < 300 else 80)
    s.expect(270)
    alert = {"nccl_job": "train", "global_rank": "2", "reason": "live_full"}
    s.expect(330, ("NcclRecordingLosses", "warning", alert))
    s.expect(900)
    s.text(330, "NcclRecordingLosses", dict(alert, severity="warning"), {
        "summary": "Job train: operations of rank 2 were not recorded",
        "description": "About 80 operations of rank 2 were lost in five minutes, reason: live_full. Totals of that rank are too low, and"
                       " conclusions from missing operations are unreliable."})


@story("a node that is scraped twice counts once in means, and its two scrapes are not mixed", 5, 300)
def scraped_twice(s):
    job = s.job()
    job.describe()
    # Two ranks on each node; those of one node move three times as much.
    job.totals(lambda m, t: 0.1 * t, lambda m, t: (3e9 if m.host == TWICE else 1e9) * t)
    s.series(240, 'round(max by (comm) (comm:nccl_bus_bytes:rate2m{comm="aa"}))', ({"comm": "aa"}, 2e9))

    # The host of rank 2 runs ahead while the others are stuck: numbers and signatures differ from scrape to scrape.
    def issue(m, t):
        return t if m.name == "world" and m.global_rank == 2 else 60
    job.progress(issue, lambda m, t: max(0, t - 60) if m.name == "world" else 0, signature=lambda m, t: 1000 + issue(m, t))
    s.series(240, "comm:nccl_signature:split")


@story("an agent down for a minute is reported, a missed scrape is not", 15, 300)
def agent_down(s):
    job = s.job()
    job.add("up", {}, "node0", lambda t: 0 if t == 60 else 1)
    job.add("up", {}, "node1", lambda t: 0 if t >= 120 else 1)
    s.expect(60)
    s.expect(165)
    labels = {"instance": "node1:9400", "job": "ringside"}
    s.expect(195, ("RingsideAgentDown", "warning", labels))
    s.text(195, "RingsideAgentDown", dict(labels, severity="warning"), {
        "summary": "Ringside agent on node1:9400 does not respond",
        "description": "Prometheus has not been able to scrape node1:9400 for a minute. Jobs are not affected, but their ranks on that node"
                       " are not monitored, and a hang there is only detected through other nodes."})


@story("unreadable recordings are reported", 30, 600)
def refused(s):
    job = s.job()
    for metric, value in (("refused_files", 1), ("unreadable_files", 2), ("left_out_processes", 0)):
        job.add("ringside_agent_" + metric, {}, TWICE, lambda t, v=value: v)
        job.add("ringside_agent_" + metric, {}, "node0", lambda t: 0)
    s.expect(270)
    labels = {"instance": TWICE + ":9400", "job": "ringside"}
    s.expect(330, ("RingsideFilesRefused", "info", labels))
    s.text(330, "RingsideFilesRefused", dict(labels, severity="info"), {
        "summary": "Ringside agent on node1:9400 cannot read 3 recordings",
        "description": "The agent on node1:9400 has found recordings that it has no permission to read, cannot parse, or has no room for."
                       " Their jobs are not monitored."})


def main():
    directory = sys.argv[1]
    # As an administrator would fill it in.
    with open(os.path.join(RULES, LINKS), encoding="utf-8") as file:
        links = file.read().replace("grafana: ''", "grafana: https://grafana").replace("job_page: ''", "job_page: https://hub/?job=") \
            .replace("runbooks: ''", "runbooks: https://ringside.example.org/runbooks")
    with open(os.path.join(directory, LINKS), "w", encoding="utf-8") as file:
        file.write(links)
    for name, made in stories.items():
        with open(os.path.join(directory, name + ".yml"), "w", encoding="utf-8") as file:
            json.dump(made.document(), file)
        print(name, made.sentence)


if __name__ == "__main__":
    main()
