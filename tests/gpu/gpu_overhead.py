"""Overhead of the plugin: jobs with and without it run side by side and alternate, block by
block, so that other changes on the host affect both."""

import json
import os
import random
import select
import subprocess
import time
from collections import defaultdict
from statistics import median

from gpu_job import Place, end_job, environment

# (style, bytes, calls in a block)
BLOCKS = [("sync", 1 << 10, 150), ("sync", 64 << 10, 100), ("sync", 1 << 20, 40),
          ("sync", 32 << 20, 5), ("burst", 1 << 10, 300), ("burst", 64 << 10, 200),
          ("burst", 1 << 20, 60), ("burst", 32 << 20, 6)]
VARIANTS = ["none", "flight", "trace"]
ANSWER_S = 40
RESAMPLES = 2000


class Server:
    """A job that runs blocks on command."""

    def __init__(self, driver, variant, place, settings, largest, ranks=2, arguments=()):
        self.place, self.variant, self.ranks, self.issued = place, variant, ranks, None
        self.captured, self.replayed = {}, {}
        with open(os.path.join(place.directory, "launcher.log"), "wb") as log:
            self.process = subprocess.Popen(
                [driver, "serve", "--ranks", str(ranks), "--out", place.directory, "--big",
                 str(largest), *arguments], env=settings, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, start_new_session=True)
        self.pending = b""

    def _line(self, deadline):
        while b"\n" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise TimeoutError("the %s job did not answer within %d s" % (self.variant,
                                                                              ANSWER_S))
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise EOFError("the %s job ended" % self.variant)
            self.pending += data
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(line)

    def ask(self, command):
        """Sends one line to all ranks and returns all answers."""
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        deadline = time.monotonic() + ANSWER_S
        return [self._line(deadline) for _ in range(self.ranks)]

    def block(self, style, size, calls, lead=0):
        answers = self.ask("%s %d %d %d" % (style, size, calls, lead))
        return {"call_ns": max(a["call_ns"] for a in answers),
                "host_ns": max(a["host_ns"] for a in answers)}

    def quit(self):
        answers = self.ask("quit")
        self.issued, self.captured, self.replayed = (
            {answer["pid"]: answer[key] for answer in answers}
            for key in ("issued", "captured", "replayed"))
        self.process.stdin.close()
        return self.process.wait(timeout=20)

    def end(self):
        if self.process.poll() is None:
            end_job(self.process, self.place.directory)


def session(number, driver, plugin, work, shm, mps, rounds, deadline, say):
    """One set of jobs: samples as {(variant, style, bytes): [block, ...]}, and the servers."""
    samples = defaultdict(list)
    shift = number % len(VARIANTS)
    order = VARIANTS[shift:] + VARIANTS[:shift]
    servers = {}
    try:
        for variant in order:
            place = Place(work, shm, "overhead-%d-%s" % (number, variant))
            mode = None if variant == "none" else variant
            settings = environment(place, plugin if mode else None, mode, mps, is_quiet=True)
            servers[variant] = Server(driver, variant, place, settings,
                                      max(size for _, size, _ in BLOCKS))
        for style, size, calls in BLOCKS:
            for variant in order:
                servers[variant].block(style, size, max(4, calls // 8))
        say("overhead session %d: jobs are warm" % (number + 1))
        for index in range(rounds):
            if time.monotonic() > deadline:
                say("overhead session %d: out of time after %d rounds" % (number + 1, index))
                break
            for style, size, calls in BLOCKS:
                turn = (index + number) % len(order)
                for variant in order[turn:] + order[:turn]:
                    samples[variant, style, size].append(
                        servers[variant].block(style, size, calls))
        for variant in order:
            servers[variant].quit()
    finally:
        for server in servers.values():
            server.end()
    return samples, servers


def _resample(sessions, generator):
    """Resamples sessions, and rounds within each: both sides keep their pairs."""
    without, with_plugin = [], []
    for pairs in generator.choices(sessions, k=len(sessions)):
        for left, right in generator.choices(pairs, k=len(pairs)):
            without.append(left)
            with_plugin.append(right)
    return median(with_plugin) / median(without)


def ratio_of(sessions, seed=1):
    """Ratio of medians with a 95% interval; sessions: lists of (without, with) in ns."""
    sessions = [pairs for pairs in sessions if pairs]
    if not sessions:
        return None
    generator = random.Random(seed)
    ratios = sorted(_resample(sessions, generator) for _ in range(RESAMPLES))
    without = median(left for pairs in sessions for left, _ in pairs)
    with_plugin = median(right for pairs in sessions for _, right in pairs)
    return {"without_ns": without, "with_ns": with_plugin, "ratio": with_plugin / without,
            "interval": [ratios[int(0.025 * RESAMPLES)], ratios[int(0.975 * RESAMPLES)]]}


def rows_of(all_samples):
    """One row per size, style and variant, from the samples of all sessions."""
    rows = []
    for style, size, _ in BLOCKS:
        for variant in VARIANTS[1:]:
            row = {"style": style, "bytes": size, "variant": variant}
            for name, field in (("call", "call_ns"), ("host", "host_ns")):
                sessions = [
                    [(a[field], b[field]) for a, b in zip(samples["none", style, size],
                                                         samples[variant, style, size])]
                    for samples in all_samples]
                row[name] = ratio_of(sessions)
                row["rounds"] = sum(map(len, sessions))
            if row["rounds"]:
                rows.append(row)
    return rows
