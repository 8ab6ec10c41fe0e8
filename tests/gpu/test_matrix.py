"""The whole matrix of releases without a GPU: the driver, built on the fake CUDA and NCCL
(tests/fake_gpu), under the real plugin. Prints TAP.

Without an argument runs a few steps, otherwise the named ones, as with --only. KEEP=DIR: keeps the results there.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SHIM = os.path.join(HERE, "shim")
# Inside a node: the fake NCCL has no network side.
QUICK = "node-2-ranks-default,node-hang-split-graph,node-windows-self"
COUNT = [0, 0]


def expect(is_ok, what, more=""):
    COUNT[0] += 1
    COUNT[1] += not is_ok
    print("%sok %d - %s" % ("" if is_ok else "not ", COUNT[0], what), flush=True)
    if not is_ok:
        print("\n".join("# " + line for line in str(more).splitlines()[-40:]), flush=True)


def stage(build, scratch):
    """A host with a GPU: nvidia-smi, a CUDA toolkit, an NCCL. The environment of the check."""
    fake = os.path.join(build, "tests", "fake_gpu")
    cuda, nccl, tools = (os.path.join(scratch, name) for name in ("cuda", "nccl", "bin"))
    os.makedirs(os.path.join(cuda, "lib64"))
    os.makedirs(tools)
    shutil.copytree(os.path.join(SHIM, "include"), os.path.join(cuda, "include"))
    os.makedirs(nccl)
    shutil.copy(os.path.join(SHIM, "include", "nccl.h"), nccl)
    for library in ("libnccl.so.2", "libcuda.so.1"):
        shutil.copy(os.path.join(fake, library), nccl)
    with open(os.path.join(tools, "nvidia-smi"), "w", encoding="ascii") as file:
        file.write("#!/bin/sh\ncase $1 in\n*compute_cap*) echo 9.0 ;;\n"
                   "*) echo 'no GPU, 1.0, 0 MiB, Default, GPU-0' ;;\nesac\n")
    os.chmod(os.path.join(tools, "nvidia-smi"), 0o755)
    runtime = os.path.join(cuda, "lib64", "libcudart.so")
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "-I" + ROOT,
                    "-I" + os.path.join(ROOT, "src"), "-I" + os.path.join(SHIM, "include"), "-o", runtime,
                    os.path.join(SHIM, "fake_runtime.c"), os.path.join(nccl, "libcuda.so.1"),
                    os.path.join(nccl, "libnccl.so.2"), "-Wl,-rpath," + nccl], check=True)
    return nccl, {**os.environ, "PATH": tools + ":" + os.environ["PATH"], "CUDA_HOME": cuda,
                  "BUILD": build, "FAKE_RUNTIME_DIR": scratch, "FAKE_NCCL_GBPS": "1000",
                  "FAKE_NCCL_LATENCY_US": "1"}


def main():
    build = os.path.abspath(os.environ.get("BUILD", "build"))
    words = ",".join(sys.argv[1:]) or QUICK
    with tempfile.TemporaryDirectory(prefix="ringside-matrix-") as scratch:
        nccl, settings = stage(build, scratch)
        results = os.environ.get("KEEP") or os.path.join(scratch, "results")
        done = subprocess.run(
            [os.path.join(HERE, "run"), "--nccl", nccl, "--no-mps", "--no-build", "--no-times",
             "--idle", "120", "--node-from", "0", "--budget", "600", "--results", results, "--work",
             os.path.join(scratch, "work"), "--only", words], env=settings, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        expect(done.returncode == 0, "the matrix runs and every cell is complete", done.stdout)
        with open(os.path.join(results, "results.json"), encoding="utf-8") as file:
            found = json.load(file)
        cells = found["matrix"]
        expect(all(cell["is_complete"] and cell["eager"] == cell["recorded_eager"] for cell in cells),
               "recorded = issued: %s of %s eager calls" % (
                   sum(cell.get("recorded_eager", 0) for cell in cells),
                   sum(cell.get("eager", 0) for cell in cells)))
        expect(any(found[name] for name in ("matrix", "scenes", "endings", "cost", "accuracy")),
               "there are results")
        merged = os.path.join(scratch, "merged")
        done = subprocess.run([os.path.join(HERE, "run"), "--merge", os.path.join(results, "results.json"),
                               os.path.join(results, "results.json"), "-o", merged, "--suffix", "test"],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        expect(done.returncode == 0 and os.listdir(merged), "results are merged into pages", done.stdout)
        with open(os.path.join(merged, "merged.json"), encoding="utf-8") as file:
            both = json.load(file)
        expect(len(both["matrix"]) == len(cells), "a cell that ran twice is shown once")
    print("1..%d" % COUNT[0])
    return 1 if COUNT[1] else 0


sys.exit(main())
