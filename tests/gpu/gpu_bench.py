"""`ringside bench` on real hardware: results are correct for every operation, none of its calls is
missing in the recording, and its medians agree with a loop as in nccl-tests."""

import json
import os

from gpu_fields import lost_operations, verified_counts
from gpu_job import Place, environment, run_job

FUNCTIONS = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "AlltoAll",
             "SendRecv", "Gather", "Scatter")
MODES = ("blocking", "back-to-back", "graph")
TYPES = "int8,uint8,int32,uint32,int64,uint64,float16,float32,float64,bfloat16"
LOOP_RUNS = 5


def bench(context, name, ranks, arguments, mode="trace"):
    """One run under the plugin: (its results or None, its directory)."""
    tap, nccl = context.tap, context.nccls[0]
    place = Place(context.work, context.shm, name)
    settings = environment(place, context.plugin if mode else None, mode,
                           context.mps.environment(), is_quiet=True)
    path = os.path.join(place.directory, "bench.json")
    outcome = run_job([context.tool.path, "bench", "--ranks", str(ranks), "--nccl",
                       nccl["library"], "--output", path, *arguments], settings, place,
                      max(10, min(100, context.clock.left() - 5)), lambda: None)
    tap.ok(outcome.is_good, "%s: the benchmark %s, %.1f s" % (name, outcome.text, outcome.seconds),
           list(place.read("launcher.log").values()))
    if not outcome.is_good:
        context.failed_places.append(place.directory)
    if outcome.was_killed:
        context.mps.restart()
    if not os.path.exists(path):
        return None, place
    with open(path, encoding="utf-8") as file:
        return json.load(file), place


def correct(context, name, ranks, arguments, wanted):
    """Every operation is correct and recorded."""
    tap = context.tap
    found, place = bench(context, name, ranks, arguments)
    cells = found["results"] if found else []
    for function in wanted:
        own = [cell for cell in cells if cell["function"] == function]
        wrong = [_words(cell) for cell in own if cell["wrong"] != 0]
        tap.ok(bool(own) and not wrong, "%s: %s: %d variants, %d of them with wrong results" % (
            name, function, len(own), len(wrong)), wrong[:8])
    _complete(context, name, place, found)
    context.results.setdefault("bench", []).append({
        "name": name, "ranks": ranks, "cells": len(cells),
        "wrong": sum(cell["wrong"] or 0 for cell in cells),
        "unchecked": sum(cell["wrong"] is None for cell in cells)})
    place.release()


def _words(cell):
    return "%s %s %s %s, %d bytes%s: %s elements wrong" % (
        cell["function"], cell["datatype"], cell["redop"], cell["mode"], cell["bytes"],
        ", in place" if cell["in_place"] else "", cell["wrong"])


def _issued(cell, rank, ranks):
    """Operations that NCCL shows of this cell on this rank: executed and captured ones."""
    steps = cell["warmups"] + cell["calls"] + cell["checks"] + cell["captured"]
    one = {"SendRecv": 2, "AlltoAll": 2 * ranks}.get(cell["function"], 1)
    nothing = 0
    if cell["function"] in ("Gather", "Scatter") and rank == cell["root"]:
        one = ranks + 1
        # The root's own part, in place, is a Send and a Recv that do nothing: replays skip them.
        if cell["in_place"] and cell["mode"] == "graph":
            launched = (cell["warmups"] - 1) // cell["captured"] * cell["captured"] + cell["calls"]
            nothing = 2 * launched
    return steps * one - nothing + cell["aligns"]


def _complete(context, name, place, found):
    """Compares the recorder's counts with the benchmark's."""
    tap = context.tap
    code, text, remarks = context.tool.verify(place.recorded("trace"))
    tap.ok(code == 0, "%s: ringside verify finds nothing missing" % name, [remarks[-1000:]])
    counted, problems = verified_counts(text), []
    for rank, member in enumerate(found["members"] if found else []):
        issued = sum(_issued(cell, rank, found["ranks"]) for cell in found["results"])
        if counted.get(member["pid"]) != (issued, issued, 0):
            problems.append("rank %d: called %d, verify says issued, recorded and lost %s" % (
                rank, issued, counted.get(member["pid"])))
    tap.ok(bool(found) and not problems, "%s: recorded = called on every rank" % name,
           problems + [str(lost_operations(text))])


def loop(context, name):
    """Medians of single calls compared with a loop as in nccl-tests, printed but not judged."""
    rows = {}
    for number in range(LOOP_RUNS):
        if context.clock.left() < 20:
            break
        found, place = bench(context, "%s-%d" % (name, number), 2, [
            "--functions", "allreduce", "--sizes", "1K..16M*8", "--modes", "back-to-back,loop",
            "--calls", "100", "--no-check", "--out-of-place"], mode=None)
        place.release()
        for cell in found["results"] if found else []:
            rows.setdefault((cell["bytes"], cell["mode"]), []).append(cell["time_ns"])
    for size in sorted({key[0] for key in rows}):
        single = sorted(rows.get((size, "back-to-back"), []))
        whole = sorted(rows.get((size, "loop"), []))
        if not single or not whole:
            continue
        ratio = single[len(single) // 2] / whole[len(whole) // 2]
        context.tap.say("%9d bytes: median of single calls %.1f us (%.1f-%.1f in %d runs), loop "
                        "%.1f us (%.1f-%.1f), ratio %.3f" % (
                            size, single[len(single) // 2] / 1e3, single[0] / 1e3, single[-1] / 1e3,
                            len(single), whole[len(whole) // 2] / 1e3, whole[0] / 1e3,
                            whole[-1] / 1e3, ratio))
        context.results.setdefault("bench_loop", []).append({
            "bytes": size, "single_ns": single, "loop_ns": whole, "ratio": ratio})
    context.tap.ok(len(rows) > 0, "%s: both measurements have times" % name)


def steps(context, step):
    """The steps, for gpu_steps.plan()."""
    def all_of(name, need_s, ranks, *rest):
        arguments = ["--functions", "all", "--modes", ",".join(MODES), "--warmup", "2", *rest]
        return step(name, need_s, lambda: correct(context, name, ranks, arguments, FUNCTIONS))

    types = ["--functions", "allreduce,reducescatter,reduce", "--types", TYPES, "--redops", "all",
             "--sizes", "4K", "--calls", "2", "--warmup", "1"]
    return [
        all_of("bench-2-ranks", 20, 2, "--sizes", "1K,1M,32M", "--calls", "8"),
        all_of("bench-4-ranks", 25, 4, "--sizes", "1K,1M", "--calls", "8"),
        all_of("bench-8-ranks", 40, 8, "--sizes", "1K,1M", "--calls", "4"),
        step("bench-types", 20, lambda: correct(context, "bench-types", 2, types,
                                                ("AllReduce", "ReduceScatter", "Reduce"))),
        step("bench-loop", 25, lambda: loop(context, "bench-loop")),
    ]
