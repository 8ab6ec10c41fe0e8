"""The matrix's pages: completeness per release, hangs that were diagnosed, overhead. Made from one run or
merged from several; if a cell ran twice, the later run counts."""

import json
import os

from gpu_report import table, write_json

RANKS = (2, 4, 8)
SCENES = ("skip", "size", "datatype", "stop", "kill", "gpu", "deadlock", "calm")
# Keys by which results of several runs are merged.
KEYS = {
    "matrix": ("nccl", "transport", "ranks", "events"),
    "scenes": ("nccl", "transport", "events", "scene"),
    "endings": ("nccl", "transport", "ranks", "events", "what"),
    "torch": ("release", "transport", "program", "events"),
    "cost": ("nccl", "transport", "configuration", "style", "bytes"),
    "cost_memory": ("nccl", "transport", "configuration"),
    "accuracy": ("nccl", "transport"),
    "releases": ("nccl",),
}
RELEASES_PAGE, COST_PAGE = "nccl-releases", "cost"


def merged(runs):
    """Merges the results of several runs, in order of time."""
    runs = sorted(runs, key=lambda run: str(run.get("when", "")))
    out = {"machine": runs[-1].get("machine", {}), "commands": [], "failures": []}
    for name, fields in KEYS.items():
        kept = {}
        for run in runs:
            for entry in run.get(name, []):
                kept[tuple(str(entry.get(field)) for field in fields)] = entry
        out[name] = sorted(kept.values(), key=lambda entry: [
            _sortable(entry.get(field)) for field in fields])
    for run in runs:
        out["commands"].append({"command": run.get("command"), "when": run.get("when"),
                                "seconds": run.get("seconds"), "tests": run.get("tests"),
                                "failed": run.get("failed"), "skipped": run.get("skipped")})
        out["failures"] += run.get("failures") or []
    return out


def _sortable(value):
    """Sorts releases by number."""
    if isinstance(value, (int, float)):
        return (0, value, "")
    parts = str(value).split(".")
    if all(part.isdigit() for part in parts):
        return (0, sum(int(part) * 10000 ** -index for index, part in enumerate(parts)), "")
    return (1, 0, str(value))


def merge(paths, output, suffix):
    """--merge: the pages and merged.json in a directory."""
    runs = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            runs.append(json.load(file))
    os.makedirs(output, exist_ok=True)
    written = write_pages(output, runs, suffix)
    write_json(os.path.join(output, "merged.json"), {**merged(runs), "runs": len(runs)})
    for path in written:
        print(path)
    return 0 if written else 1


def write_pages(directory, runs, suffix=""):
    """Writes both pages if there is data for them. Returns their paths."""
    results, written = merged(runs), []
    tail = ("-" + suffix if suffix else "") + ".md"
    pages = [(RELEASES_PAGE, releases_page(results)
              if any(results[name] for name in ("matrix", "scenes", "endings", "torch", "accuracy"))
              else None),
             (COST_PAGE, cost_page(results) if results["cost"] else None)]
    for name, lines in pages:
        if lines:
            path = os.path.join(directory, name + tail)
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(lines).rstrip() + "\n")
            written.append(path)
    return written


def _head(title, results):
    machine = results["machine"]
    rows = [(key, machine[key]) for key in ("gpu", "driver", "cuda_driver", "cpu", "cores", "kernel",
                                            "mps", "python") if key in machine]
    lines = ["# " + title, "", "Made by:", ""]
    for run in results["commands"]:
        lines.append("- `%s` (%s, %.0f s: %s tests, %s failed, %s skipped)" % (
            run["command"], str(run["when"])[:10], run["seconds"] or 0, run["tests"], run["failed"],
            run["skipped"]))
    return lines + [""] + table(("", ""), rows)


def _blind(entry):
    return ", ".join("`%s` %d" % item for item in sorted((entry.get("blind") or {}).items()))


def _cell_words(entry):
    """A cell of the short table."""
    if entry is None:
        return ""
    if not entry["is_complete"]:
        return "**%s**" % ("not complete" if entry.get("eager") is not None else entry["outcome"])
    hidden = sum((entry.get("blind") or {}).values())
    return "complete" if not hidden else "complete, %d blind" % hidden


def _matrix_lines(results):
    cells = results["matrix"]
    if not cells:
        return []
    by_key = {(c["nccl"], c["transport"], c["ranks"], c["events"]): c for c in cells}
    rows = []
    for nccl, transport, events in _unique((c["nccl"], c["transport"], c["events"]) for c in cells):
        own = [by_key.get((nccl, transport, ranks, events)) for ranks in RANKS]
        kernel = {c.get("kernel_events") for c in own if c} - {None}
        rows.append([nccl, transport, events, ", ".join(sorted(kernel))]
                    + [_cell_words(cell) for cell in own])
    lines = ["## Recorded and called operations", "",
             "`complete`: every eager call and every replay of a CUDA graph has exactly one record with the "
             "right function, size and peer, or a blind spot hides it; their number is given, their names "
             "are in the second table. `kernel` is what the recordings say of kernel events.", ""]
    lines += table(["NCCL", "transport", "events", "kernel"] + ["%d ranks" % n for n in RANKS], rows)
    return lines + ["Counts over all ranks.", ""] + table(
        ("NCCL", "interface", "transport", "ranks", "events", "kernel", "eager", "recorded", "captured",
         "recorded", "replays", "recorded", "blind", "GPU times", "rejected", "through", "more settings"),
        [(c["nccl"], ", ".join("v%s" % v for v in c.get("interface", [])), c["transport"], c["ranks"],
          c["events"], c.get("kernel_events", ""), c.get("eager", ""), c.get("recorded_eager", ""),
          c.get("captured", ""), c.get("recorded_captured", ""), c.get("replays", ""),
          c.get("recorded_replays", ""), _blind(c), c.get("gpu_timed", ""), c.get("untrusted", ""),
          ", ".join(sorted(c.get("via") or {})),
          ", ".join("`%s=%s`" % item for item in sorted((c.get("settings") or {}).items())))
         for c in cells]) + _cell_problem_lines(cells) + _sampled_lines(cells)


def _cell_problem_lines(cells):
    wrong = [c for c in cells if not c["is_complete"]]
    if not wrong:
        return []
    return ["Not complete:", ""] + ["- %s %s, %s ranks, events %s: %s" % (
        c["nccl"], c["transport"], c["ranks"], c["events"], "; ".join(c["problems"][:3])[:400])
        for c in wrong] + [""]


def _sampled_lines(cells):
    rows = [(c["nccl"], c["transport"], c["ranks"], c["events"], c["sampled_on_all"],
             c["sampled_on_some"]) for c in cells if c.get("sampled_on_some") is not None]
    if not rows:
        return []
    return ["Sampled: collectives that all ranks of the communicator timed, and that only some did.",
            ""] + table(("NCCL", "transport", "ranks", "events", "all ranks", "some ranks"), rows)


def _unique(values):
    return list(dict.fromkeys(values))


def _scene_words(entry):
    if entry is None:
        return ""
    if not entry["is_right"]:
        return "**%s**" % (entry["told"] or "not run")
    return "blind spot" if entry.get("blind") else "yes"


def _scene_lines(results):
    scenes = results["scenes"]
    if not scenes:
        return []
    by_key = {(s["nccl"], s["transport"], s["events"], s["scene"]): s for s in scenes}
    rows = []
    for key in _unique((s["nccl"], s["transport"], s["events"]) for s in scenes):
        own = [by_key.get(key + (scene,)) for scene in SCENES]
        kernel = {s.get("kernel_events") for s in own if s} - {None}
        rows.append(list(key) + [", ".join(sorted(kernel))] + [_scene_words(s) for s in own])
    lines = ["## Hangs", "",
             "`yes`: the doctor named cause and rank while the job hung, and no other rank (`calm`: "
             "nothing is wrong and nothing was reported). `blind spot`: without kernel events nothing shows "
             "inside a node that a GPU has not started its kernel; no rank was named. Anything else is what "
             "was reported instead.", ""]
    lines += table(["NCCL", "transport", "events", "kernel"] + list(SCENES), rows)
    wrong = [s for s in scenes if not s["is_right"]]
    if wrong:
        lines += ["Not as wanted:", ""] + [
            "- %s %s, events %s, `%s`: wanted `%s`; %s" % (
                s["nccl"], s["transport"], s["events"], s["scene"], s["wanted"],
                "; ".join(s["wrong"])[:300]) for s in wrong] + [""]
    return lines


def _ending_lines(results):
    entries = results["endings"]
    if not entries:
        return []
    rows = [(e["nccl"], e["transport"], e["ranks"], e["events"], e["what"], e.get("kernel_events", ""),
             "%s, %.1f s" % (e["outcome"], e["seconds"]), e.get("without") or "",
             e.get("idle_plugin") or "",
             _blind(e), "demonstration" if e["is_demo"] else "yes" if e["is_good"] else "**no**")
            for e in entries]
    return ["## Does the job end?", "",
            "`split-graph`: a Broadcast of a split communicator in a CUDA graph, then `ncclCommDestroy`. With "
            "kernel events NCCL 2.29 and later may never return from it; that test is ended after a few "
            "seconds. `windows`: collectives while sampling switches kernel events on and off, then captures, "
            "sends to itself and grouped broadcasts.", ""] + table(
                ("NCCL", "transport", "ranks", "events", "job", "kernel", "with the plugin",
                 "without the plugin", "with a plugin that does nothing", "blind", "good"), rows)


def _torch_lines(results):
    entries = results["torch"]
    if not entries:
        return []
    return ["## PyTorch", ""] + table(
        ("NCCL", "transport", "job", "PyTorch", "ranks", "events", "outcome", "without the plugin",
         "recorded = issued"),
        [(e["release"], e["transport"], e["program"].split(".")[0], e["torch"], e["ranks"], e["events"],
          e["outcome"], e.get("without") or "", "yes" if e.get("is_complete") else "**no**") for e in entries])


def _us(value):
    return "" if value is None else "%.1f" % (value / 1000)


def _share(value):
    return "" if value is None else "%.1f %%" % (100 * value)


def _accuracy_lines(results):
    entries = results["accuracy"]
    if not entries:
        return []
    lines = ["## Sampling compared with timing every call", "",
             "The same job twice: with kernel events for every call, and sampled. One rank is always late. Times in "
             "microseconds.", ""]
    lines += table(
        ("NCCL", "transport", "operation", "bytes", "timed", "sampled", "median", "sampled", "difference",
         "p99", "sampled", "difference"),
        [(e["nccl"], e["transport"], d["function"], d["bytes"], d["timed"], d["sampled"],
          _us(d["median_ns"]), _us(d["sampled_median_ns"]), _share(d["median_difference"]),
          _us(d["p99_ns"]), _us(d["sampled_p99_ns"]), _share(d["p99_difference"]))
         for e in entries for d in e["differences"]])
    return lines + table(
        ("NCCL", "transport", "events", "operations", "timed", "collectives timed on all ranks",
         "on some only", "waiting", "straggler", "last in", "report: waiting", "report: straggler"),
        [(e["nccl"], e["transport"], way, e[way]["operations"], e[way]["timed"],
          e[way]["sampled_on_all"], e[way]["sampled_on_some"], _share(e[way]["waiting"]["wait_share"]),
          "rank %s" % e[way]["waiting"]["straggler"], _share(e[way]["waiting"]["straggler_share"]),
          _share(e[way]["report"].get("wait_share")), "rank %s" % e[way]["report"].get("straggler"))
         for e in entries for way in ("kernel", "default") if way in e])


def releases_page(results):
    lines = _head("NCCL releases on real hardware", results)
    if results["failures"]:
        lines += ["Failed:", ""] + ["- " + text for text in results["failures"][:40]] + [""]
    return (lines + _matrix_lines(results) + _scene_lines(results) + _ending_lines(results)
            + _torch_lines(results) + _accuracy_lines(results))


def _size(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return "%d %s" % (size // unit, name)
    return "%d B" % size


def _kib(value):
    return "" if value is None else "%.0f" % (value / 1024)


STYLE_WORDS = {"burst": "back to back", "sync": "synchronised", "graph": "CUDA graph"}


def _cost_tables(results, nccl, transport):
    rows = [r for r in results["cost"] if (r["nccl"], r["transport"]) == (nccl, transport)]
    by_key = {(r["style"], r["bytes"], r["configuration"]): r for r in rows}
    # Not alphabetical: the baseline's control first.
    names = _unique(r["configuration"] for r in sorted(rows, key=_configuration_order))
    first = rows[0]
    lines = ["## NCCL %s, %s, %d ranks" % (
        nccl, "inside one node" if transport == "node" else "over sockets", first["ranks"]), "",
        "%d rounds in %d sessions." % (max(r["rounds"] for r in rows), max(r["sessions"] for r in rows)),
        ""]
    for style, words in STYLE_WORDS.items():
        sizes = sorted({r["bytes"] for r in rows if r["style"] == style})
        if not sizes:
            continue
        body = []
        for size in sizes:
            cells = [by_key.get((style, size, name)) for name in names]
            without = next((c["without_ns"] for c in cells if c), None)
            body.append([_size(size), _us(without)] + [
                "%.3f (%.3f to %.3f)" % (c["ratio"], *c["interval"]) if c else "" for c in cells])
        lines += ["AllReduce, %s: without a plugin in us, then ratios." % words, ""]
        lines += table(["size", "none, us"] + names, body)
    sampled = [r for r in rows if "sampled" in r["configuration"] and r["style"] == "burst"]
    if sampled:
        lines += ["Sampled, back to back, mean instead of median (a window is too rare for a median to show it).",
                  ""] + table(("size", "ratio of means", "interval"), [
                      (_size(r["bytes"]), "%.3f" % r["mean_ratio"], "%.3f to %.3f" % tuple(
                          r["mean_interval"])) for r in sorted(sampled, key=lambda r: r["bytes"])])
    return lines + _memory_lines(results, nccl, transport, names)


def _configuration_order(row):
    words = ("none", "empty plugin, no", "empty plugin, Coll", "flight (",
             "flight, no heartbeat", "flight, times off", "flight, sampled",
             "flight, kernel", "flight, graphs", "trace", "full", "NVIDIA")
    return next((index for index, word in enumerate(words)
                 if row["configuration"].startswith(word)), len(words))


def _memory_lines(results, nccl, transport, names):
    rows = sorted((r for r in results["cost_memory"]
                   if (r["nccl"], r["transport"]) == (nccl, transport)), key=_configuration_order)
    if not rows:
        return []
    return ["Per rank, after the first operations; KiB, and milliseconds. `per communicator` is what each further "
            "communicator adds with its first operation.", ""] + table(
                ("configuration", "operations timed", "process RSS", "heap", "/dev/shm mapped", "threads",
                 "RSS per communicator", "heap per communicator", "/dev/shm per communicator",
                 "create, ms", "first operation, ms"),
                [(r["configuration"], _share(r.get("timed_share")), _kib(r["process_rss_bytes"]),
                  _kib(r["process_heap_bytes"]),
                  _kib(r["process_shm_mapped_bytes"]), "%.0f" % r["process_threads"],
                  _kib(r["rss_bytes_per_comm"]), _kib(r["heap_bytes_per_comm"]),
                  _kib(r["shm_bytes_per_comm"]), "%.1f" % (r["create_ns"] / 1e6),
                  "%.1f" % (r["first_operation_ns"] / 1e6)) for r in rows])


def cost_page(results):
    lines = _head("Overhead on real hardware", results)
    lines += ["Jobs of all configurations run side by side and alternate, block by block. A ratio is the "
              "median over rounds of a block's time to that of the job without a plugin in the same round, with a "
              "95% interval (bootstrap over sessions and rounds). `none, again` is a second job without a "
              "plugin: the difference of its ratio from 1 is the error due to different processes.", "",
              "Ranks share one GPU under MPS and the host's cores, which makes host overhead look larger "
              "than with a separate GPU and cores for each rank.", ""]
    for nccl, transport in _unique((r["nccl"], r["transport"]) for r in results["cost"]):
        lines += _cost_tables(results, nccl, transport)
    return lines
