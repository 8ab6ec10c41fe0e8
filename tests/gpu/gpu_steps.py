"""The steps of the check, most important first: what does not fit into the budget is at the end."""

import glob
import gzip
import json
import os
import socket
import subprocess
import sys
import tarfile
import time

import gpu_bench
import gpu_compare_ddp
import gpu_hangs
import gpu_inspector
import gpu_overhead
from gpu_compare import Issued, RankResult, Shown, call_times, ranks_join
from gpu_fields import (kernel_events, kernel_state, lost_operations, missing_fields, odd_events,
                        read_dump, verified_counts)
from gpu_job import Place, Tool, environment, run_job
from gpu_machine import HERE, Mps, clean_environment, describe, package_places

JOB_LIMIT_S = 100
# PyTorch's libraries may load slowly from a cold disk, without any output.
TORCH_IDLE_S = 75
# Without MPS every call takes milliseconds: make fewer of them.
WITHOUT_MPS = ("--big", "0", "--burst", "24", "--calls", "3", "--captured", "2", "--replays", "2")
SESSIONS, ROUNDS = 3, 12
SIX = "allreduce,allgather,broadcast,reduce,reducescatter,sendrecv"


def command_words(arguments):
    """The command without paths of this host, so that it can be repeated elsewhere."""
    words, is_place = ["tests/gpu/run"], False
    for argument in arguments:
        if is_place or argument in ("--results", "--work"):
            is_place = not is_place
            continue
        words.append(os.path.basename(os.path.normpath(argument)) if os.path.exists(argument)
                     else argument)
    return " ".join(words)


class Context:
    """State shared by the steps."""

    def __init__(self, options, clock, tap, build, work, shm, results_directory, gpu):
        self.options, self.clock, self.tap = options, clock, tap
        self.build, self.work, self.shm = build, work, shm
        self.results_directory = results_directory
        self.tool = Tool(os.path.join(build, "ringside"))
        self.plugin = os.path.join(build, "libnccl-profiler-ringside.so")
        self.tape = os.path.join(build, "libnccl-profiler-tape.so")
        self.mps = Mps(tap.say)
        self.nccls = []
        self.failed_places = []
        self.warming = None
        self.results = {"command": command_words(sys.argv[1:]),
                        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                        "machine": {**describe(), **gpu}, "jobs": [], "ddp": [], "overhead": [],
                        "overhead_samples": [], "matrix": [], "scenes": [], "endings": [],
                        "torch": [], "cost": [], "cost_memory": [], "accuracy": [],
                        "releases": []}

    def warm_torch(self):
        """Reads PyTorch's libraries from disk in the background."""
        if package_places("torch"):
            self.warming = subprocess.Popen([sys.executable, "-c", "import torch"],
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL)

    def end_warming(self):
        if self.warming and self.warming.poll() is None:
            self.warming.kill()
            self.warming.wait()

    def environment(self):
        return {**clean_environment(), **self.mps.environment()}


class Step:
    def __init__(self, name, need_s, run):
        self.name, self.need_s, self.run = name, need_s, run


def watched(context, place, argv, settings, idle_s=None):
    """Runs it, and reports why if it failed."""
    tap = context.tap

    def on_hang():
        tap.say("the job hangs; operations of its ranks:")
        tap.show(context.tool.now(settings))

    limit_s = max(10, min(JOB_LIMIT_S, context.clock.left() - 5))
    outcome = run_job(argv, settings, place, limit_s, on_hang, idle_s)
    if not outcome.is_good:
        context.failed_places.append(place.directory)
        for name, text in {**place.read("launcher.log"), **place.read("rank-*.log")}.items():
            tap.say(name + ":")
            tap.show(text, 25)
        for name, text in place.read("nccl-*.log").items():
            tap.say(name + ":")
            tap.show(text, 8)
    if outcome.was_killed:
        context.mps.restart()
    return outcome


def recorded(context, name, place, mode, ranks):
    """Records of the job's dump; problems are reported as tests."""
    tap = context.tap
    files = place.recorded(mode)
    tap.ok(len(files) == ranks, "%s: %d recordings for %d ranks" % (name, len(files), ranks),
           files + [text[-2000:] for text in list(place.read("nccl-*.log").values())[:1]])
    if not files:
        return []
    text, problem = context.tool.dump(files)
    tap.ok(problem is None, "%s: ringside dump reads everything" % name, [str(problem)])
    missing = missing_fields(text)
    tap.ok(not missing, "%s: dump has the fields that are compared" % name, missing)
    return read_dump(text)


def verified(context, name, place, mode):
    """Checks with ringside verify: nothing missing, nothing damaged. Returns its JSON."""
    tap = context.tap
    code, text, remarks = context.tool.verify(place.recorded(mode))
    with open(os.path.join(place.directory, "verify.json"), "w", encoding="utf-8") as file:
        file.write(text)
    tap.ok(code == 0, "%s: ringside verify finds nothing missing" % name,
           ["exit code %d" % code, remarks[-1000:], text[:3000]])
    tap.say("%s: kernel events %s; unexpected %s; lost %s" % (name, kernel_events(text), odd_events(text),
                                                     lost_operations(text)))
    return text


def case_rows(results):
    cases = {}
    for result in results:
        for key, row in result.rows.items():
            cases.setdefault(key, []).append((result.issued.rank, row))
    return cases


def together(told, most=8):
    """Merges equal problems of several ranks."""
    ranks = {}
    for rank, text in told:
        ranks.setdefault(text, []).append(rank)
    lines = ["rank %s: %s" % (",".join(map(str, own)), text) for text, own in ranks.items()]
    return lines[:most] + (["and %d more" % (len(lines) - most)] if len(lines) > most else [])


def _compare_cases(context, name, results, ranks):
    """One test per case and style; what goes into the results."""
    out = []
    for (kind, style), rows in case_rows(results).items():
        problems = together((rank, text) for rank, row in rows for text in row.problems[:6])
        if len(rows) != ranks:
            problems.append("only ranks %s reached it" % [rank for rank, _ in rows])
        is_complete = len(rows) == ranks and all(row.is_complete for _, row in rows)
        total = [row.issued + row.captured + row.replayed for _, row in rows]
        got = [row.recorded + row.recorded_captured + row.recorded_replayed for _, row in rows]
        context.tap.ok(is_complete, "%s: %s %s: recorded %s of %s called on %d ranks, %s timed, "
                       "%s untrusted" % (name, kind, style, sum(got), sum(total), len(rows),
                                         sum(row.timed for _, row in rows),
                                         sum(row.untrusted for _, row in rows)), problems)
        per_rank = []
        for rank, row in rows:
            row.lost = max(0, row.issued + row.captured + row.replayed - row.recorded
                           - row.recorded_captured - row.recorded_replayed - row.unseen_captured
                           - sum(row.blind.values()))
            per_rank.append({"rank": rank, **row.as_dict()})
        out.append({"kind": kind, "style": style, "is_complete": is_complete,
                    "per_rank": per_rank})
    return out


def _stamps_told(context, name, results, is_kernel_expected):
    """How many times came from GPU timestamps without disturbance."""
    sync = [p for result in results for p in result.pairs
            if p.call["style"] == "sync" and p.call["kind"] in ("allreduce", "killed")]
    timed = sum(pair.record.is_gpu_timed for pair in sync)
    offsets = [result.clock_offset_ns for result in results if result.clock_offset_ns is not None]
    if is_kernel_expected and sync:
        context.tap.ok(timed * 2 > len(sync), "%s: %d of %d synchronized AllReduce have the GPU's "
                       "own time" % (name, timed, len(sync)),
                       ["are kernel events on? See kernel_events in verify.json and ringside ls"])
    drift = [p for result in results for p in result.pairs
             if p.call["kind"].startswith("drift") and p.call["phase"] == "after"]
    if drift:
        context.tap.say("%s: after self-sends or between replays, of %d operations %d are timed by "
                        "the GPU, %d marked untrusted" % (
                            name, len(drift), sum(p.record.is_gpu_timed for p in drift),
                            sum(p.record.is_untrusted for p in drift)))
    if offsets:
        context.tap.say("%s: GPU's clock minus host's: %s ms" % (
            name, ", ".join("%.3f" % (offset / 1e6) for offset in offsets)))


def shown_of(nccl, checked, is_one_node=False, settings=None):
    """What this NCCL shows of a job, by its release and the recorded kernel event mode."""
    return Shown(nccl["number"], is_one_node, kernel_state(checked) or "on",
                 (settings or {}).get("NCCL_ALLGATHERV_ENABLE") != "0")


def driver_job(context, name, nccl_index, ranks, mode, arguments=(), has_kernel=False):
    """A job of the C driver under the plugin, and the whole comparison. `has_kernel`: every call must be timed,
    if the release supports that."""
    tap = context.tap
    if nccl_index >= len(context.nccls):
        tap.skip(name, "no second NCCL found")
        return
    nccl = context.nccls[nccl_index]
    place = Place(context.work, context.shm, name)
    failed_before = tap.failed
    settings = environment(place, context.plugin, mode, context.mps.environment())
    if has_kernel and 22800 <= nccl["number"] < 22900:
        settings["RINGSIDE_EVENTS"] = "kernel"
    if not context.mps.directory:
        arguments = tuple(arguments) + WITHOUT_MPS
    outcome = watched(context, place, [nccl["driver"], "run", "--ranks", str(ranks), "--out",
                                    place.directory] + list(arguments), settings)
    tap.ok(outcome.is_good, "%s: the job %s, %.1f s" % (name, outcome.text, outcome.seconds))
    records = recorded(context, name, place, mode, ranks)
    issued = [Issued(text) for text in place.read("issued-*.jsonl").values()]
    checked = verified(context, name, place, mode)
    shown = shown_of(nccl, checked)
    results = [RankResult(one, records, shown)
               for one in sorted(issued, key=lambda one: one.rank or 0)]
    cases = _compare_cases(context, name, results, ranks)
    problems = together((r.issued.rank, text) for r in results for text in r.problems)
    tap.ok(len(results) == ranks and not problems, "%s: every rank's log is complete" % name,
           problems)
    joins = ranks_join(records, shown)
    tap.ok(not joins, "%s: the ranks' records match" % name, joins[:8])
    _stamps_told(context, name, results, is_kernel_expected=shown.kernel == "on")
    context.results["jobs"].append({
        "name": name, "nccl": nccl["version"], "ranks": ranks, "mode": mode,
        "seconds": outcome.seconds, "outcome": outcome.text, "cases": cases,
        "ratios": [dict(rank=r.issued.rank, **ratio) for r in results for ratio in r.ratios],
        "times": call_times(results[0]) if results else [],
        "counted_lost": lost_operations(checked), "odd": odd_events(checked),
        "kernel_events": kernel_events(checked), "problems": problems + joins})
    if tap.failed > failed_before:
        keep(context, place, mode)
    place.release()
    if "--kill-at-end" in arguments:
        context.mps.restart()


def inspector_job(context, name, ranks):
    """The same job with NCCL Inspector's variables: nothing is lost in its log."""
    tap = context.tap
    place = Place(context.work, context.shm, name)
    failed_before = tap.failed
    logs = os.path.join(place.directory, "inspector")
    settings = {**environment(place, context.plugin, "trace", context.mps.environment()),
                **gpu_inspector.settings(logs)}
    outcome = watched(context, place, [context.nccls[0]["driver"], "run", "--ranks", str(ranks),
                                    "--out", place.directory] +
                   ([] if context.mps.directory else list(WITHOUT_MPS)), settings)
    tap.ok(outcome.is_good, "%s: the job %s, %.1f s" % (name, outcome.text, outcome.seconds))
    records = recorded(context, name, place, "trace", ranks)
    accounts = gpu_inspector.read_accounts(place.read("rank-*.log").values())
    issued = [Issued(text) for text in place.read("issued-*.jsonl").values()]
    tap.ok(len(issued) == ranks, "%s: every rank wrote its log" % name)
    for one in sorted(issued, key=lambda own: own.rank or 0):
        log = "".join(place.read("inspector/*-pid%s.log" % one.pid).values())
        account = accounts.get(one.pid)
        problems = gpu_inspector.compare(one, records, log, account)
        tap.ok(not problems, "%s: rank %s: of %d operations, %s" % (
            name, one.rank, account[0] if account else 0, account[1] if account else "?"), problems)
        context.results.setdefault("inspector", []).append({
            "name": name, "rank": one.rank, "nccl": context.nccls[0]["version"],
            "operations": account[0] if account else None, "account": account[1] if account else {},
            "problems": problems})
    if tap.failed > failed_before:
        keep(context, place, "trace")
    place.release()


def keep(context, place, mode):
    """A failed job's files go into the results; its dump, too, because regions will be removed."""
    text, _ = context.tool.dump(place.recorded(mode))
    with gzip.open(os.path.join(place.directory, "dump.jsonl.gz"), "wt", 3,
                   encoding="utf-8") as file:
        file.write(text)
    if place.directory not in context.failed_places:
        context.failed_places.append(place.directory)


def _tapes_in(directory):
    """Tape files anywhere below the job's directory."""
    own = ("issued-", "rank-", "pid-", "id-", "nccl-", "launcher")
    for base, _, names in os.walk(directory):
        for name in sorted(names):
            with open(os.path.join(base, name), "rb") as file:
                if not name.startswith(own) and b" INIT " in file.read(65536):
                    yield os.path.join(base, name)


def tape_job(context, name, arguments):
    """NCCL's real callbacks, recorded as tapes for the tests."""
    tap = context.tap
    if not os.path.exists(context.tape):
        tap.skip(name, "no tape recorder was built")
        return
    place = Place(context.work, context.shm, name)
    settings = environment(place, context.tape, None, context.mps.environment())
    settings["RINGSIDE_TAPE"] = place.directory + "/%s-rank%%r.tap" % name
    settings["RINGSIDE_DIR"] = place.directory
    outcome = watched(context, place, [context.nccls[0]["driver"], "run", "--ranks", "2", "--out",
                                    place.directory] + list(arguments), settings)
    tapes = list(_tapes_in(place.directory))
    tap.ok(outcome.is_good and len(tapes) == 2, "%s: %d tapes, the job %s" % (
        name, len(tapes), outcome.text), os.listdir(place.directory))
    with tarfile.open(os.path.join(context.results_directory, name + "-tapes.tar.gz"),
                      "w:gz") as archive:
        for tape in tapes:
            archive.add(tape, os.path.basename(tape))


def overhead(context):
    """Alternating jobs with and without the plugin."""
    tap, samples, complaints = context.tap, [], []
    for number in range(SESSIONS):
        if number and context.clock.left() < 30:
            tap.say("no time for another session")
            break
        deadline = time.monotonic() + min(25, context.clock.left() - 15)
        try:
            found, servers = gpu_overhead.session(
                number, context.nccls[0]["driver"], context.plugin, context.work, context.shm,
                context.mps.environment(), ROUNDS, deadline, tap.say)
        except (OSError, EOFError, ValueError) as error:
            complaints.append("session %d: %s" % (number + 1, error))
            _overhead_failed(context, number)
            break
        samples.append(found)
        complaints += _overhead_counts(context, number, servers)
    rows = gpu_overhead.rows_of(samples)
    tap.ok(bool(rows) and not complaints, "overhead: %d sessions, recorded = called in them" %
           len(samples), complaints)
    for row in rows:
        tap.say("%9d bytes %-5s %-6s call %8.1f us -> %8.1f us, ratio %.3f (%.3f-%.3f); in call "
                "%.2f -> %.2f us" % (
                    row["bytes"], row["style"], row["variant"], row["call"]["without_ns"] / 1e3,
                    row["call"]["with_ns"] / 1e3, row["call"]["ratio"], *row["call"]["interval"],
                    row["host"]["without_ns"] / 1e3, row["host"]["with_ns"] / 1e3))
    context.results["overhead"] = rows
    context.results["overhead_samples"] = [
        {" ".join(map(str, key)): value for key, value in found.items()} for found in samples]


def _overhead_failed(context, number):
    """The jobs' output, and a new MPS daemon for the following steps."""
    for variant in gpu_overhead.VARIANTS:
        directory = os.path.join(context.work, "overhead-%d-%s" % (number, variant))
        context.failed_places.append(directory)
        for path in sorted(glob.glob(directory + "/*.log")):
            context.tap.say(os.path.relpath(path, context.work) + ":")
            with open(path, encoding="utf-8", errors="replace") as file:
                context.tap.show(file.read(), 8)
    context.mps.restart()


def _overhead_counts(context, number, servers):
    """Compares the servers' calls with the tool's count."""
    complaints = []
    for variant, server in servers.items():
        if variant == "none":
            continue
        _, text, _ = context.tool.verify(server.place.recorded(variant))
        counted = verified_counts(text)
        for pid, issued in (server.issued or {}).items():
            if counted.get(pid) != (issued, issued, 0):
                complaints.append("session %d, %s, pid %d: issued %d, verify says issued, recorded "
                                  "and lost %s" % (number + 1, variant, pid, issued,
                                                   counted.get(pid)))
        server.place.release()
    return complaints


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def torch_job(context, name, ranks, mode, arguments=(), program="ddp.py", more=None, shown=None):
    """PyTorch under the plugin: compares records with the program's counts. Returns what goes into the results,
    or None if there is no PyTorch."""
    tap = context.tap
    if not package_places("torch"):
        tap.skip(name, "no PyTorch for %s" % sys.executable)
        return None
    place = Place(context.work, context.shm, name)
    settings = environment(place, context.plugin, mode, context.mps.environment())
    more = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "TORCH_CPP_LOG_LEVEL": "ERROR",
            **(more or {})}
    settings.update(more)
    script = [os.path.join(HERE, program), place.directory] + list(arguments)
    outcome = watched(context, place, [
        sys.executable, "-m", "torch.distributed.run", "--nnodes=1",
        "--nproc-per-node=%d" % ranks, "--master-addr=127.0.0.1",
        "--master-port=%d" % free_port()] + script, settings, TORCH_IDLE_S)
    if not outcome.is_good and not place.read("ddp-*.json") and context.clock.left() > 40:
        tap.say("again without torchrun, in case torchrun was the cause")
        place = Place(context.work, context.shm, name + "-direct")
        settings = {**settings, **environment(place, context.plugin, mode,
                                              context.mps.environment()), **more}
        script[1] = place.directory
        outcome = watched(context, place, [
            sys.executable, os.path.join(HERE, "start_ranks.py"), str(ranks), str(free_port())]
            + script, settings, TORCH_IDLE_S)
    tap.ok(outcome.is_good, "%s: the job %s, %.1f s" % (name, outcome.text, outcome.seconds))
    return _torch_compare(context, name, place, ranks, mode, outcome, shown)


def ddp_job(context, *arguments):
    """A separate step."""
    found = torch_job(context, *arguments)
    if found:
        context.results["ddp"].append(found)


def _account_words(own):
    if "calls" in own:
        return "%d calls of FSDP" % len(own["calls"])
    return "%d explicit calls, %d buckets of DDP with a hook, all bytes of DDP without" % (
        len(own["explicit"]), len(own["buckets"]))


def _torch_compare(context, name, place, ranks, mode, outcome, shown):
    tap = context.tap
    failed_before = tap.failed
    records = recorded(context, name, place, mode, ranks)
    owns = sorted((json.loads(text) for text in place.read("ddp-*.json").values()),
                  key=lambda own: own["rank"])
    all_rows = []
    for own in owns:
        rows = gpu_compare_ddp.compare(own, records, shown)
        all_rows += rows
        tap.ok(all(row["is_equal"] for row in rows if row["is_hard"]),
               "%s: rank %d: %s: recorded = issued" % (name, own["rank"], _account_words(own)),
               ["%(what)s: issued %(issued)s, recorded %(recorded)s" % row for row in rows
                if row["is_hard"] and not row["is_equal"]])
        told = ["%s %s, recorded %s" % (row["what"].split(": ", 1)[-1], row["issued"],
                                        row["recorded"]) for row in rows if not row["is_hard"]]
        if own["rank"] == 0:
            tap.say("%s: PyTorch's flight recorder: %s" % (name, "; ".join(told)))
    tap.ok(len(owns) == ranks, "%s: every rank wrote its log" % name)
    joins = ranks_join(records, shown)
    tap.ok(not joins, "%s: the ranks' records match" % name, joins[:8])
    checked = verified(context, name, place, mode)
    first = owns[0] if owns else {}
    if tap.failed > failed_before or not outcome.is_good:
        keep(context, place, mode)
    place.release()
    return {
        "name": name, "ranks": ranks, "mode": mode, "seconds": outcome.seconds,
        "outcome": outcome.text, "torch": first.get("torch"), "nccl": first.get("nccl"),
        "rows": all_rows, "counted_lost": lost_operations(checked),
        "kernel_events": kernel_events(checked),
        "is_complete": outcome.is_good and tap.failed == failed_before,
        "flight_recorder": first.get("flight_recorder")}


def plan(context):
    """All steps; without a context only their names."""
    big = ("--big", str(32 << 20))
    killed = ("--kinds", "none", "--kill-at-end")
    short = ("--burst", "60", "--calls", "4")
    tape = ("--calls", "2", "--gap-ms", "5")

    def driver(name, need_s, *rest):
        return Step(name, need_s, lambda: driver_job(context, name, *rest))

    def ddp(name, need_s, *rest):
        return Step(name, need_s, lambda: ddp_job(context, name, *rest))

    def tapes(name, need_s, arguments):
        return Step(name, need_s, lambda: tape_job(context, name, arguments))

    return [
        driver("2-ranks-trace", 25, 0, 2, "trace", big, True),
        driver("2-ranks-flight", 20, 0, 2, "flight", big),
        Step("inspector-2-ranks", 25, lambda: inspector_job(context, "inspector-2-ranks", 2)),
        driver("4-ranks-trace", 25, 0, 4, "trace", big),
        driver("8-ranks-trace", 35, 0, 8, "trace", big + ("--burst", "120"), True),
        ddp("ddp-2-ranks", 25, 2, "trace"),
        ddp("fsdp-2-ranks", 25, 2, "trace", (), "fsdp.py"),
    ] + gpu_bench.steps(context, Step) + gpu_hangs.steps(context, Step) + [
        Step("overhead", 45, lambda: overhead(context)),
        tapes("six-ops", 8, ("--kinds", SIX, "--styles", "sync") + tape),
        tapes("self-and-graph", 8, ("--kinds", "drift-self,drift-graph") + tape),
        driver("killed-flight", 8, 0, 2, "flight", killed),
        driver("killed-trace", 8, 0, 2, "trace", killed),
        driver("second-nccl-2-ranks-trace", 20, 1, 2, "trace", short),
        ddp("ddp-4-ranks-eager", 30, 4, "trace", ("--eager",)),
        driver("8-ranks-flight", 35, 0, 8, "flight", short),
        driver("4-ranks-flight", 25, 0, 4, "flight", short),
        driver("2-ranks-full", 20, 0, 2, "full", short),
        driver("second-nccl-4-ranks-flight", 20, 1, 4, "flight", short),
        ddp("ddp-2-ranks-flight", 25, 2, "flight"),
    ]
