"""The Python package of the wheel, as it is installed: run by tests/dist/wheel.t with the venv's Python.

    test_ringside_package.py FAKE_GPU_DIRECTORY [TEST...]

Each test runs in a process of its own, because what enable() checks is the state of a process. The library that plays
NCCL loads the plugin as NCCL does.
"""

import ctypes
import json
import mmap
import os
import subprocess
import sys
import tempfile
import types
import unittest

FAKE_GPU = sys.argv[1]
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("NCCL_", "RINGSIDE_")) and name != "LD_LIBRARY_PATH"}


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


def play_rank(rank, number, operations):
    """Creates a communicator of two ranks and calls AllReduce."""
    cuda = ctypes.CDLL(FAKE_GPU + "/libcuda.so.1")
    nccl = ctypes.CDLL(FAKE_GPU + "/libnccl.so.2")
    device = ctypes.c_int()
    context, stream, memory, comm = (ctypes.c_void_p() for _ in range(4))
    cuda.cuMemAlloc_v2.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
    nccl.ncclAllReduce.argtypes = ([ctypes.c_void_p] * 2 + [ctypes.c_size_t] + [ctypes.c_int] * 2
                                   + [ctypes.c_void_p] * 2)
    results = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0),
               cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), cuda.cuCtxSetCurrent(context),
               cuda.cuStreamCreate(ctypes.byref(stream), 1), cuda.cuMemAlloc_v2(ctypes.byref(memory), 4096),
               nccl.ncclCommInitRank(ctypes.byref(comm), 2, number, rank)]
    results += [nccl.ncclAllReduce(memory, memory, 1000, 7, 0, comm, stream) for _ in range(operations)]
    results.append(cuda.cuStreamSynchronize(stream))
    if any(results):
        raise AssertionError("the fake NCCL failed: %s" % results)


def play_nccl(operations=10):
    """Two ranks: this process, and one that does not record."""
    number = UniqueId()
    if ctypes.CDLL(FAKE_GPU + "/libnccl.so.2").ncclGetUniqueId(ctypes.byref(number)) != 0:
        raise AssertionError("no unique id")
    other = subprocess.Popen([sys.executable, __file__, FAKE_GPU, "other", bytes(number).hex(), str(operations)],
                             env=CLEAN)
    play_rank(0, number, operations)
    if other.wait() != 0:
        raise AssertionError("the other rank failed")


def verify(ringside, directory):
    done = subprocess.run([ringside.tool_path(), "verify", "--json", directory], stdout=subprocess.PIPE,
                          universal_newlines=True, check=False)
    return [process["issued"] for process in json.loads(done.stdout)["processes"]], done.returncode


def shared(distributed):
    """Stands in for torch.distributed."""
    module = types.ModuleType("torch.distributed")
    module.is_available = lambda: True
    module.is_initialized = lambda: distributed is not None
    module.get_backend = lambda: distributed
    sys.modules["torch.distributed"] = module


class Package(unittest.TestCase):
    def setUp(self):
        import ringside
        self.ringside = ringside
        self.memory = tempfile.TemporaryDirectory(dir="/dev/shm")
        os.environ["RINGSIDE_SHM"] = self.memory.name
        self.addCleanup(self.memory.cleanup)

    def recorded(self):
        return verify(self.ringside, os.path.join(self.memory.name, "ringside-%d" % os.geteuid()))

    def test_enable_records_this_process(self):
        self.assertFalse(self.ringside.is_recording())
        self.assertTrue(self.ringside.enable())
        self.assertFalse(self.ringside.is_recording())
        play_nccl(10)
        self.assertTrue(self.ringside.is_recording())
        self.assertEqual(self.recorded(), ([10], 0))

    def test_without_enable_nothing_is_recorded(self):
        play_nccl()
        self.assertFalse(self.ringside.is_recording())

    def test_the_plugin_is_named_so_that_every_nccl_finds_it(self):
        self.ringside.enable()
        self.assertEqual(os.environ["NCCL_PROFILER_PLUGIN"], os.path.basename(self.ringside.plugin_path()))

    def test_a_child_process_inherits(self):
        self.ringside.enable()
        subprocess.run([sys.executable, __file__, FAKE_GPU, "play", "7"], check=True)
        self.assertEqual(self.recorded(), ([7], 0))

    def test_a_child_that_enables_again_records(self):
        self.ringside.enable()
        subprocess.run([sys.executable, __file__, FAKE_GPU, "enable-and-play", "6"], check=True)
        self.assertEqual(self.recorded(), ([6], 0))

    def test_settings_become_variables(self):
        self.ringside.enable(mode="trace", dir="some", labels={"team": "vision", "step": 2}, heartbeat=5,
                             buffer="4MiB", times="all")
        found = {name: os.environ.get("RINGSIDE_" + name) for name in ("MODE", "DIR", "LABELS", "HEARTBEAT",
                                                                       "BUFFER", "TIMES")}
        self.assertEqual(found, {"MODE": "trace", "DIR": os.getcwd() + "/some", "LABELS": "team=vision,step=2",
                                 "HEARTBEAT": "5", "BUFFER": "4MiB", "TIMES": "all"})

    def test_a_setting_of_an_earlier_version_does_not_stop_the_job(self):
        self.assertTrue(self.ringside.enable(sample_after=60))
        self.assertIn("NCCL_PROFILER_PLUGIN", os.environ)

    def test_the_environment_wins_over_arguments(self):
        os.environ["RINGSIDE_MODE"] = "profile"
        self.ringside.enable(mode="trace")
        self.assertEqual(os.environ["RINGSIDE_MODE"], "profile")

    def test_wrong_settings_are_refused(self):
        with self.assertRaisesRegex(ValueError, "unknown mode 'tracing'"):
            self.ringside.enable(mode="tracing")
        with self.assertRaisesRegex(ValueError, "64KiB to 1GiB"):
            self.ringside.enable(buffer="1")
        with self.assertRaisesRegex(ValueError, "unknown choice 'some'"):
            self.ringside.enable(times="some")
        with self.assertRaisesRegex(TypeError, "unknown setting 'modes'"):
            self.ringside.enable(modes="trace")
        self.assertNotIn("NCCL_PROFILER_PLUGIN", os.environ)

    def test_it_can_be_switched_off_without_changing_code(self):
        os.environ["RINGSIDE_DISABLE"] = "1"
        self.assertFalse(self.ringside.enable())
        self.assertNotIn("NCCL_PROFILER_PLUGIN", os.environ)
        del os.environ["RINGSIDE_DISABLE"]
        os.environ["NCCL_PROFILER_PLUGIN"] = "None"
        self.assertFalse(self.ringside.enable())
        self.assertEqual(os.environ["NCCL_PROFILER_PLUGIN"], "None")

    def test_the_plugin_of_somebody_else_stays(self):
        os.environ["NCCL_PROFILER_PLUGIN"] = "inspector"
        with self.assertRaisesRegex(self.ringside.PluginConflict, "'inspector'.*replace=True"):
            self.ringside.enable()
        self.assertEqual(os.environ["NCCL_PROFILER_PLUGIN"], "inspector")
        self.assertTrue(self.ringside.enable(replace=True))
        play_nccl()
        self.assertTrue(self.ringside.is_recording())

    def test_nccls_own_file_counts_too(self):
        conf = os.path.join(self.memory.name, "nccl.conf")
        os.environ["NCCL_CONF_FILE"] = conf
        for value, error in (("inspector", self.ringside.PluginConflict), ("none", None)):
            with open(conf, "w", encoding="utf-8") as file:
                file.write("# a comment\nNCCL_DEBUG=WARN\nNCCL_PROFILER_PLUGIN=%s\n" % value)
            if error:
                self.assertRaises(error, self.ringside.enable)
            else:
                self.assertFalse(self.ringside.enable())

    def test_what_a_launcher_set_stays(self):
        os.environ["NCCL_PROFILER_PLUGIN"] = self.ringside.plugin_path()
        self.ringside.enable()
        self.assertEqual(os.environ["NCCL_PROFILER_PLUGIN"], self.ringside.plugin_path())

    def test_a_name_that_the_loader_does_not_find_is_replaced(self):
        os.environ["NCCL_PROFILER_PLUGIN"] = "ringside"
        self.ringside.enable()
        play_nccl()
        self.assertTrue(self.ringside.is_recording())

    def test_too_late_for_pytorch(self):
        shared("nccl")
        with self.assertRaisesRegex(self.ringside.TooLate, "before init_process_group.*ringside run"):
            self.ringside.enable()
        self.assertNotIn("NCCL_PROFILER_PLUGIN", os.environ)

    def test_pytorch_without_nccl_is_in_time(self):
        shared("gloo")
        self.assertTrue(self.ringside.enable())

    def test_pytorch_without_process_group_is_in_time(self):
        shared(None)
        self.assertTrue(self.ringside.enable())

    def test_too_late_for_another_framework(self):
        path = "/dev/shm/nccl-test%d" % os.getpid()
        with open(path, "w+b") as file:
            os.unlink(path)
            file.write(b"x" * 4096)
            file.flush()
            mapped = mmap.mmap(file.fileno(), 4096)
            with self.assertRaisesRegex(self.ringside.TooLate, "before the first one is created"):
                self.ringside.enable()
            mapped.close()

    def test_settings_cannot_change_while_it_records(self):
        self.ringside.enable()
        play_nccl()
        self.assertTrue(self.ringside.enable())
        with self.assertRaisesRegex(self.ringside.TooLate, "already recording: set RINGSIDE_MODE"):
            self.ringside.enable(mode="trace")

    def test_environment_changes_nothing(self):
        variables = self.ringside.environment(mode="profile")
        self.assertEqual(variables["RINGSIDE_MODE"], "profile")
        self.assertIn("NCCL_PROFILER_PLUGIN", variables)
        self.assertNotIn("NCCL_PROFILER_PLUGIN", os.environ)


def names():
    return [name for name in unittest.TestLoader().getTestCaseNames(Package)]


def main():
    """TAP on stdout: one process per test."""
    failed = 0
    print("1..%d" % len(names()))
    for number, name in enumerate(names(), 1):
        done = subprocess.run([sys.executable, __file__, FAKE_GPU, "one", name], env=CLEAN, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True, check=False)
        print("%sok %d - %s" % ("not " if done.returncode else "", number, name[5:].replace("_", " ")))
        if done.returncode:
            failed += 1
            print("".join("# %s\n" % line for line in done.stdout.splitlines()), end="")
    return 1 if failed else 0


if sys.argv[2:3] == ["other"]:
    play_rank(1, UniqueId.from_buffer_copy(bytes.fromhex(sys.argv[3])), int(sys.argv[4]))
elif sys.argv[2:3] == ["play"]:
    play_nccl(int(sys.argv[3]))
elif sys.argv[2:3] == ["enable-and-play"]:
    import ringside
    ringside.enable()
    play_nccl(int(sys.argv[3]))
elif sys.argv[2:3] == ["one"]:
    unittest.main(argv=sys.argv[:1] + ["Package." + sys.argv[3]])
else:
    sys.exit(main())
