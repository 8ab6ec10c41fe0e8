"""The host: its GPU, CUDA, NCCL libraries, MPS daemon; building against them."""

import glob
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
NVIDIA_PLACES = ("/usr/local/nvidia/bin", "/usr/bin", "/usr/local/bin", "/opt/nvidia/bin")


def capture(argv, timeout=30, **options):
    """(exit code, output); 127 if it could not be started, 124 if it took too long."""
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=timeout, stdin=subprocess.DEVNULL,
                              check=False, **options)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        return 124, "%s\n(no end within %d s)" % (
            (error.stdout or b"").decode(errors="replace") if isinstance(error.stdout, bytes)
            else error.stdout or "", timeout)
    except OSError as error:
        return 127, "%s: %s" % (argv[0], error)


def find_tool(name):
    return shutil.which(name) or shutil.which(name, path=":".join(NVIDIA_PLACES))


def find_gpu():
    """The first GPU according to nvidia-smi, or None."""
    tool = find_tool("nvidia-smi")
    if not tool:
        return None
    fields = ("name", "driver_version", "memory.total", "compute_mode", "uuid")
    code, text = capture([tool, "--query-gpu=" + ",".join(fields), "--format=csv,noheader"], 60)
    if code != 0 or not text.strip():
        return None
    values = [value.strip() for value in text.splitlines()[0].split(",")]
    return dict(zip(("gpu", "driver", "gpu_memory", "compute_mode", "gpu_uuid"), values))


def find_cuda():
    """(include directory, library directory) of a CUDA runtime to build with, or None."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    nvcc = shutil.which("nvcc")
    if nvcc:
        homes.append(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))))
    homes += ["/usr/local/cuda"] + sorted(glob.glob("/usr/local/cuda-*"), reverse=True)
    homes += [place for name in ("nvidia.cu13", "nvidia.cuda_runtime", "nvidia.cu12")
              for place in package_places(name)]
    for home in filter(None, homes):
        for include in glob.glob(home + "/include") + glob.glob(home + "/targets/*/include"):
            if not os.path.exists(include + "/cuda_runtime.h"):
                continue
            for lib in [home + "/lib64", home + "/lib"] + glob.glob(home + "/targets/*/lib"):
                if glob.glob(lib + "/libcudart*"):
                    return include, lib
    return None


def find_cuda_home():
    """Where nvcc is, or None."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    nvcc = shutil.which("nvcc")
    homes += [os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))] if nvcc else []
    homes += ["/usr/local/cuda"] + sorted(glob.glob("/usr/local/cuda-*"), reverse=True)
    return next((home for home in filter(None, homes) if os.path.exists(home + "/bin/nvcc")), None)


def package_places(name):
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return []
    return list(spec.submodule_search_locations or []) if spec else []


def _nccl(name, include, library):
    return {"name": name, "include": include, "library": os.path.realpath(library)}


def find_nccls():
    """NCCL libraries to check with, the best first: NCCL_HOME, PyTorch's, the system's."""
    found = []
    home = os.environ.get("NCCL_HOME")
    for place in ([home] if home else []) + package_places("nvidia.nccl"):
        for library in glob.glob(place + "/lib*/libnccl.so.2")[:1]:
            found.append(_nccl("NCCL_HOME" if place == home else "PyTorch's", place + "/include",
                               library))
    _, text = capture(["/sbin/ldconfig", "-p"])
    places = re.findall(r"libnccl\.so\.2 .*=> (\S+)", text)
    places += glob.glob("/usr/lib/*/libnccl.so.2") + glob.glob("/usr/local/lib/libnccl.so.2")
    headers = [found[0]["include"]] if found else []
    for library in places:
        if os.path.realpath(library) in [nccl["library"] for nccl in found]:
            continue
        beside = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(library))),
                              "include")
        include = next((path for path in (beside, "/usr/include", "/usr/local/include")
                        if os.path.exists(path + "/nccl.h")), headers[0] if headers else None)
        if include:
            found.append(_nccl("the system's", include, library))
    return [nccl for nccl in found if os.path.exists(nccl["include"] + "/nccl.h")]


def clean_environment():
    """Our environment without the caller's NCCL, recorder and make settings."""
    return {key: value for key, value in os.environ.items()
            if not key.startswith(("NCCL_", "RINGSIDE_", "MAKE", "MFLAGS"))}


def build_project(build):
    command = ["make", "-C", ROOT, "-j%d" % (os.cpu_count() or 2),
               "BUILD=" + os.path.relpath(build, ROOT), "all"]
    return capture(command, 240, env=clean_environment())


def build_driver(nccl, cuda, out):
    """Tries the ways to link CUDA's runtime, the most robust one first."""
    include, lib = cuda
    sources = sorted(glob.glob(HERE + "/*.c"))
    base = [os.environ.get("CC") or shutil.which("gcc") or "cc", "-std=gnu11", "-D_GNU_SOURCE",
            "-O2", "-g", "-Wall", "-Wextra", "-isystem", nccl["include"], "-isystem", include,
            "-o", out] + sources
    # RPATH, not RUNPATH: LD_LIBRARY_PATH must not select another NCCL.
    libraries = [nccl["library"], "-Wl,--disable-new-dtags",
                 "-Wl,-rpath," + os.path.dirname(nccl["library"]), "-Wl,--allow-shlib-undefined"]
    tail = ["-ldl", "-lrt", "-lpthread", "-lm"]
    shared = sorted(glob.glob(lib + "/libcudart.so*"))
    ways = [[lib + "/libcudart_static.a"]] if os.path.exists(lib + "/libcudart_static.a") else []
    ways += [[shared[0], "-Wl,-rpath," + lib]] if shared else []
    output = "no libcudart in %s" % lib
    for way in ways:
        code, output = capture(base + libraries + way + tail, 120)
        if code == 0:
            return True, output
    return False, output


def probe(driver, environment, timeout=60):
    """The GPU and libraries as seen by the driver: (fields or None, its output)."""
    code, text = capture([driver, "probe"], timeout, env=environment)
    try:
        return (json.loads(text.strip().splitlines()[-1]) if code == 0 else None), text
    except (ValueError, IndexError):
        return None, text


def version_text(number):
    return "%d.%d.%d" % (number // 10000, number // 100 % 100, number % 100)


def describe():
    """Describes the host, for the results."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        model = re.search(r"model name\s*:\s*(.*)", file.read())
    shm = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    return {
        "cpu": model.group(1) if model else platform.machine(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": sys.version.split()[0],
        "shm_free": "%d MiB" % (shm.f_bavail * shm.f_frsize >> 20) if shm else "none",
    }


class Mps:
    """The MPS daemon with its own directories: without it ranks are time-sliced, 2 ms each."""

    def __init__(self, say):
        self.say = say
        self.tool = find_tool("nvidia-cuda-mps-control")
        self.directory = None

    def environment(self):
        if not self.directory:
            return {}
        return {"CUDA_MPS_PIPE_DIRECTORY": self.directory + "/pipe",
                "CUDA_MPS_LOG_DIRECTORY": self.directory + "/log"}

    def start(self):
        if not self.tool:
            self.say("nvidia-cuda-mps-control not found: ranks will be time-sliced")
            return False
        self.directory = tempfile.mkdtemp(prefix="rmps-", dir="/tmp")
        os.mkdir(self.directory + "/pipe")
        os.mkdir(self.directory + "/log")
        # Into a file: the daemon would keep a pipe open.
        with open(self.directory + "/output", "w+", encoding="utf-8", errors="replace") as output:
            try:
                code = subprocess.run([self.tool, "-d"], stdin=subprocess.DEVNULL, stdout=output,
                                      stderr=output, timeout=20, check=False,
                                      env={**clean_environment(), **self.environment()}).returncode
            except (OSError, subprocess.TimeoutExpired) as error:
                code = str(error)
            output.seek(0)
            self.say("MPS daemon: exit code %s %s" % (code, output.read().strip()))
        if code != 0:
            self.stop()
            return False
        return True

    def log(self):
        text = ""
        for path in sorted(glob.glob((self.directory or "/nowhere") + "/log/*.log")):
            with open(path, encoding="utf-8", errors="replace") as file:
                text += "%s:\n%s" % (os.path.basename(path), file.read()[-3000:])
        return text

    def stop(self):
        if not self.directory:
            return
        try:
            subprocess.run([self.tool], input="quit\n", text=True, timeout=15, check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           env={**clean_environment(), **self.environment()})
        except (OSError, subprocess.TimeoutExpired):
            self.say("the MPS daemon does not answer: killing it by its process id")
        self._end_leftover()
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory = None

    def _end_leftover(self):
        """The daemon and its server, found by the pipe directory in their environment."""
        wanted = ("CUDA_MPS_PIPE_DIRECTORY=%s/pipe" % self.directory).encode()
        for _ in range(50):
            left = [pid for pid in _processes_named("nvidia-cuda-mps")
                    if wanted in _environment_of(pid)]
            if not left:
                return
            time.sleep(0.1)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def restart(self):
        """After a job that had to be killed: its kernels may have left the server in a bad state."""
        if self.directory:
            self.stop()
            self.start()


def _processes_named(beginning):
    found = []
    for path in glob.glob("/proc/[0-9]*/comm"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                if file.read().startswith(beginning[:15]):
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return found


def _environment_of(pid):
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []
