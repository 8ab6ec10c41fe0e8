"""NCCL releases to check: built ones, or sources that are built here in parallel."""

import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import time

from gpu_machine import capture, clean_environment, find_tool

# The functions that the jobs of this check use; omitting the others makes a build minutes shorter.
ONLY_FUNCS = "|".join((
    "AllReduce Sum (i32|f32|u8|bf16) (RING|TREE) *", "ReduceScatter Sum (i32|f32|u8) RING *",
    "ReduceScatter PreMulSum f32 RING *", "Reduce Sum (i32|f32|u8) RING *", "AllGather RING *",
    "AllGatherV RING *", "Broadcast RING *", "SendRecv"))
LAYOUTS = (("build/include", "build/lib"), ("include", "lib"), ("include", "lib64"), (".", "."),
           ("include", "."), (".", "lib"))
BUILD_LIMIT_S = 420
FIRST_IN_ONE_NODE = 23000  # NCCL_MULTI_RANK_GPU_ENABLE
TRANSPORTS = ("sockets", "node")
# Where times come from.
EVENTS = {
    "default": {},
    "kernel": {"RINGSIDE_TIMES": "kernel"},
    "all": {"RINGSIDE_TIMES": "all"},
    "off": {"RINGSIDE_TIMES": "off"},
    "graphs": {"RINGSIDE_TIMES": "auto,graphs"},
}
FIRST_WITH_CUDA_EVENTS = 22800


def transport_settings(transport):
    """NCCL's variables; over sockets the driver gives each rank its own NCCL_HOSTID. Between nodes of one
    rank each NCCL would choose PAT, whose kernels ONLY_FUNCS leaves out."""
    return {"NCCL_MULTI_RANK_GPU_ENABLE": "1"} if transport == "node" else {"NCCL_PAT_ENABLE": "0"}


def transport_arguments(transport):
    """The driver's option."""
    return ["--one-node"] if transport == "node" else []


def transports_of(nccl):
    """Inside a node only if NCCL lets ranks share a GPU there."""
    return TRANSPORTS if nccl["number"] >= FIRST_IN_ONE_NODE else TRANSPORTS[:1]


def built_in(place):
    """(directory of nccl.h, library) of a built NCCL, or None."""
    for include, lib in LAYOUTS:
        header = os.path.join(place, include, "nccl.h")
        libraries = sorted(glob.glob(os.path.join(place, lib, "libnccl.so*")))
        # Programs load libnccl.so.2; a flat copy may only have the long name.
        libraries.sort(key=lambda path: os.path.basename(path) != "libnccl.so.2")
        if os.path.exists(header) and libraries:
            return os.path.dirname(header), libraries[0]
    return None


def is_source(place):
    return os.path.exists(os.path.join(place, "src", "nccl.h.in")) or \
        os.path.isdir(os.path.join(place, "makefiles"))


def source_in(place):
    """The source tree in a directory: itself, or the only one below it."""
    if is_source(place):
        return place
    below = [path for path in sorted(glob.glob(os.path.join(place, "*"))) if is_source(path)]
    return below[0] if len(below) == 1 else None


def source_version(source):
    """2.30.7 of makefiles/version.mk, or the directory's name."""
    try:
        with open(os.path.join(source, "makefiles", "version.mk"), encoding="utf-8") as file:
            numbers = dict(re.findall(r"NCCL_(MAJOR|MINOR|PATCH|SUFFIX)[ \t]*:=[ \t]*(\S*)", file.read()))
        return "%(MAJOR)s.%(MINOR)s.%(PATCH)s" % numbers + numbers.get("SUFFIX", "")
    except (OSError, KeyError):
        return os.path.basename(os.path.abspath(source))


def header_version(include):
    """2.30.7 of nccl.h, or "unknown"."""
    with open(os.path.join(include, "nccl.h"), encoding="utf-8", errors="replace") as file:
        numbers = dict(re.findall(r"#define\s+NCCL_(MAJOR|MINOR|PATCH)\s+(\d+)", file.read()))
    return "%(MAJOR)s.%(MINOR)s.%(PATCH)s" % numbers if len(numbers) == 3 else "unknown"


def unpack(path, base):
    """Unpacks a tarball under `base`; reuses the contents of an earlier run."""
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:12]
    place = os.path.join(base, "source-" + digest)
    if not os.path.exists(os.path.join(place, ".complete")):
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        with tarfile.open(path) as archive:
            if hasattr(tarfile, "data_filter"):
                archive.extractall(place, filter="data")
            else:
                archive.extractall(place)
        open(os.path.join(place, ".complete"), "w", encoding="ascii").close()
    return place


def gpu_arch():
    """90 for compute capability 9.0; None if nvidia-smi does not report it."""
    tool = find_tool("nvidia-smi")
    code, text = capture([tool, "--query-gpu=compute_cap", "--format=csv,noheader"], 30) \
        if tool else (1, "")
    found = re.match(r"\s*(\d+)\.(\d+)", text) if code == 0 else None
    return found.group(1) + found.group(2) if found else None


class Build:
    """One NCCL that is being built, in a directory that later runs find again."""

    def __init__(self, source, base, arch, cuda_home):
        self.source, self.name = source, source_version(source)
        digest = hashlib.sha256(json.dumps(
            [os.path.abspath(source), arch, ONLY_FUNCS]).encode()).hexdigest()[:8]
        self.place = os.path.join(base, "%s-%s" % (self.name, digest))
        self.log = os.path.join(self.place, "build.log")
        self.stamp = os.path.join(self.place, "built.json")
        self.gencode = "-gencode=arch=compute_%s,code=sm_%s" % (arch, arch)
        self.cuda_home, self.process, self.started, self.seconds = cuda_home, None, 0, None

    def is_done(self):
        return os.path.exists(self.stamp) and built_in(self.place) is not None

    def command(self, jobs):
        return ["make", "-C", self.source, "-j%d" % jobs, "src.build", "BUILDDIR=" + self.place,
                "CUDA_HOME=" + self.cuda_home, "NVCC_GENCODE=" + self.gencode,
                "ONLY_FUNCS=" + ONLY_FUNCS]

    def start(self, jobs):
        os.makedirs(self.place, exist_ok=True)
        self.started = time.monotonic()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command(jobs), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, env=clean_environment(),
                                            start_new_session=True)

    def poll(self):
        """None while it runs, otherwise whether it succeeded."""
        if self.process.poll() is None:
            return None
        self.seconds = time.monotonic() - self.started
        if self.process.returncode != 0 or not built_in(self.place):
            return False
        with open(self.stamp, "w", encoding="utf-8") as file:
            json.dump({"seconds": self.seconds, "command": self.command(1)}, file)
        return True

    def end(self):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, 15)
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, 9)
                self.process.wait()

    def tail(self, lines=15):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                return "".join(file.readlines()[-lines:])
        except OSError as error:
            return str(error)


def build_all(builds, limit_s, say):
    """All of them in parallel. {build: seconds, or None if it failed or took too long}"""
    left, results = [], {}
    for build in builds:
        if build.is_done():
            say("NCCL %s was built before: %s" % (build.name, build.place))
            results[build] = 0
        else:
            left.append(build)
    jobs = max(2, (os.cpu_count() or 2) // max(1, len(left)) + 1)
    for build in left:
        say("building NCCL %s with -j%d, log in %s" % (build.name, jobs, build.log))
        build.start(jobs)
    deadline = time.monotonic() + limit_s
    try:
        while left and time.monotonic() < deadline:
            time.sleep(0.2)
            for build in list(left):
                is_built = build.poll()
                if is_built is None:
                    continue
                left.remove(build)
                results[build] = build.seconds if is_built else None
                say("NCCL %s: %s after %.0f s" % (build.name, "built" if is_built else
                                                  "the build failed", build.seconds))
        for build in left:
            results[build] = None
            say("NCCL %s: not built within %.0f s; the next run continues from there" % (
                build.name, limit_s))
    finally:
        for build in left:
            build.end()
    return results


def resolve(arguments, base, cuda_home, limit_s, say):
    """What --nccl named: ([{name, include, library, ...}], [complaints])."""
    found, complaints, builds, order = [], [], [], []
    arch = None
    for argument in arguments:
        place = argument
        if os.path.isfile(argument):
            try:
                place = unpack(argument, base)
            except (OSError, tarfile.TarError) as error:
                complaints.append("%s: cannot be unpacked: %s" % (argument, error))
                continue
        own = built_in(place)
        if own:
            order.append((argument, own))
            continue
        source = source_in(place)
        if not source:
            complaints.append("%s: neither a built NCCL (nccl.h and libnccl.so) nor its sources" %
                              argument)
            continue
        arch = arch or gpu_arch() or "90"
        build = Build(source, base, arch, cuda_home)
        builds.append(build)
        order.append((argument, build))
    built = build_all(builds, limit_s, say) if builds else {}
    for argument, own in order:
        seconds = None
        if isinstance(own, Build):
            seconds = built[own]
            if seconds is None:
                complaints.append("%s: NCCL %s was not built:\n%s" % (argument, own.name,
                                                                     own.tail()))
                continue
            own = built_in(own.place)
        found.append({"name": argument, "include": own[0], "library": with_name(own[1], base),
                      "build_seconds": seconds})
    return found, complaints


def with_name(library, base):
    """The loader needs libnccl.so.2; a copy with another name gets a link of that name."""
    path = os.path.realpath(library)
    if os.path.exists(os.path.join(os.path.dirname(path), "libnccl.so.2")):
        return path
    place = os.path.join(base, "named-" + hashlib.sha256(path.encode()).hexdigest()[:8])
    os.makedirs(place, exist_ok=True)
    link = os.path.join(place, "libnccl.so.2")
    if not os.path.islink(link):
        os.symlink(path, link)
    return link
