"""The check's output (TAP) and results (JSON, Markdown, logs)."""

import json
import os
import re
import sys
import tarfile
import time

LINES_SHOWN = 60
LOGS_BYTES = 12 << 20  # packed


class Clock:
    """Time since the start, and what is left of the budget."""

    def __init__(self, budget_s):
        self.started = time.monotonic()
        self.budget_s = budget_s

    def elapsed(self):
        return time.monotonic() - self.started

    def left(self):
        return self.budget_s - self.elapsed()


class Tap:
    """TAP on standard output and in a file, with progress in between."""

    def __init__(self, clock, path):
        self.clock = clock
        self.file = open(path, "w", encoding="utf-8")
        self.count = self.failed = self.skipped = 0
        self.is_heard = True
        self.failures = []

    def _line(self, text):
        """A closed pipe must not keep us from cleaning up."""
        try:
            if self.is_heard:
                print(text, flush=True)
        except BrokenPipeError:
            self.is_heard = False
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        self.file.write(text + "\n")
        self.file.flush()

    def say(self, text):
        for line in str(text).splitlines() or [""]:
            self._line("# [%6.1f s] %s" % (self.clock.elapsed(), line))

    def show(self, text, most=LINES_SHOWN):
        """The end of a program's output."""
        lines = str(text).splitlines()
        if len(lines) > most:
            self._line("#   ... %d lines before" % (len(lines) - most))
        for line in lines[-most:]:
            self._line("#   " + line[:400])

    def ok(self, is_ok, what, problems=()):
        self.count += 1
        what = re.sub(r"[#\n]", " ", what)
        self._line("%sok %d - %s" % ("" if is_ok else "not ", self.count, what))
        if not is_ok:
            self.failed += 1
            self.failures.append("%d - %s" % (self.count, what))
            self.show("\n".join(problems), 20)
        return is_ok

    def skip(self, what, why):
        self.count += 1
        self.skipped += 1
        self._line("ok %d - %s # SKIP %s" % (self.count, what, why))

    def end(self, is_cut=False):
        self._line("Bail out!  cut short" if is_cut else "1..%d" % self.count)
        for failure in self.failures:
            self._line("# failed: " + failure)
        self._line("# %s: %d tests, %d failed, %d skipped, %.0f s" % (
            "FAIL" if self.failed or is_cut else "PASS", self.count, self.failed, self.skipped,
            self.clock.elapsed()))
        self.file.close()
        return 1 if self.failed or is_cut else 0


def write_json(path, results):
    temporary = path + ".new"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1, sort_keys=True, default=str)
        file.write("\n")
    os.replace(temporary, path)


def pack_logs(path, directories):
    """Logs, traces, calls and dumps of failed jobs; limited in size."""
    with tarfile.open(path, "w:gz", compresslevel=4) as archive:
        for directory in directories:
            for base, _, names in os.walk(directory):
                for name in sorted(names):
                    file = os.path.join(base, name)
                    if (name.startswith("id-") or not os.path.isfile(file)
                            or os.path.getsize(path) + os.path.getsize(file) // 4 > LOGS_BYTES):
                        continue
                    archive.add(file, os.path.relpath(file, os.path.dirname(directory)))


def _same(values):
    """'12' if all ranks agree, otherwise all values."""
    values = list(values)
    return str(values[0]) if len(set(values)) == 1 else " ".join(map(str, values))


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join(" --- " for _ in head) + "|"]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def _machine_lines(results):
    machine = results["machine"]
    rows = [(key, machine[key]) for key in sorted(machine) if not isinstance(machine[key], dict)]
    return ["# Recorded and called operations, on real NCCL", "",
            "Made by `%s` in %.0f s. %d tests, %d failed, %d skipped." % (
                results["command"], results["seconds"], results["tests"], results["failed"],
                results["skipped"]), ""] + table(("", ""), rows)


def _job_lines(job):
    lines = ["## %s" % job["name"], "",
             "NCCL %s, %d ranks, mode `%s`, %.1f s, %s. Counts are per rank; one number if all "
             "ranks agree." % (job["nccl"], job["ranks"], job["mode"], job["seconds"],
                                       job["outcome"]), ""]
    rows = []
    for case in job["cases"]:
        ranks = case["per_rank"]
        rows.append([case["kind"], case["style"]] + [
            _same(rank[key] for rank in ranks)
            for key in ("issued", "recorded", "captured", "recorded_captured", "replayed",
                        "recorded_replayed", "timed", "untrusted", "lost")] +
            ["yes" if case["is_complete"] else "**no**"])
    return lines + table(("case", "style", "issued", "recorded", "captured", "recorded",
                           "replays", "recorded", "timed", "untrusted", "lost", "complete"), rows)


def _ratio_lines(job):
    """GPU time divided by CUDA event time, over all ranks."""
    kinds = {}
    for ratio in job["ratios"]:
        kinds.setdefault((ratio["kind"], ratio["style"]), []).append(ratio)
    rows = [(kind, style, sum(r["calls"] for r in ratios),
             "%.3f to %.3f" % (min(r["median"] for r in ratios), max(r["median"] for r in ratios)))
            for (kind, style), ratios in kinds.items()]
    if not rows:
        return []
    return ["Recorded GPU time divided by the time between CUDA events: the ranks' medians.", ""] + \
        table(("case", "style", "calls", "ratio"), rows)


def _us(value):
    return "" if value is None else "%.1f" % (value / 1000)


def _times_lines(job):
    rows = [(row["kind"], row["style"], row["function"], row["bytes"], row["datatype"],
             row["calls"], _us(row["host_ns"]), _us(row["event_ns"]), _us(row["gpu_ns"]))
            for row in job["times"]]
    if not rows:
        return []
    return ["Median times on rank 0 in microseconds: in the call (or its whole group), between CUDA"
            " events, as recorded from GPU timestamps.", ""] + table(
                ("case", "style", "function", "bytes", "datatype", "calls", "call", "events",
                 "recorded"), rows)


def _overhead_lines(rows):
    if not rows:
        return []
    lines = ["## Cost", "", "AllReduce over 2 ranks; medians in microseconds; ratio to the job "
             "without the plugin with a 95% interval (bootstrap over sessions and rounds). `call` "
             "is the total of a synchronized call, or the time per call back to back; `in call` is "
             "the part inside `ncclAllReduce`.", ""]
    return lines + table(
        ("bytes", "style", "plugin", "rounds", "call, without", "call, with", "ratio", "interval",
         "in call, without", "in call, with", "ratio", "interval"),
        [(row["bytes"], row["style"], row["variant"], row["rounds"],
          _us(row["call"]["without_ns"]), _us(row["call"]["with_ns"]),
          "%.3f" % row["call"]["ratio"], "%.3f to %.3f" % tuple(row["call"]["interval"]),
          _us(row["host"]["without_ns"]), _us(row["host"]["with_ns"]),
          "%.3f" % row["host"]["ratio"], "%.3f to %.3f" % tuple(row["host"]["interval"]))
         for row in rows])


def _ddp_lines(jobs):
    lines = []
    for job in jobs:
        lines += ["## %s" % job["name"], "", "PyTorch %s, NCCL %s, %d ranks, mode `%s`, %.1f s, %s."
                  % (job.get("torch", "?"), job.get("nccl", "?"), job["ranks"], job["mode"],
                     job["seconds"], job["outcome"]), ""]
        lines += table(("rank", "what", "issued", "recorded", "equal"),
                        [(row["rank"], row["what"], row["issued"], row["recorded"],
                          "yes" if row["is_equal"] else "**no**") for row in job["rows"]])
    return lines


def _inspector_lines(rows):
    """The fate of each operation in the log requested by Inspector's variables."""
    if not rows:
        return []
    fates = sorted({fate for row in rows for fate in row["account"]} - {"lines", "lost"})
    return ["## Replacing NCCL Inspector", "",
            "NCCL %s with `NCCL_INSPECTOR_ENABLE=1`: the plugin writes Inspector's log." % rows[0]["nccl"], ""] + table(
                ["rank", "operations", "lines"] + fates + ["lost"],
                [[row["rank"], row["operations"], row["account"]["lines"]] +
                 [row["account"].get(fate, 0) for fate in fates] + [row["account"]["lost"]]
                 for row in rows])


def _failure_lines(failures):
    return ["Failed:", ""] + ["- " + text for text in failures] + [""] if failures else []


def _bench_lines(results):
    lines = []
    if results.get("bench"):
        lines = ["## ringside bench", ""] + table(
            ("job", "ranks", "cells", "wrong elements", "cells not checked"),
            [(job["name"], job["ranks"], job["cells"], job["wrong"], job["unchecked"])
             for job in results["bench"]])
    if results.get("bench_loop"):
        lines += ["Median of single calls, back to back, compared with a loop as in nccl-tests, in several "
                  "runs (us): AllReduce, 2 ranks.", ""] + table(
            ("bytes", "single", "least to most", "loop", "least to most", "ratio"),
            [(row["bytes"], _us(_middle(row["single_ns"])),
              "%s to %s" % (_us(row["single_ns"][0]), _us(row["single_ns"][-1])),
              _us(_middle(row["loop_ns"])),
              "%s to %s" % (_us(row["loop_ns"][0]), _us(row["loop_ns"][-1])),
              "%.3f" % row["ratio"]) for row in results["bench_loop"]])
    return lines


def _middle(values):
    return values[len(values) // 2]


def write_markdown(path, results):
    lines = _machine_lines(results) + _failure_lines(results.get("failures"))
    for job in results["jobs"]:
        lines += _job_lines(job)
    lines += _inspector_lines(results.get("inspector")) + _bench_lines(results)
    lines += _ddp_lines(results["ddp"]) + _overhead_lines(results["overhead"])
    for job in results["jobs"][:1]:
        lines += ["## Times, %s" % job["name"], ""] + _ratio_lines(job) + _times_lines(job)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines).rstrip() + "\n")
