"""Compares sampling with timing every call, on real NCCL: the same job twice. One rank is always late, so medians, p99,
waiting and the straggler are compared."""

import json
import subprocess
from collections import defaultdict
from statistics import median

from gpu_compare import Issued, RankResult, sampled_together
from gpu_fields import read_dump
from gpu_job import Place, environment, run_job
from gpu_machine import clean_environment
from gpu_releases import EVENTS, transport_arguments, transport_settings
from gpu_steps import shown_of

RANKS, VICTIM, SECONDS = 4, 2, 12
WAYS = ("kernel", "default")


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def times_of(records):
    """{(function, bytes): {calls, timed, median_ns, p99_ns}} over all ranks."""
    groups = defaultdict(list)
    for record in records:
        groups[record.function, record.bytes].append(record)
    rows = {}
    for key, own in groups.items():
        timed = [r.gpu_duration_ns for r in own if r.is_gpu_timed and r.gpu_duration_ns is not None]
        rows[key] = {"calls": len(own), "timed": len(timed),
                     "median_ns": median(timed) if timed else None,
                     "p99_ns": quantile(timed, 0.99) if timed else None}
    return rows


def waiting_of(records, function="AllReduce"):
    """From collectives timed on all ranks: the share of their time spent waiting, and how often each
    rank arrived last. The last rank's kernel is the shortest."""
    matches = defaultdict(dict)
    for record in records:
        if record.function == function and record.is_gpu_timed and record.gpu_duration_ns is not None:
            matches[record.comm_hash, record.match][record.comm_rank] = record.gpu_duration_ns
    last, waited, total, count = defaultdict(int), 0, 0, 0
    for ranks in matches.values():
        if len(ranks) != RANKS:
            continue
        least = min(ranks.values())
        last[min(ranks, key=ranks.get)] += 1
        waited += sum(ranks.values()) - RANKS * least
        total += sum(ranks.values())
        count += 1
    straggler = max(last, key=last.get) if last else None
    return {"collectives": count, "wait_share": waited / total if total else None,
            "straggler": straggler, "straggler_share": last[straggler] / count if count else None}


def report_of(context, files):
    """Waiting and straggler, from `ringside report`."""
    try:
        done = subprocess.run([context.tool.path, "report", "--json"] + files, text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                              env=clean_environment())
        document = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return {"problem": str(error)}
    stragglers = document.get("stragglers", {}).get("list", [])
    index = stragglers[0].get("rank_index") if stragglers else None
    ranks = document.get("ranks", [])
    return {"wait_share": document.get("total", {}).get("wait_share"),
            "straggler": ranks[index].get("rank") if index is not None and index < len(ranks)
            else None}


def one_way(context, nccl, transport, way):
    """Runs the job once: results, or None if it failed."""
    name = "%s-%s-accuracy-%s" % (nccl["version"], transport, way)
    place = Place(context.work, context.shm, name)
    settings = {**environment(place, context.plugin, "trace", context.mps.environment()),
                **EVENTS[way], **transport_settings(transport)}
    outcome = run_job([nccl["driver"], "steady", "--ranks", str(RANKS), "--out", place.directory,
                       "--victim", str(VICTIM), "--seconds", str(SECONDS),
                       *transport_arguments(transport)], settings, place,
                      max(10, min(60, context.clock.left() - 5)), None, 20 + SECONDS)
    if outcome.was_killed:
        context.mps.restart()
    if not outcome.is_good:
        context.failed_places.append(place.directory)
        context.tap.ok(False, "%s: the job %s" % (name, outcome.text),
                       list(place.read("rank-0.log").values()))
        return None
    files = place.recorded("trace")
    text, _ = context.tool.dump(files)
    _, checked, _ = context.tool.verify(files)
    shown = shown_of(nccl, checked, transport == "node")
    records = read_dump(text)
    results = [RankResult(Issued(own), records, shown)
               for own in place.read("issued-*.jsonl").values()]
    problems = [problem for result in results for problem in result.problems]
    problems += ["rank %s: recorded %d of %d" % (result.issued.rank, row.recorded, row.issued)
                 for result in results for row in result.rows.values()
                 if row.recorded != row.issued]
    both, some, _ = sampled_together(records)
    found = {"way": way, "kernel_events": shown.kernel, "problems": problems[:8],
             "operations": len(records), "timed": sum(r.is_gpu_timed for r in records),
             "sampled_on_all": both, "sampled_on_some": some, "waiting": waiting_of(records),
             "report": report_of(context, files),
             "times": [{"function": key[0], "bytes": key[1], **row}
                       for key, row in sorted(times_of(records).items(), key=str)]}
    place.release()
    return found


def difference(full, sampled):
    """Relative errors of the sampled results, per function and size with enough timed calls."""
    rows = []
    by_key = {(row["function"], row["bytes"]): row for row in sampled["times"]}
    for row in full["times"]:
        other = by_key.get((row["function"], row["bytes"]))
        if not other or not row["timed"] or not other["timed"]:
            continue
        rows.append({"function": row["function"], "bytes": row["bytes"], "timed": row["timed"],
                     "sampled": other["timed"], "median_ns": row["median_ns"],
                     "sampled_median_ns": other["median_ns"], "p99_ns": row["p99_ns"],
                     "sampled_p99_ns": other["p99_ns"],
                     "median_difference": other["median_ns"] / row["median_ns"] - 1,
                     "p99_difference": other["p99_ns"] / row["p99_ns"] - 1})
    return rows


def _percent(value):
    return "?" if value is None else "%.1f %%" % (100 * value)


def accuracy_job(context, nccl, transport):
    """Both runs and their differences. Finding the straggler is a test; the rest is only printed."""
    tap = context.tap
    name = "%s-%s-accuracy" % (nccl["version"], transport)
    ways = {}
    for way in WAYS:
        ways[way] = one_way(context, nccl, transport, way)
        if ways[way] is None:
            return
    full, sampled = (ways[way] for way in WAYS)
    if sampled["kernel_events"] != "sampled" and not sampled["timed"]:
        tap.skip(name, "the plugin does not sample on this release: kernel events %s" %
                 sampled["kernel_events"])
        return
    rows = difference(full, sampled)
    for row in rows:
        tap.say("%s: %s %s bytes: median %.1f us of %d calls, sampled %.1f us of %d (%+.1f%%); p99 "
                "%.1f us, sampled %.1f us (%+.1f%%)" % (
                    name, row["function"], row["bytes"], row["median_ns"] / 1e3, row["timed"],
                    row["sampled_median_ns"] / 1e3, row["sampled"], 100 * row["median_difference"],
                    row["p99_ns"] / 1e3, row["sampled_p99_ns"] / 1e3,
                    100 * row["p99_difference"]))
    for way, found in ways.items():
        tap.say("%s: %s: waiting %s, straggler rank %s (last in %s of %d collectives); report: "
                "waiting %s, straggler rank %s" % (
                    name, way, _percent(found["waiting"]["wait_share"]),
                    found["waiting"]["straggler"], _percent(found["waiting"]["straggler_share"]),
                    found["waiting"]["collectives"], _percent(found["report"].get("wait_share")),
                    found["report"].get("straggler")))
    problems = full["problems"] + sampled["problems"]
    for way, found in ways.items():
        if found["waiting"]["straggler"] != VICTIM:
            problems.append("%s: the straggler is rank %d, the times show %s" % (
                way, VICTIM, found["waiting"]["straggler"]))
    tap.ok(not problems, "%s: %d of %d operations timed when sampled; both runs find rank %d" % (
        name, sampled["timed"], sampled["operations"], VICTIM), problems)
    context.results["accuracy"].append({
        "nccl": nccl["version"], "transport": transport, "ranks": RANKS, "victim": VICTIM,
        "differences": rows, "is_good": not problems, "problems": problems[:8], **{
            way: {key: value for key, value in found.items() if key != "times"}
            for way, found in ways.items()}})
