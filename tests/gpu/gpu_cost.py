"""Overhead of plugins per release and transport: jobs of all configurations run side by side and alternate, block
by block. A block is many calls of AllReduce of one size; its time is compared with that of the job without a
plugin measured right before or after it. The first calls of a turn do not count: which launches the recorder times
follows from the pace of the last 64, and a job that waits for its turn has paused, so more of them would be timed
than in one that goes on.

The plugin is chosen when a process starts, so processes differ between configurations. Two controls for that:
several sessions with new processes each, and a second job without a plugin, whose ratio should be 1.
"""

import glob
import gzip
import json
import os
import random
import shutil
import time
from collections import defaultdict
from statistics import mean, median

import gpu_inspector
from gpu_fields import timed_share, verified_counts
from gpu_job import Place, environment
from gpu_machine import HERE, capture
from gpu_overhead import Server
from gpu_releases import EVENTS, transport_arguments, transport_settings

KIB, MIB = 1 << 10, 1 << 20
# Alternating. Graphs come last: at the first capture sampling ends for the process.
PHASES = ((("burst", "sync"), 0.65), (("graph",), 0.35))
STYLES = tuple(style for styles, _ in PHASES for style in styles)
# Calls per block by size, about 20 ms, and those before it. Calls are short inside a node, but not over loopback sockets.
CALLS = {
    "node": {KIB: 1300, 64 * KIB: 1200, 256 * KIB: 1000, MIB: 560, 8 * MIB: 150, 64 * MIB: 32},
    "sockets": {KIB: 400, 64 * KIB: 200, 256 * KIB: 80, MIB: 40, 8 * MIB: 6, 64 * MIB: 2},
}
LEAD = {
    "node": {KIB: 192, 64 * KIB: 192, 256 * KIB: 192, MIB: 192, 8 * MIB: 128, 64 * MIB: 128},
    "sockets": {KIB: 192, 64 * KIB: 192, 256 * KIB: 192, MIB: 128, 8 * MIB: 24, 64 * MIB: 2},
}
RANKS = {"node": 4, "sockets": 2}
SESSIONS = 3
LIMIT_S = 165  # per release and transport
COMMS = 4
RESAMPLES = 800
COLL_AND_P2P, COLL_P2P_AND_KERNEL = "0x6", "0x46"
BASELINE, CONTROL, INSPECTOR = "none", "none, again", "NVIDIA Inspector"
# Not the 500 us of its documentation: its threads also run while other jobs are measured.
INSPECTOR_INTERVAL_US = "100000"


class Configuration:
    """A name, the plugin (None: none), the recorder's mode and more settings."""

    def __init__(self, name, plugin=None, mode=None, **settings):
        self.name, self.plugin, self.mode, self.settings = name, plugin, mode, settings


def idle_plugin(context):
    """The plugin that does nothing, built on first use; None if the build fails."""
    out = os.path.join(context.work, "libnccl-profiler-idle.so")
    if not os.path.exists(out):
        code, text = capture([os.environ.get("CC") or shutil.which("gcc") or "cc", "-O2", "-shared",
                              "-fPIC", "-o", out, os.path.join(HERE, "shim", "idle_plugin.c")])
        if code != 0:
            context.tap.say("cannot build the plugin that does nothing: %s" % text)
            return None
    return out


def configurations(context):
    """The configurations to compare. The first is the baseline."""
    found = [Configuration(BASELINE), Configuration(CONTROL)]
    empty = idle_plugin(context)
    if empty:
        found += [Configuration("empty plugin, no events", empty),
                  Configuration("empty plugin, Coll and P2p", empty,
                                EMPTY_PLUGIN_MASK=COLL_AND_P2P)]
    plugin = context.plugin
    found += [Configuration("flight (default)", plugin, "flight"),
              Configuration("flight, times off", plugin, "flight", **EVENTS["off"]),
              Configuration("flight, all timed", plugin, "flight", **EVENTS["all"]),
              Configuration("flight, kernel events", plugin, "flight", **EVENTS["kernel"]),
              Configuration("flight, graphs timed", plugin, "flight", **EVENTS["graphs"]),
              Configuration("trace", plugin, "trace")]
    inspector = context.options.inspector
    if inspector:
        found.append(Configuration(INSPECTOR, os.path.abspath(inspector)))
    return found


def start(context, nccl, transport, configuration, number):
    """The job of a configuration."""
    place = Place(context.work, context.shm, "cost-%s-%s-%d-%s" % (
        nccl["version"], transport, number, "".join(c if c.isalnum() else "-"
                                                    for c in configuration.name)))
    settings = environment(place, configuration.plugin, configuration.mode,
                           context.mps.environment(), is_quiet=True)
    settings.update(transport_settings(transport))
    settings.update(configuration.settings)
    if configuration.name == INSPECTOR:
        settings.update(gpu_inspector.settings(os.path.join(place.directory, "inspector")),
                        NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=INSPECTOR_INTERVAL_US)
    return Server(nccl["driver"], configuration.name, place, settings, max(CALLS[transport]),
                  RANKS[transport], transport_arguments(transport))


def shm_used():
    found = os.statvfs("/dev/shm")
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def shm_mapped(pids):
    """Bytes of /dev/shm that these processes map, each file once, including unlinked ones."""
    files = {}
    for pid in pids:
        try:
            with open("/proc/%d/maps" % pid, encoding="utf-8", errors="replace") as maps:
                for line in maps:
                    words = line.split(None, 5)
                    if len(words) == 6 and words[5].startswith("/dev/shm/"):
                        first, last = (int(part, 16) for part in words[0].split("-"))
                        key = words[3], words[4]
                        files[key] = files.get(key, {})
                        files[key][int(words[2], 16)] = last - first
        except OSError:
            continue
    return sum(sum(parts.values()) for parts in files.values())


def memory_of(server):
    """Mean memory per rank: the processes' own, and /dev/shm of all."""
    answers = server.ask("memory")
    found = {key: mean(answer[key] for answer in answers)
             for key in ("rss_bytes", "anonymous_bytes", "heap_bytes", "threads")}
    found["shm_mapped_bytes"] = shm_mapped([answer["pid"] for answer in answers]) / server.ranks
    return found


def communicators_of(server):
    """COMMS more communicators with one operation each: time and additional memory, per rank and
    communicator."""
    before, shm_before = memory_of(server), shm_used()
    answers = server.ask("comms %d" % COMMS)
    after, shm_after = memory_of(server), shm_used()
    server.ask("close")
    per = {key.replace("_bytes", "") + "_bytes_per_comm": (after[key] - before[key]) / COMMS
           for key in ("rss_bytes", "heap_bytes", "shm_mapped_bytes")}
    per.update(shm_bytes_per_comm=(shm_after - shm_before) / COMMS / server.ranks,
               create_ns=max(answer["create_ns"] for answer in answers),
               first_operation_ns=max(answer["first_ns"] for answer in answers),
               **{"process_" + key: value for key, value in before.items()})
    return per


def blocks_of(transport, styles=STYLES):
    return [(style, size, CALLS[transport][size], 0 if style == "graph" else LEAD[transport][size])
            for size in CALLS[transport] for style in styles]


def session(context, nccl, transport, number, deadline):
    """New processes for all configurations: (samples by (configuration, style, bytes), memory rows, servers)."""
    samples, memory, servers = defaultdict(list), {}, {}
    listed = configurations(context)
    shift = number * 3 % len(listed)
    order = listed[shift:] + listed[:shift]
    rounds = {}
    try:
        for configuration in order:
            servers[configuration.name] = start(context, nccl, transport, configuration, number)
        for name, server in servers.items():
            for style, size, calls, _ in blocks_of(transport, PHASES[0][0]):
                server.block(style, size, max(1, calls // 16))
        for name, server in servers.items():
            memory[name] = communicators_of(server)
        context.tap.say("cost %s %s: session %d: %d jobs are warm" % (
            nccl["version"], transport, number + 1, len(servers)))
        whole_s, until = deadline - time.monotonic(), time.monotonic()
        for styles, share in PHASES:
            until += share * whole_s
            rounds[styles] = rounds_play(order, servers, blocks_of(transport, styles), until, samples)
        for server in servers.values():
            server.quit()
    finally:
        for server in servers.values():
            server.end()
    return samples, memory, {c.name: (c, servers[c.name]) for c in order}, rounds


def rounds_play(order, servers, blocks, until, samples):
    """Rounds until then, at least one: every block with every configuration. Returns the number of rounds."""
    for style, size, calls, _ in blocks:
        if style == "graph":  # captured here
            for configuration in order:
                servers[configuration.name].block(style, size, 1)
    rounds = 0
    while rounds == 0 or time.monotonic() < until:
        for style, size, calls, lead in blocks:
            turn = rounds % len(order)
            for configuration in order[turn:] + order[:turn]:
                samples[configuration.name, style, size].append(
                    servers[configuration.name].block(style, size, calls, lead))
        rounds += 1
    return rounds


def counts_wrong(context, nccl, transport, servers, memory):
    """Checks recorded = called in these jobs; replays inside a node may be hidden. The number of timed operations goes
    into the memory rows."""
    wrong = []
    for configuration, server in servers.values():
        if configuration.mode:
            files = server.place.recorded(configuration.mode)
            _, text, _ = context.tool.verify(files)
            counted = verified_counts(text)
            memory[configuration.name]["timed_share"] = timed_share(text)
            for pid, eager in (server.issued or {}).items():
                least = eager + (server.captured[pid] if nccl["number"] >= 22800 else 0)
                most = least + server.replayed[pid]
                if transport != "node":
                    least = most
                issued, got, lost = counted.get(pid, (None, None, None))
                if issued is None or not least <= issued <= most or got != issued or lost:
                    wrong.append("%s, pid %d: %d to %d called, the recording has issued, recorded and "
                                 "lost %s" % (configuration.name, pid, least, most,
                                              counted.get(pid)))
        server.place.release()
    return wrong


def interval(sessions, estimate, generator, resamples=RESAMPLES):
    """The middle 95% over resampled sessions and rounds within them; sessions: lists of ratios."""
    drawn = sorted(estimate([ratio for own in generator.choices(sessions, k=len(sessions))
                             for ratio in generator.choices(own, k=len(own))])
                   for _ in range(resamples))
    return [drawn[int(0.025 * resamples)], drawn[int(0.975 * resamples) - 1]]


def trimmed_mean(ratios):
    """Without the outermost 1% at either end: one preempted block must not decide, sampling windows must
    count."""
    ordered = sorted(ratios)
    cut = len(ordered) // 100
    return mean(ordered[cut:len(ordered) - cut])


def rows_of(all_samples, transport, names, seed=1):
    """One row per size, style and configuration: ratios of blocks to the baseline's block of the same round."""
    rows = []
    generator = random.Random(seed)
    for style, size, _, _ in blocks_of(transport):
        for name in names[1:]:
            sessions, host, with_ns, without_ns = [], [], [], []
            for samples in all_samples:
                pairs = list(zip(samples.get((BASELINE, style, size), ()),
                                 samples.get((name, style, size), ())))
                if pairs:
                    sessions.append([b["call_ns"] / a["call_ns"] for a, b in pairs])
                    host += [b["host_ns"] / max(1, a["host_ns"]) for a, b in pairs]
                    without_ns += [a["call_ns"] for a, _ in pairs]
                    with_ns += [b["call_ns"] for _, b in pairs]
            if not sessions:
                continue
            ratios = [ratio for own in sessions for ratio in own]
            rows.append({"style": style, "bytes": size, "configuration": name,
                         "sessions": len(sessions), "rounds": len(ratios),
                         "without_ns": median(without_ns), "with_ns": median(with_ns),
                         "ratio": median(ratios), "interval": interval(sessions, median, generator),
                         "mean_ratio": trimmed_mean(ratios),
                         "mean_interval": interval(sessions, trimmed_mean, generator, RESAMPLES // 2),
                         "host_ratio": median(host)})
    return rows


def memory_rows(all_memory, names):
    """Medians over sessions."""
    return [{"configuration": name, **{key: median(own[name][key] or 0 for own in all_memory)
                                       for key in all_memory[0][name]}}
            for name in names if all_memory and name in all_memory[0]]


def cost_job(context, nccl, transport):
    """All sessions of a release and transport."""
    tap = context.tap
    name = "%s-%s-cost" % (nccl["version"], transport)
    names = [configuration.name for configuration in configurations(context)]
    limit_s = min(LIMIT_S, context.clock.left() - 10)
    began = time.monotonic()
    all_samples, all_memory, complaints = [], [], []
    for number in range(SESSIONS):
        left_s = limit_s - (time.monotonic() - began)
        if number and left_s < 15:
            break
        deadline = time.monotonic() + left_s / (SESSIONS - number)
        try:
            samples, memory, servers, rounds = session(context, nccl, transport, number, deadline)
        except (OSError, EOFError, ValueError, KeyError) as error:
            complaints.append("session %d: %s: %s" % (number + 1, type(error).__name__, error))
            failed(context, nccl, transport, number)
            break
        tap.say("%s: session %d: rounds %s" % (name, number + 1, ", ".join(
            "%s %d" % ("+".join(styles), count) for styles, count in rounds.items())))
        all_samples.append(samples)
        all_memory.append(memory)
        complaints += counts_wrong(context, nccl, transport, servers, memory)
    rows = rows_of(all_samples, transport, names)
    tap.ok(bool(rows) and not complaints, "%s: %d sessions, %d configurations, %.0f s" % (
        name, len(all_samples), len(names), time.monotonic() - began), complaints)
    for row in rows:
        if row["style"] == "burst":
            tap.say("%s: %9d bytes %-28s %8.1f -> %8.1f us, ratio %.3f (%.3f-%.3f), mean %.3f" % (
                name, row["bytes"], row["configuration"], row["without_ns"] / 1e3,
                row["with_ns"] / 1e3, row["ratio"], *row["interval"], row["mean_ratio"]))
    with gzip.open(os.path.join(context.results_directory, "cost-%s-%s.json.gz" % (
            nccl["version"], transport)), "wt", encoding="ascii") as file:
        json.dump([{" | ".join(map(str, key)): [(block["call_ns"], block["host_ns"])
                                                for block in blocks]
                    for key, blocks in samples.items()} for samples in all_samples], file)
    where = {"nccl": nccl["version"], "transport": transport, "ranks": RANKS[transport]}
    context.results["cost"] += [{**where, **row} for row in rows]
    context.results["cost_memory"] += [{**where, **row} for row in memory_rows(all_memory, names)]


def failed(context, nccl, transport, number):
    """The jobs' output, and a new MPS daemon for the following steps."""
    for directory in sorted(glob.glob(os.path.join(context.work, "cost-%s-%s-%d-*" % (
            nccl["version"], transport, number)))):
        for path in sorted(glob.glob(directory + "/*.log"))[:2]:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read().strip()
            if text:
                context.tap.say(os.path.relpath(path, context.work) + ":")
                context.tap.show(text, 4)
    context.mps.restart()
