"""The matrix of NCCL releases: every release of --nccl over sockets and inside one node, with 2, 4 and 8 ranks,
with kernel events, with every launch timed, without times and by default. Each cell ends with recorded = called, or with the
names of the blind spots and how many operations each hides.

A step's name has the release, so `--only 2.30.7+hang` selects; plan() has the most important steps first.
"""

import os
import re
import sys

import gpu_accuracy
import gpu_compare
import gpu_cost
import gpu_hangs
from gpu_compare import Issued, RankResult, ranks_join, sampled_together
from gpu_fields import interfaces, lost_operations, odd_events, read_dump
from gpu_job import ENDED_WELL, Place, environment, run_job
from gpu_machine import HERE, capture, package_places
from gpu_releases import EVENTS, FIRST_WITH_CUDA_EVENTS, transport_arguments, transport_settings, transports_of
from gpu_scenes import SCENES
from gpu_steps import (WITHOUT_MPS, Step, case_rows, free_port, keep, shown_of, together,
                       torch_job)

RANKS = (2, 4, 8)
MATRIX_SCENES = ("skip", "gpu", "deadlock", "size", "datatype", "stop", "kill", "calm")
HANG, STILL_S, RUN_S = "2s", 3.5, 8
IDLE_S, DEMO_IDLE_S, RERUN_LIMIT_S, JOB_LIMIT_S = 20, 6, 45, 90
WINDOWS_S = 4
EDGES = ("modes", "update", "churn", "conditional", "threads", "reset", "exit", "nonblocking")
# Ranks measure their paces with their own clocks, so their shares differ a little.
SAMPLE_SKEW = 0.1
SHORT = {2: ("--burst", "100"), 4: ("--burst", "60", "--calls", "4"),
         8: ("--burst", "40", "--calls", "3", "--replays", "4", "--gap-ms", "15")}


def has_split_hang(nccl, events):
    """From 2.29 on kernel events hang NCCL itself after a graph with a Broadcast."""
    return events == "kernel" and nccl["number"] >= 22900


class Cell:
    """One job of the matrix."""

    def __init__(self, nccl, transport, ranks, events, mode="trace"):
        self.nccl, self.transport, self.ranks = nccl, transport, ranks
        self.events, self.mode, self.more = events, mode, {}
        self.name = "%s-%s-%d-ranks-%s" % (nccl["version"], transport, ranks, events)

    @property
    def is_one_node(self):
        return self.transport == "node"

    def settings(self):
        return {**EVENTS[self.events], **transport_settings(self.transport), **self.more}

    def fields(self):
        return {"nccl": self.nccl["version"], "transport": self.transport, "ranks": self.ranks,
                "events": self.events, "mode": self.mode}


def run_cell(context, cell, verb, arguments, idle_s=None, name=None, is_told=True):
    """The cell's job under the plugin: (place, outcome, what it ran)."""
    place = Place(context.work, context.shm, name or cell.name)
    settings = {**environment(place, context.plugin, cell.mode, context.mps.environment()),
                **cell.settings()}
    argv = [cell.nccl["driver"], verb, "--ranks", str(cell.ranks), "--out", place.directory,
            *transport_arguments(cell.transport), *arguments]
    if verb == "run" and not context.mps.directory:
        argv += list(WITHOUT_MPS)
    limit_s = max(10, min(JOB_LIMIT_S, context.clock.left() - 5))

    def on_hang():
        if is_told:
            context.tap.say("the job hangs; its ranks are in:")
            context.tap.show(context.tool.now(settings), 30)

    outcome = run_job(argv, settings, place, limit_s, on_hang, idle_s or IDLE_S)
    if outcome.was_killed:
        context.mps.restart()
    if not outcome.is_good and is_told:
        context.failed_places.append(place.directory)
        for file, text in {**place.read("launcher.log"), **place.read("rank-0.log")}.items():
            context.tap.say(file + ":")
            context.tap.show(text, 12)
    return place, outcome, argv


def run_without(context, cell, argv, idle_s=None, has_idle_plugin=False):
    """The same job without the plugin, to find the cause of a failure; or with one that does nothing and requests
    kernel events. Returns its outcome as text."""
    plugin, what = None, "without the plugin"
    if has_idle_plugin:
        plugin, what = gpu_cost.idle_plugin(context), "with a plugin that does nothing"
    place = Place(context.work, context.shm, cell.name + "-without")
    settings = {**environment(place, plugin, None, context.mps.environment()),
                **transport_settings(cell.transport), **cell.more,
                "EMPTY_PLUGIN_MASK": gpu_cost.COLL_P2P_AND_KERNEL}
    at = argv.index("--out") + 1
    limit_s = max(5, min(RERUN_LIMIT_S, context.clock.left() - 5))
    outcome = run_job(argv[:at] + [place.directory] + argv[at + 1:], settings, place, limit_s,
                      None, min(idle_s or IDLE_S, limit_s))
    if outcome.was_killed:
        context.mps.restart()
    place.release()
    context.tap.say("%s: %s the same job %s" % (cell.name, what, outcome.text))
    return outcome.text


def compare_cell(context, cell, place):
    """Compares records with calls: the cell's counts and problems."""
    files = place.recorded(cell.mode)
    problems = [] if len(files) == cell.ranks else ["%d recordings for %d ranks" % (
        len(files), cell.ranks)]
    text, problem = context.tool.dump(files) if files else ("", None)
    problems += [problem] if problem else []
    code, checked, remarks = context.tool.verify(files)
    if code != 0:
        problems.append("ringside verify: exit code %d: %s" % (code, remarks.strip()[-300:]))
    shown = shown_of(cell.nccl, checked, cell.is_one_node, cell.settings())
    records = read_dump(text)
    issued = sorted((Issued(own) for own in place.read("issued-*.jsonl").values()),
                    key=lambda own: own.rank or 0)
    results = [RankResult(own, records, shown) for own in issued]
    problems += together((r.issued.rank, told) for r in results for told in r.problems)
    if len(results) != cell.ranks:
        problems.append("%d of %d ranks wrote their log" % (len(results), cell.ranks))
    problems += ranks_join(records, shown)[:4]
    cases = cell_cases(cell, results, problems)
    figures = cell_figures(results)
    figures["via"] = transports_used(place)
    problems += transport_problems(cell, figures["via"])
    figures.update(interface=interfaces(checked), kernel_events=shown.kernel, cases=cases,
                   counted_lost=lost_operations(checked), odd=odd_events(checked))
    figures.update(cell_times(results, records, cell, shown, problems))
    return figures, problems


def transports_used(place):
    """The transports of NCCL's channels, from its log: {"P2P/CUMEM": 24}."""
    via = {}
    for text in place.read("nccl-*.log").values():
        for kind, more in re.findall(r" via (P2P|SHM|NET)(/\w+)?", text):
            via[kind + more] = via.get(kind + more, 0) + 1
    return via


def transport_problems(cell, via):
    wrong = [name for name in via if name.startswith("NET") == cell.is_one_node]
    return ["NCCL used %s" % ", ".join(sorted(wrong))] if wrong else []


def cell_cases(cell, results, problems):
    """One entry per case and style; problems are added to the cell's."""
    cases = []
    for (kind, style), rows in case_rows(results).items():
        told = together((rank, text) for rank, row in rows for text in row.problems[:4])
        is_complete = len(rows) == cell.ranks and all(row.is_complete for _, row in rows)
        if not is_complete:
            problems += ["%s %s: %s" % (kind, style, text)
                         for text in told or ["counts differ, or not all ranks reached it"]]
        blind = {}
        for _, row in rows:
            for name, count in row.blind.items():
                blind[name] = blind.get(name, 0) + count
        cases.append({"kind": kind, "style": style, "is_complete": is_complete, "blind": blind,
                      "issued": sum(row.issued + row.captured + row.replayed for _, row in rows),
                      "recorded": sum(row.recorded + row.recorded_captured + row.recorded_replayed
                                      for _, row in rows)})
    return cases


def cell_figures(results):
    """Over all ranks and cases. `ran`: eager calls and replays, each of which must have one record."""
    rows = [row for result in results for row in result.rows.values()]
    blind = {}
    for row in rows:
        for name, count in row.blind.items():
            blind[name] = blind.get(name, 0) + count
    return {"eager": sum(row.issued for row in rows),
            "recorded_eager": sum(row.recorded for row in rows),
            "captured": sum(row.captured for row in rows),
            "recorded_captured": sum(row.recorded_captured for row in rows),
            "captured_unseen": sum(row.unseen_captured for row in rows),
            "replays": sum(row.replayed for row in rows),
            "read_replays": sum(row.read_replays for row in rows),
            "recorded_replays": sum(row.recorded_replayed for row in rows), "blind": blind,
            "timed": sum(row.timed for row in rows), "gpu_timed": sum(row.gpu_timed for row in rows),
            "untrusted": sum(row.untrusted for row in rows)}


def cell_times(results, records, cell, shown, problems):
    """GPU times: on most plain calls if all are to be timed; on the same calls on all ranks by default; on none if
    times are off."""
    has_events = cell.nccl["number"] >= FIRST_WITH_CUDA_EVENTS
    sync = [p for result in results for p in result.pairs
            if p.call["style"] == "sync" and p.call["kind"] == "allreduce"]
    timed = sum(pair.record.is_gpu_timed for pair in sync)
    is_all = shown.kernel == "on" or (cell.events == "all" and has_events)
    if is_all and sync and timed * 2 <= len(sync):
        problems.append("%d of %d synchronized AllReduce have the GPU's own time" % (timed, len(sync)))
    if cell.events == "off" and any(record.is_gpu_timed for record in records):
        problems.append("times are off, but calls have GPU times")
    if cell.events == "default" and has_events and sync and timed == 0:
        problems.append("no synchronized AllReduce has a GPU time")
    replays_timed = sum(record.is_gpu_timed for record in records if record.is_replay)
    if cell.events == "graphs" and has_events and replays_timed == 0:
        problems.append("no replay has a GPU time")
    both, some, examples = sampled_together(records)
    if gpu_compare.ARE_TIMES_JUDGED and cell.events == "default" and has_events and some > max(2, SAMPLE_SKEW * (both + some)):
        problems.append("%d collectives are timed on all ranks, %d on some only: %s" % (
            both, some, "; ".join(examples[:2])))
    return {"replays_timed": replays_timed, "places_rough": sum(record.has_rough_place for record in records), "sync_calls": len(sync), "sync_timed": timed, "sampled_on_all": both,
            "sampled_on_some": some if cell.events == "default" else None}


def is_failure(words):
    """Describes a bad outcome."""
    return words is not None and words != ENDED_WELL


def blind_words(blind):
    return ", ".join("%s %d" % item for item in sorted(blind.items())) or "none"


def compare_job(context, cell):
    """All cases and styles in one cell."""
    tap = context.tap
    arguments = list(SHORT[cell.ranks])
    if has_split_hang(cell.nccl, cell.events):
        # Otherwise the cell would only show one hang; hang-split-graph covers that.
        cell.more = {"NCCL_ALLGATHERV_ENABLE": "0"}
    if cell.ranks == 2:
        arguments += ["--big", str(32 << 20)]
    place, outcome, argv = run_cell(context, cell, "run", arguments)
    entry = {**cell.fields(), "outcome": outcome.text, "seconds": outcome.seconds, "without": None,
             "idle_plugin": None, "settings": cell.more}
    problems = []
    if outcome.is_good:
        figures, problems = compare_cell(context, cell, place)
        entry.update(figures)
    else:
        entry["without"] = run_without(context, cell, argv)
        problems = ["the job %s; without the plugin it %s" % (outcome.text, entry["without"])]
        if cell.events == "kernel":
            entry["idle_plugin"] = run_without(context, cell, argv, has_idle_plugin=True)
            problems.append("with a plugin that only requests kernel events it %s" %
                            entry["idle_plugin"])
    entry.update(is_complete=not problems, problems=problems[:12])
    # Kernel events for every call are at the user's risk; NCCL's bugs are shown, not counted here.
    is_nccl = is_failure(entry["idle_plugin"])
    told = "recorded %s of %s eager calls and %s of %s replays; blind: %s; %s timed by the GPU, and %s replays, %s with a rough place" % (
        entry.get("recorded_eager"), entry.get("eager"), entry.get("recorded_replays"),
        entry.get("replays"), blind_words(entry.get("blind", {})), entry.get("gpu_timed"),
        entry.get("replays_timed"), entry.get("places_rough"))
    tap.ok(not problems or is_nccl, "%s: kernel events %s, %s%s" % (
        cell.name, entry.get("kernel_events"), told if outcome.is_good else outcome.text,
        ", the same with a plugin that does nothing" if is_nccl else ""), problems)
    context.results["matrix"].append(entry)
    if problems:
        keep(context, place, cell.mode)
    place.release()


def hang_job(context, nccl, transport, events, scene):
    name = "%s-%s-%s" % (nccl["version"], transport, events)
    variant = gpu_hangs.Variant(name, nccl, {**EVENTS[events], **transport_settings(transport)},
                                transport_arguments(transport), transport == "node")
    found = gpu_hangs.variant_job(context, scene, variant, HANG, STILL_S, RUN_S)
    context.tap.ok(found["is_right"], "%s-hang-%s: kernel events %s, wanted %s, reported %s%s (%.1f s)"
                   % (name, scene.name, found["kernel_events"], scene.told, found["told"],
                      ", blind spot %s" % found["blind"] if found["blind"] else "",
                      found["seconds"]), found["wrong"] + found["titles"])
    context.results["scenes"].append({"nccl": nccl["version"], "transport": transport,
                                      "events": events, **found})


def split_graph_job(context, nccl, transport, events):
    """A Broadcast of a split communicator in a graph, then ncclCommDestroy. With kernel events NCCL 2.29 and later
    never return from it: that is shown, within seconds, and is not a failure of this check."""
    tap, cell = context.tap, Cell(nccl, transport, 2, events)
    cell.name = "%s-%s-hang-split-graph-%s" % (nccl["version"], transport, events)
    is_demo = has_split_hang(nccl, events)
    arguments = ["--kinds", "split", "--styles", "graph"]
    place, outcome, argv = run_cell(context, cell, "run", arguments,
                                    DEMO_IDLE_S if is_demo else None, is_told=not is_demo)
    entry = {**cell.fields(), "what": "split-graph", "outcome": outcome.text, "is_demo": is_demo,
             "seconds": outcome.seconds, "without": None, "problems": []}
    if not outcome.is_good:
        entry["without"] = run_without(context, cell, argv, DEMO_IDLE_S)
        entry["idle_plugin"] = run_without(context, cell, argv, DEMO_IDLE_S, has_idle_plugin=True) \
            if events == "kernel" else None
    elif not is_demo:
        figures, entry["problems"] = compare_cell(context, cell, place)
        entry.update(kernel_events=figures["kernel_events"], blind=figures["blind"])
    entry["is_good"] = is_demo or (outcome.is_good and not entry["problems"])
    words = "the job %s after %.1f s" % (outcome.text, outcome.seconds)
    if entry["without"]:
        words += "; without the plugin it %s" % entry["without"]
    if entry.get("idle_plugin"):
        words += "; with a plugin that does nothing it %s" % entry["idle_plugin"]
    tap.ok(entry["is_good"], "%s: %s%s" % (cell.name, words, " (a demonstration)" if is_demo else ""),
           entry["problems"])
    context.results["endings"].append(entry)
    place.release()


def windows_job(context, nccl, transport, ranks, first, events="all"):
    """Collectives while sampling windows open and close, then captures, sends to itself and grouped broadcasts,
    one of them first; it must end."""
    tap, cell = context.tap, Cell(nccl, transport, ranks, events)
    cell.name = "%s-%s-windows-%s-%d-ranks-%s" % (nccl["version"], transport, first, ranks, events)
    place, outcome, argv = run_cell(context, cell, "windows", ["--seconds", str(WINDOWS_S), "--kinds",
                                                               first])
    entry = {**cell.fields(), "what": "windows, %s first" % first, "outcome": outcome.text, "is_demo": False,
             "seconds": outcome.seconds, "without": None, "problems": []}
    if outcome.is_good:
        figures, entry["problems"] = compare_cell(context, cell, place)
        entry.update({key: figures[key] for key in (
            "kernel_events", "blind", "gpu_timed", "untrusted", "eager", "recorded_eager", "replays",
            "recorded_replays", "sampled_on_all", "sampled_on_some")})
    else:
        entry["without"] = run_without(context, cell, argv)
    entry["is_good"] = outcome.is_good and not entry["problems"]
    tap.ok(entry["is_good"], "%s: the job %s after %.1f s; kernel events %s, %s calls timed; blind: %s" % (
        cell.name, outcome.text, outcome.seconds, entry.get("kernel_events"), entry.get("gpu_timed"),
        blind_words(entry.get("blind", {}))), entry["problems"])
    context.results["endings"].append(entry)
    if not entry["is_good"]:
        keep(context, place, cell.mode)
    place.release()


def edges_job(context, nccl, transport, scene, events):
    """A job with graphs, threads or an end of its own kind: it must end as it does without the plugin."""
    tap, cell = context.tap, Cell(nccl, transport, 2, events)
    cell.name = "%s-%s-edges-%s-%s" % (nccl["version"], transport, scene, events)
    if scene == "conditional":
        cell.more = {"NCCL_GRAPH_MIXING_SUPPORT": "0"}
    place, outcome, argv = run_cell(context, cell, "edges", ["--scene", scene, "--big", str(32 << 20)])
    entry = {**cell.fields(), "what": "edges, %s" % scene, "outcome": outcome.text, "is_demo": False,
             "seconds": outcome.seconds, "without": None, "problems": []}
    files = place.recorded(cell.mode)
    text, problem = context.tool.dump(files) if files else ("", "nothing was recorded")
    records = read_dump(text)
    code, _, remarks = context.tool.verify(files)
    entry["problems"] += [problem] if problem else []
    if code != 0 and scene not in ("reset", "exit"):
        entry["problems"].append("ringside verify: exit code %d: %s" % (code, remarks.strip()[-300:]))
    if not outcome.is_good:
        entry["without"] = run_without(context, cell, argv)
    entry["gpu_timed"] = sum(r.is_gpu_timed and not r.is_replay for r in records)
    entry["replays_timed"] = sum(r.is_gpu_timed and r.is_replay for r in records)
    entry["is_good"] = not entry["problems"] and (outcome.is_good or entry["without"] == outcome.text)
    tap.ok(entry["is_good"], "%s: the job %s after %.1f s%s; %d operations, %d timed, and %d replays" % (
        cell.name, outcome.text, outcome.seconds,
        "; without the plugin it %s" % entry["without"] if entry["without"] else "", len(records),
        entry["gpu_timed"], entry["replays_timed"]), entry["problems"])
    context.results["endings"].append(entry)
    place.release()


def torch_with(nccl):
    """Settings with which PyTorch uses this NCCL, or (None, why not). Its own is found by RPATH, so another one
    must be loaded before."""
    if nccl.get("is_torch"):
        return {}, None
    if not package_places("torch"):
        return None, "no PyTorch for %s" % sys.executable
    settings = {"LD_PRELOAD": nccl["library"]}
    # Not torch.cuda.nccl.version(): that is what PyTorch was compiled with.
    asks = ("import ctypes, torch; number = ctypes.c_int(); torch.cuda.nccl.version(); "
            "ctypes.CDLL(None).ncclGetVersion(ctypes.byref(number)); number = number.value; "
            "print(number // 10000, number // 100 % 100, number % 100)")
    code, text = capture([sys.executable, "-c", asks], 90, env={**os.environ, **settings})
    words = text.strip().splitlines()
    told = ".".join(words[-1].split()[:3]) if code == 0 and words else None
    if told != nccl["version"]:
        return None, "PyTorch does not run with NCCL %s: %s" % (
            nccl["version"], (words or ["no output"])[-1][:200])
    return settings, None


def torch_without(context, name, transport, program, ranks, more):
    """The same PyTorch job without the plugin. Returns its outcome as text."""
    place = Place(context.work, context.shm, name + "-without")
    settings = {**environment(place, None, None, context.mps.environment()), **more,
                "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    outcome = run_job([sys.executable, os.path.join(HERE, "start_ranks.py"), str(ranks),
                       str(free_port()), os.path.join(HERE, program), place.directory,
                       *transport_arguments(transport)], settings, place,
                      max(10, min(JOB_LIMIT_S, context.clock.left() - 5)))
    if outcome.was_killed:
        context.mps.restart()
    context.tap.say("%s: without the plugin the same job %s" % (name, outcome.text))
    return outcome.text


def torch_matrix_job(context, nccl, transport, program, ranks, events="default"):
    name = "%s-%s-%s-%d-ranks" % (nccl["version"], transport, program.split(".")[0], ranks)
    if "torch_settings" not in nccl:
        nccl["torch_settings"], nccl["torch_why_not"] = torch_with(nccl)
    if nccl["torch_settings"] is None:
        context.tap.skip(name, nccl["torch_why_not"])
        return
    more = {**nccl["torch_settings"], **EVENTS[events], **transport_settings(transport)}
    found = torch_job(context, name, ranks, "trace", transport_arguments(transport), program, more,
                      shown_of(nccl, "", transport == "node"))
    if not found:
        return
    if found["outcome"] != ENDED_WELL:
        found["without"] = torch_without(context, name, transport, program, ranks, more)
    context.results["torch"].append({"release": nccl["version"], "transport": transport,
                                     "program": program, "events": events, **found})


def release_steps(context, nccl):
    """(weight, step): a lower weight runs earlier."""
    version = nccl["version"]
    steps = []

    def add(weight, name, need_s, run):
        steps.append((weight, Step(name, need_s, run)))

    def cell(weight, transport, ranks, events):
        own = Cell(nccl, transport, ranks, events)
        add(weight, own.name, {2: 20, 4: 22, 8: 30}[ranks], lambda: compare_job(context, own))

    for transport in transports_of(nccl):
        is_node = transport == "node"
        cell(0, transport, 4 if is_node else 2, "default")
        cell(1, transport, 2 if is_node else 4, "default")
        cell(4, transport, 8, "default")
        cell(1, transport, 2, "graphs")
        for scene in EDGES:
            for events in ("default", "graphs"):
                add(1.5 if events == "graphs" else 2.5, "%s-%s-edges-%s-%s" % (version, transport, scene, events), 15,
                    lambda t=transport, s=scene, e=events: edges_job(context, nccl, t, s, e))
        for events in ("all", "off", "kernel"):
            cell(3, transport, 4 if is_node else 2, events)
        add(1, "%s-%s-hang-split-graph" % (version, transport), 12,
            lambda t=transport: split_graph_job(context, nccl, t, "default"))
        add(5, "%s-%s-hang-split-graph-kernel" % (version, transport), 20,
            lambda t=transport: split_graph_job(context, nccl, t, "kernel"))
        for weight, first, ranks in ((2, "capture", 2), (2, "self", 2), (2, "broadcasts", 2),
                                     (4, "capture", 4)):
            add(weight, "%s-%s-windows-%s-%d-ranks" % (version, transport, first, ranks), 20,
                lambda t=transport, r=ranks, f=first: windows_job(context, nccl, t, r, f))
        for scene in SCENES:
            if scene.name not in MATRIX_SCENES:
                continue
            order = MATRIX_SCENES.index(scene.name) / 10
            for weight, events in ((6, "default"), (7, "off"), (8, "all"), (9, "kernel")):
                add(weight + order, "%s-%s-hang-%s-%s" % (version, transport, scene.name, events), 14,
                    lambda s=scene, t=transport, e=events: hang_job(context, nccl, t, e, s))
        for program in ("ddp.py", "fsdp.py"):
            add(4.5, "%s-%s-%s" % (version, transport, program.split(".")[0]), 30,
                lambda t=transport, p=program: torch_matrix_job(context, nccl, t, p, 2))
        add(10, "%s-%s-cost" % (version, transport), 60,
            lambda t=transport: gpu_cost.cost_job(context, nccl, t))
        add(11, "%s-%s-accuracy" % (version, transport), 45,
            lambda t=transport: gpu_accuracy.accuracy_job(context, nccl, t))
    return steps


def plan(context, nccls):
    """The matrix's steps for these releases, the most important ones first."""
    steps = [entry for nccl in nccls for entry in release_steps(context, nccl)]
    return [step for _, step in sorted(steps, key=lambda entry: entry[0])]
