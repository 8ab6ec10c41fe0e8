"""One user's attacks on an agent of root, all at once: attackers.py UID DIRECTORY TEMPLATE PORT SILENT_FILES STUCK_JOB SILENT_SO

DIRECTORY is where the agent looks for regions, in memory, and TEMPLATE a region; the programs are those of tests/cli/silent_files.c, tests/cli/stuck_job.c and
tests/agent/silent_environment.c. $BUILD must be readable to everybody. Runs until it is killed, and its attackers with it. Prints the name of each attack that
has begun, or why it could not.
"""
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time

UID, DIRECTORY, TEMPLATE, PORT = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
SILENT_FILES, STUCK_JOB, SILENT_SO = sys.argv[5:8]
# Of the system, which everybody may run.
PYTHON = "/usr/bin/python3"
BUILD, HERE = os.environ["BUILD"], os.path.dirname(os.path.abspath(__file__))
OWN = f"{DIRECTORY}/ringside-{UID}"
VICTIMS = ("well-1", "well-2", "well-3", "hung")
CLONE_NEWNS, CLONE_NEWUSER, MS_BIND, MS_PRIVATE, MS_REC, MNT_DETACH = 0x20000, 0x10000000, 4096, 1 << 18, 16384, 2
libc = ctypes.CDLL(None, use_errno=True)


def call(function, *arguments):
    if function(*arguments) == -1:
        error = ctypes.get_errno()
        raise OSError(error, f"{function.__name__}: {os.strerror(error)}")


def own_mounts():
    """A namespace in which this user may mount."""
    call(libc.unshare, CLONE_NEWUSER | CLONE_NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {UID} 1"), ("gid_map", f"0 {UID} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    call(libc.mount, None, b"/", None, MS_PRIVATE | MS_REC, None)


def own_directory(name):
    path = f"/tmp/attack-{os.getpid()}-{name}"
    os.mkdir(path)
    return path


def job(name, *options, rank=0, ranks=1, **more):
    """A process with the recorder, which runs until it is killed."""
    return subprocess.Popen([f"{BUILD}/tests/process/process_job", "end=hold", f"rank={rank}", f"ranks={ranks}", *options], stdin=subprocess.PIPE,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            env={**os.environ, "PLUGIN": f"{BUILD}/libnccl-profiler-ringside.so", "RINGSIDE_SHM": DIRECTORY, "RINGSIDE_JOB": name,
                                 "RINGSIDE_BUFFER": "1MiB", "RANK": str(rank), "WORLD_SIZE": str(ranks), **more})


def forged():
    """Regions that no recorder wrote."""
    subprocess.run([PYTHON, f"{HERE}/forge_regions.py", TEMPLATE, OWN, "300"], check=True)
    yield


def crowd():
    """Many processes with many communicators."""
    for rank in range(48):
        job("crowd", "ops=200", "comms=16", rank=rank, ranks=48)
    yield


def names():
    """Jobs and ranks of others, and names that look like theirs."""
    for name in VICTIMS:
        for shown in (name, f"{name} (uid {UID + 1})", f"{name} (uid 2001)", f"{name} (uid 2004)", name + " " * 90):
            job(shown, "ops=200", "name=world", rank=1, ranks=2)
    yield


def churn():
    """Regions and processes that come and go."""
    yield
    with open(TEMPLATE, "rb") as file:
        text = file.read()
    while True:
        process = job("churn", "ops=10")
        for i in range(20):
            with open(f"{OWN}/{99000 + i}-1.region", "wb") as file:
                file.write(text[:1 << 16] if i % 2 else text)
        time.sleep(0.2)
        process.kill()
        process.wait()
        for i in range(20):
            # The recorder of a job of the same user may have been faster.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{OWN}/{99000 + i}-1.region")


def files():
    """A directory with more files than anybody searches."""
    for i in range(20000):
        with open(f"{OWN}/{i}", "wb"):
            pass
    yield


def descriptors():
    """Memory with the name of a region, thousands of times."""
    for i in range(900):
        os.memfd_create("ringside-region" if i % 2 else "ringside", 0)
    for _ in range(8):
        if os.fork() == 0:
            signal.pause()
    yield


def clients():
    """Clients that mean no good."""
    for kind in ("many", "half", "deaf", "drip"):
        subprocess.Popen([PYTHON, f"{HERE}/hostile_clients.py", kind, "127.0.0.1", PORT], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    yield
    while True:
        subprocess.run([PYTHON, f"{HERE}/hostile_clients.py", "garbage", "127.0.0.1", PORT], check=False, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)


def serve_silently(name):
    own_mounts()
    path = own_directory(name)
    server = subprocess.Popen([SILENT_FILES, "/tmp/attack-fuse", path], stdout=subprocess.PIPE)
    if b"ready" not in server.stdout.readline():
        raise OSError(0, "no FUSE")
    return path


def silent():
    """A file that never answers, with the name of a region in memory: in an overlay, where root may ask it, too."""
    low = serve_silently("silent")
    place = own_directory("overlay")
    call(libc.mount, b"none", place.encode(), b"overlay", 0, f"lowerdir={low}:{own_directory('empty')}".encode())
    os.open(f"{place}/memfd:ringside", os.O_RDONLY)
    call(libc.umount2, place.encode(), MNT_DETACH)
    yield


def locked():
    """A hung job whose processes answer nobody."""
    path = serve_silently("locked")
    go = own_directory("go")
    for rank in range(4):
        subprocess.Popen([STUCK_JOB, "50"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         env={**os.environ, "NCCL_PROFILER_PLUGIN": f"{BUILD}/libnccl-profiler-ringside.so", "RINGSIDE_SHM": DIRECTORY, "RANK": str(rank),
                              "WORLD_SIZE": "8", "RINGSIDE_JOB": "locked", "RINGSIDE_HOSTS": "a,b", "LD_PRELOAD": SILENT_SO,
                              "SILENT_FILE": f"{path}/read", "SILENT_GO": f"{go}/go"})
    time.sleep(2)
    with open(f"{go}/go", "wb"):
        pass
    yield


def mounts():
    """Long lists of mounts, in many namespaces, each with a /dev/shm."""
    own_mounts()
    place = own_directory("mounts").encode()
    for _ in range(4000):
        call(libc.mount, place, place, None, MS_BIND, None)
    for _ in range(12):
        if os.fork() == 0:
            call(libc.unshare, CLONE_NEWNS)
            call(libc.mount, b"none", b"/dev/shm", b"tmpfs", 0, None)
            signal.pause()
    yield


def begin(attack):
    pid = os.fork()
    if pid != 0:
        return pid
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    os.setgroups([])
    os.setgid(UID)
    os.setuid(UID)
    libc.prctl(1, signal.SIGKILL)
    # /proc/self belongs to root until then: PR_SET_DUMPABLE.
    libc.prctl(4, 1)
    try:
        for _ in attack():
            print(attack.__name__, flush=True)
        while True:
            time.sleep(1000)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{attack.__name__}: {error}", flush=True)
        os._exit(1)


os.makedirs(OWN, mode=0o700, exist_ok=True)
os.chown(OWN, UID, UID)
if not os.path.exists("/tmp/attack-fuse"):
    os.mknod("/tmp/attack-fuse", 0o020666, os.makedev(10, 229))
    os.chmod("/tmp/attack-fuse", 0o666)
for one in (forged, crowd, names, churn, files, descriptors, clients, silent, locked, mounts):
    begin(one)
signal.pause()
