"""Scenarios of the driver, examined from outside while they hang: is the doctor's verdict right?

Observations are kept in RESULTS/hangs.tar.gz: NAME.tar, a snapshot of each rank; NAME-RANK.log, NCCL's log;
NAME.ras.txt, the output of its RAS; expected.json, the truth. Unpacked into tests/gpu/recorded it is a test for
hosts without a GPU (tests/doctor/recorded.t).
"""

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time

from gpu_fields import kernel_state
from gpu_job import Place, end_job, environment, rank_pids
from gpu_machine import HERE, ROOT, capture
from gpu_scenes import HANG, RANKS, SCENES, blind_spot, truth

sys.path.insert(0, os.path.join(ROOT, "tests", "doctor"))
import verdicts  # noqa: E402

READY_S, LOOP_S, STILL_S, HANG_LIMIT_S = 20, 1.5, 5.5, 14
RUN_S = 14  # for jobs that do not hang: long enough for a few hundred operations
SLOW_READER_BYTES_PER_S = 800 * 1000 * 1000
HOST = "gpuhost"


def renamed():
    """A command prefix that sets a made-up host name, if allowed."""
    way = ["unshare", "--uts", "sh", "-c", 'hostname %s && exec "$@"' % HOST, "sh"]
    code, text = capture(way + ["hostname"], 10)
    return way if code == 0 and text.strip() == HOST else []


def build_slow_reader(out):
    return capture([os.environ.get("CC") or shutil.which("gcc") or "cc", "-O2", "-shared", "-fPIC",
                    "-o", out, os.path.join(HERE, "shim", "slow_reader.c"), "-ldl", "-lpthread"])


class Variant:
    """How a scenario runs in the matrix of releases: which NCCL, transport and events."""

    def __init__(self, name, nccl, settings, arguments, is_one_node):
        self.name, self.nccl, self.settings = name, nccl, settings
        self.arguments, self.is_one_node = list(arguments), is_one_node


class Stage:
    """One scenario while it runs."""

    def __init__(self, context, scene, variant=None):
        self.context, self.scene = context, scene
        self.nccl = variant.nccl if variant else context.nccls[0]
        self.arguments = variant.arguments if variant else []
        self.place = Place(context.work, context.shm,
                           (variant.name + "-" if variant else "") + "hang-" + scene.name)
        mps = context.mps.environment() if scene.has_mps else {}
        self.settings = environment(self.place, context.plugin, "flight", mps)
        self.settings.pop("NCCL_DEBUG_SUBSYS", None)
        self.settings.update(RINGSIDE_BUFFER="256KiB", RINGSIDE_JOB=scene.name, **scene.settings)
        self.settings.update(variant.settings if variant else {})
        self.way = context.way
        self.process = None

    def path(self, name):
        return os.path.join(self.place.directory, name)

    def start(self):
        argv = [self.nccl["driver"], "hang", "--ranks", str(RANKS), "--out",
                self.place.directory, "--scene", self.scene.name, "--victim",
                str(self.scene.victim), "--big", str(self.scene.big)] + self.arguments
        if self.scene.is_slow_reader:
            library = self.path("slow_reader.so")
            code, text = build_slow_reader(library)
            if code != 0:
                raise RuntimeError("cannot build the slow reader: %s" % text)
            argv += ["--preload", library]
            self.settings["SLOW_READER_BYTES_PER_S"] = str(SLOW_READER_BYTES_PER_S)
        with open(self.path("launcher.log"), "wb") as log:
            self.process = subprocess.Popen(self.way + argv, env=self.settings,
                                            stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, start_new_session=True,
                                            cwd=self.place.directory)

    def wait_ready(self):
        deadline = time.monotonic() + READY_S
        while not all(os.path.exists(self.path("ready-%d" % rank)) for rank in range(RANKS)):
            if self.process.poll() is not None:
                raise RuntimeError("the job ended before it started")
            if time.monotonic() > deadline:
                raise RuntimeError("not ready within %d s" % READY_S)
            time.sleep(0.1)

    def strike(self):
        """The signal that the victim gets in the middle of its work."""
        if self.scene.signal:
            time.sleep(LOOP_S)
            with open(self.path("pid-%d" % self.scene.victim), encoding="utf-8") as file:
                os.kill(int(file.read()), self.scene.signal)

    def tool(self, *arguments):
        return subprocess.run(self.way + [self.context.tool.path] + list(arguments), text=True,
                              timeout=30, errors="replace", stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False,
                              env={**os.environ, "RINGSIDE_SHM": self.place.regions})

    def oldest_s(self):
        """Age of the oldest operation in flight, from `ringside ps`."""
        done = self.tool("ps", "--json")
        issued = [op["issue_wall_ns"] for op in json.loads(done.stdout)["operations"]
                  if op.get("issue_wall_ns")]
        return time.time() - min(issued) / 1e9 if issued else 0

    def wait_still(self):
        if not self.scene.is_hang:
            time.sleep(RUN_S if self.scene.is_timed() else STILL_S)
            return
        deadline = time.monotonic() + HANG_LIMIT_S
        while self.oldest_s() < STILL_S:
            if time.monotonic() > deadline:
                raise RuntimeError("does not hang within %d s" % HANG_LIMIT_S)
            time.sleep(0.3)

    def end(self):
        if self.process and self.process.poll() is None:
            end_job(self.process, self.place.directory)
        if self.scene.has_mps:
            self.context.mps.restart()


def _keep(stage, keep):
    """Keeps the observations for hosts without a GPU. Returns the bundle's members by name."""
    bundle = stage.path("bundle.tar")
    done = stage.tool("bundle", "-o", bundle, "--hang", HANG, "--no-traces", "--operations",
                      "512" if stage.scene.is_timed() else "64")
    if not os.path.exists(bundle):
        raise RuntimeError("no bundle: %s" % done.stderr.strip())
    names = []
    with tarfile.open(bundle) as whole, \
            tarfile.open(os.path.join(keep, stage.scene.name + ".tar"), "w") as kept:
        for member in whole.getmembers():
            names.append(member.name)
            if "/snapshots/" in member.name and member.isfile():
                data = whole.extractfile(member).read()
                small = tarfile.TarInfo(os.path.basename(member.name))
                small.size = len(data)
                kept.addfile(small, io.BytesIO(data))
            elif member.name.endswith("/ras/status.txt"):
                text = whole.extractfile(member).read().decode(errors="replace")
                with open(os.path.join(keep, stage.scene.name + ".ras.txt"), "w",
                          encoding="utf-8") as file:
                    file.write(_neutral(stage, text))
    return names


def _neutral(stage, text):
    """Without this host's name and paths."""
    for private, neutral in ((os.uname().nodename, HOST), (stage.context.work, "/work"),
                             (ROOT, "/ringside"), (stage.context.shm, "/dev/shm/job")):
        text = text.replace(private, neutral)
    return text


def _keep_logs(stage, keep):
    """NCCL's logs."""
    for rank in range(RANKS):
        try:
            with open(stage.path("pid-%d" % rank), encoding="utf-8") as file:
                pid = file.read().strip()
            with open(stage.path("nccl-%s.log" % pid), encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        with open(os.path.join(keep, "%s-%d.log" % (stage.scene.name, rank)), "w",
                  encoding="utf-8") as file:
            file.write(_neutral(stage, text))


def _judge(stage, keep):
    """The doctor's verdict, live and from the snapshots; and from NCCL's log."""
    tap, scene = stage.context.tap, stage.scene
    started = time.monotonic()
    done = stage.tool("doctor", "--json", "--hang", HANG)
    seconds = time.monotonic() - started
    live = json.loads(done.stdout)
    told, wrong = verdicts.judge(scene.told, scene.culprit, live, scene.is_timed())
    titles = [verdict["title"] for verdict in live["verdicts"]]
    tap.ok(not wrong, "hang-%s: diagnosed from outside: %s (%.2f s)" % (scene.name, told, seconds),
           wrong + titles)
    wanted = int(scene.told != "none" or any(verdict["severity"] != "note" for verdict in live["verdicts"]))
    tap.ok(done.returncode == wanted, "hang-%s: exit code %d" % (scene.name, done.returncode))
    names = _keep(stage, keep)
    tar = os.path.join(keep, scene.name + ".tar")
    again = stage.tool("doctor", "--json", "--hang", HANG, tar)
    told_again, wrong = verdicts.judge(scene.told, scene.culprit, json.loads(again.stdout),
                                         scene.is_timed())
    tap.ok(not wrong, "hang-%s: diagnosed from its snapshots: %s" % (scene.name, told_again), wrong)
    if scene.name == "skip" and getattr(stage.context, "has_ras", True):
        tap.ok(any(name.endswith("/ras/status.txt") for name in names),
               "hang-skip: the bundle has the output of NCCL's RAS", names)
    _keep_logs(stage, keep)
    logs = sorted(os.path.join(keep, name) for name in os.listdir(keep)
                  if name.startswith(scene.name + "-") and name.endswith(".log"))
    read = stage.tool("doctor", "--json", "--hang", HANG, "--log", *logs)
    lines = sum(len(open(path, "rb").read().splitlines()) for path in logs)
    is_read = read.returncode in (0, 1) and \
        json.loads(read.stdout)["looked_at"]["log_lines"] == lines
    tap.ok(is_read and len(logs) == RANKS, "hang-%s: %d lines of NCCL's log are read" % (
        scene.name, lines), [read.stderr[-500:], read.stdout[-500:]])
    stage.context.results.setdefault("hangs", []).append({
        "name": scene.name, "told": told, "again": told_again, "seconds": seconds,
        "titles": titles, "wanted": scene.told})


def hang_job(context, scene):
    """One scenario from start to end."""
    tap = context.tap
    keep = os.path.join(context.results_directory, "hangs")
    os.makedirs(keep, exist_ok=True)
    failed_before = tap.failed
    if not hasattr(context, "way"):
        context.way = renamed()
        if not context.way:
            tap.say("the host's own name will be in the kept files")
    stage = Stage(context, scene)
    try:
        stage.start()
        stage.wait_ready()
        stage.strike()
        stage.wait_still()
        _judge(stage, keep)
    except (RuntimeError, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        tap.ok(False, "hang-%s: runs and is examined" % scene.name, [
            "%s: %s" % (type(error).__name__, error)])
    if tap.failed > failed_before:
        for name, text in {**stage.place.read("launcher.log"),
                           **stage.place.read("rank-*.log")}.items():
            tap.say(name + ":")
            tap.show(text, 12)
        tap.show(context.tool.now(stage.settings))
        context.failed_places.append(stage.place.directory)
    stage.end()
    stage.place.release()
    _pack(context, keep)


def _doctor(stage, hang):
    started = time.monotonic()
    done = stage.tool("doctor", "--json", "--hang", hang)
    if not done.stdout:
        raise RuntimeError("the doctor printed nothing: %s" % done.stderr.strip()[-500:])
    return json.loads(done.stdout), time.monotonic() - started


def _variant_judge(stage, variant, document):
    """What goes into the results. If a blind spot hides the cause, no other rank may be named."""
    scene = stage.scene
    _, text, _ = stage.context.tool.verify(stage.place.recorded("flight"))
    kernel = kernel_state(text) or "off"
    told, wrong = verdicts.judge(scene.told, scene.culprit, document, scene.is_timed())
    blind = blind_spot(scene, kernel) if wrong else None
    if blind and all(verdict["rank"] is None
                     for verdict in verdicts.accusing(document, scene.is_timed())):
        wrong = []
    return {"scene": scene.name, "wanted": scene.told, "told": told, "kernel_events": kernel,
            "blind": blind if not wrong else None, "wrong": wrong, "is_right": not wrong,
            "titles": [verdict["title"] for verdict in document["verdicts"]]}


def variant_job(context, scene, variant, hang, still_s, run_s):
    """Runs, judges and ends a scenario of the matrix. Returns what goes into the results."""
    if not hasattr(context, "way"):
        context.way = renamed()
    stage = Stage(context, scene, variant)
    started = time.monotonic()
    result = {"scene": scene.name, "wanted": scene.told, "told": None, "is_right": False, "wrong": [],
              "titles": [], "blind": None, "kernel_events": None}
    try:
        stage.start()
        stage.wait_ready()
        stage.strike()
        # Does not wait for `ringside ps` to show an old operation: without kernel events it may not.
        time.sleep(run_s if scene.is_timed() else still_s)
        document, seconds = _doctor(stage, hang)
        result.update(_variant_judge(stage, variant, document), doctor_seconds=seconds)
    except (RuntimeError, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        result["wrong"] = ["%s: %s" % (type(error).__name__, error)]
    if not result["is_right"]:
        _variant_failed(stage)
    stage.end()
    stage.place.release()
    result["seconds"] = time.monotonic() - started
    return result


def _variant_failed(stage):
    """Snapshots of a scenario with a wrong verdict, for hosts without a GPU."""
    try:
        stage.tool("bundle", "-o", stage.path("bundle.tar"), "--hang", HANG, "--no-traces")
    except (OSError, subprocess.TimeoutExpired):
        pass
    for name, text in {**stage.place.read("launcher.log"),
                       **stage.place.read("rank-0.log")}.items():
        stage.context.tap.say(name + ":")
        stage.context.tap.show(text, 6)
    stage.context.failed_places.append(stage.place.directory)


def _pack(context, keep):
    """Everything so far in one file."""
    with open(os.path.join(keep, "expected.json"), "w", encoding="utf-8") as file:
        json.dump({"nccl": context.nccls[0]["version"], "scenes": truth()}, file, indent=1,
                  sort_keys=True)
        file.write("\n")
    with tarfile.open(os.path.join(context.results_directory, "hangs.tar.gz"), "w:gz") as archive:
        for name in sorted(os.listdir(keep)):
            archive.add(os.path.join(keep, name), name)


def steps(context, step_of):
    return [step_of("hang-" + scene.name, 40, lambda scene=scene: hang_job(context, scene))
            for scene in SCENES]
