"""Ringside, an always-on flight recorder for NCCL.

    import ringside
    ringside.enable()            # before the first NCCL communicator is created
    ringside.enable(mode="trace", dir="traces")

NCCL reads NCCL_PROFILER_PLUGIN once per process, when the first communicator is created. enable() sets it and the
recorder's settings in os.environ, so processes started afterwards inherit them (torchrun's workers, multiprocessing,
subprocess). The tool itself is on the PATH as `ringside`, and `python -m ringside` is the same.
"""

import ctypes
import json
import os
import re
import subprocess
import sys
from typing import Dict, List, Mapping, Optional, Union

__version__ = "@VERSION@"
__all__ = ["Error", "PluginConflict", "TooLate", "enable", "environment", "is_recording", "plugin_path", "tool_path"]

PLUGIN_FILE = "libnccl-profiler-ringside.so"
PLUGIN_VARIABLE = "NCCL_PROFILER_PLUGIN"

# Settings with an option of `ringside env`, which checks their values, and the others, which the recorder checks.
_OPTIONS = ("events", "times", "buffer", "quota", "shm", "job", "labels", "group")
_VARIABLES = ("heartbeat", "hang_after", "hosts", "environment")
# The recorder reports that they have no effect any more.
_FORMER = ("sample_after",)

Setting = Union[str, int, Mapping[str, object]]

# Keeps the plugin in memory: see _use_packaged().
_loaded: List[ctypes.CDLL] = []


class Error(RuntimeError):
    """The recorder cannot be enabled; the message says what to do."""


class TooLate(Error):
    """NCCL has already read its variables in this process."""


class PluginConflict(Error):
    """Another profiler plugin is configured, and NCCL loads only one."""


def _inside(*parts: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), *parts)


def tool_path() -> str:
    """The `ringside` program of this package."""
    return _inside("bin", "ringside")


def plugin_path() -> str:
    """The profiler plugin of this package."""
    return _inside("lib", PLUGIN_FILE)


def _is_ours(value: str) -> bool:
    return value == "ringside" or os.path.basename(value) == PLUGIN_FILE


def _conf_files() -> List[str]:
    """The files that NCCL applies after the environment, the first one wins."""
    user = os.environ.get("NCCL_CONF_FILE") or os.path.join(os.path.expanduser("~"), ".nccl.conf")
    return [user, "/etc/nccl.conf"]


def _configured_plugin() -> str:
    """The value of NCCL_PROFILER_PLUGIN that NCCL would use now; "" if there is none."""
    value = os.environ.get(PLUGIN_VARIABLE, "")
    if PLUGIN_VARIABLE in os.environ:
        return value
    for path in _conf_files():
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                for line in file:
                    name, equals, value = line.rstrip("\n").partition("=")
                    if equals and name == PLUGIN_VARIABLE:
                        return value
        except OSError:
            continue
    return ""


def _is_switched_off() -> bool:
    return os.environ.get("RINGSIDE_DISABLE", "0") not in ("", "0") or _configured_plugin().lower() == "none"


def _mapped_files() -> List[str]:
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            fields = (line.rstrip("\n").split(None, 5) for line in file)
            return sorted({field[5] for field in fields if len(field) == 6 and field[5].startswith("/")})
    except OSError:
        return []


def is_recording() -> bool:
    """Is this process recording? True from the first communicator on.

    False if the recorder had to fall back to private memory because /dev/shm is too small; `ringside ls` shows that.
    """
    pattern = re.compile(r"/ringside-\d+/%d-\d+\.region" % os.getpid())
    return any(pattern.search(path) for path in _mapped_files())


def _torch_trace() -> Optional[str]:
    """Whether PyTorch has a process group that uses, or may use, NCCL. Importing torch alone is harmless."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    backend = str(distributed.get_backend()).lower()
    if backend in ("gloo", "mpi", "ucc", "fake"):
        return None
    return "torch.distributed is initialized (backend %s): call ringside.enable() before init_process_group()" % backend


def _nccl_trace() -> Optional[str]:
    """What NCCL leaves in a process that has a communicator. Not every communicator leaves a trace."""
    for path in _mapped_files():
        name = os.path.basename(path)
        if path.startswith("/dev/shm/nccl-"):
            return "NCCL's shared memory %s is mapped" % path
        if name.startswith(("libnccl-net", "libnccl-tuner", "libnccl-profiler")) and name != PLUGIN_FILE:
            return "NCCL has loaded its plugin %s" % path
    return None


def _check_time() -> None:
    trace = _torch_trace()
    if trace is None:
        trace = _nccl_trace()
        if trace is not None:
            trace += ", so a communicator exists: call ringside.enable() before the first one is created"
    if trace is not None:
        raise TooLate(trace + ", or start the program with `ringside run -- CMD`")


def _text(name: str, value: Setting) -> str:
    if isinstance(value, Mapping):
        if name != "labels":
            raise ValueError("ringside: %s must be text or a number" % name)
        return ",".join("%s=%s" % pair for pair in value.items())
    return str(value)


def environment(mode: Optional[str] = None, dir: Optional[str] = None, **settings: Setting) -> Dict[str, str]:
    """The variables that enable the recorder, for the environment of another process. Changes nothing.

    mode is flight, profile, trace, full or off; dir is where trace files go. Other settings are the RINGSIDE_
    variables in lower case: events, times, buffer, quota, shm, job, labels, group, heartbeat, hang_after,
    hosts, environment. Wrong ones raise ValueError or TypeError.
    """
    words = [tool_path(), "env", "--json", "--plugin", plugin_path()]
    if mode is not None:
        words.append("--mode=" + mode)
    if dir is not None:
        words.append("--output=" + os.fspath(dir))
    for name in settings:
        if name not in _OPTIONS + _VARIABLES + _FORMER:
            raise TypeError("ringside: unknown setting '%s'; there are mode, dir, %s"
                            % (name, ", ".join(_OPTIONS + _VARIABLES)))
    words += ["--%s=%s" % (name, _text(name, settings[name])) for name in _OPTIONS if name in settings]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, check=False)
    except OSError as error:
        raise Error("cannot run %s: %s; reinstall ringside-nccl with pip" % (words[0], error.strerror)) from error
    if done.returncode == 2:
        raise ValueError(done.stderr.strip())
    if done.returncode != 0:
        raise Error(done.stderr.strip() or "%s failed with exit code %d" % (words[0], done.returncode))
    variables: Dict[str, str] = json.loads(done.stdout)
    for name in _VARIABLES + _FORMER:
        if name in settings:
            variables["RINGSIDE_" + name.upper()] = _text(name, settings[name])
    return variables


def _is_found(value: str) -> bool:
    """Does the loader find the plugin that this value means? It stays loaded, as it would with NCCL."""
    try:
        _loaded.append(ctypes.CDLL(value if "/" in value else PLUGIN_FILE))
    except OSError:
        return False
    return True


def _use_packaged(variables: Mapping[str, str]) -> None:
    """Sets the packaged plugin.

    The loader read LD_LIBRARY_PATH when this process started, so that variable is for child processes. Here the
    plugin is loaded now, because the loader finds a loaded library by its bare name; NCCL 2.27.3 accepts no paths.
    """
    try:
        _loaded.append(ctypes.CDLL(plugin_path()))
    except OSError as error:
        raise Error("cannot load the plugin: %s" % error) from error
    for name in (PLUGIN_VARIABLE, "LD_LIBRARY_PATH"):
        if name in variables:
            os.environ[name] = variables[name]


def enable(mode: Optional[str] = None, dir: Optional[str] = None, *, replace: bool = False,
           **settings: Setting) -> bool:
    """Records this process, and processes it starts, from its first NCCL communicator on.

    The arguments are those of environment(). RINGSIDE_ variables that are already set win over arguments, so that a
    job can be changed without changing its code.

    Returns False, and changes nothing, if the recorder is switched off by RINGSIDE_DISABLE or
    NCCL_PROFILER_PLUGIN=none. Raises TooLate if NCCL is known to have read its variables, PluginConflict if another
    profiler plugin is configured and `replace` is not set, ValueError or TypeError for wrong settings, and Error for
    anything else.

    A communicator that neither PyTorch nor NCCL's own files show cannot be noticed; then is_recording() stays False.
    """
    if _is_switched_off():
        return False
    variables = environment(mode, dir, **settings)
    news = {name: value for name, value in variables.items()
            if name.startswith("RINGSIDE_") and not os.environ.get(name)}
    if is_recording():
        if news:
            raise TooLate("this process is already recording: set %s before its first communicator"
                          % ", ".join(sorted(news)))
        return True
    before = _configured_plugin()
    if before and not _is_ours(before) and not replace:
        raise PluginConflict("%s is set to '%s', and NCCL loads one profiler plugin only: unset it, or call "
                             "ringside.enable(replace=True)" % (PLUGIN_VARIABLE, before))
    _check_time()
    # What `ringside run` or the job script has set stays, if it works.
    if not (_is_ours(before) and PLUGIN_VARIABLE in os.environ and _is_found(before)):
        _use_packaged(variables)
    os.environ.update(news)
    return True
