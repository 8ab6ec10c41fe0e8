"""A process with a file that never answers, and that /proc shows as a region in memory: silent_descriptor.py SILENT_FILES DEVICE DIRECTORY

In namespaces of its own it serves such a file, hides it in an overlay, where root may ask it, too, opens it there and takes the overlay out of sight.
Prints the number of the descriptor.
"""
import ctypes
import os
import signal
import subprocess
import sys

CLONE_NEWNS, CLONE_NEWUSER, MNT_DETACH, PR_SET_PDEATHSIG = 0x20000, 0x10000000, 2, 1
libc = ctypes.CDLL(None, use_errno=True)


def call(function, *arguments):
    if function(*arguments) != 0:
        sys.exit(f"{function.__name__}: {os.strerror(ctypes.get_errno())}")


def main(server, device, directory):
    user, group = os.getuid(), os.getgid()
    call(libc.unshare, CLONE_NEWUSER | CLONE_NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    low, empty, place = (os.path.join(directory, name) for name in ("low", "empty", "place"))
    for path in (low, empty, place):
        os.makedirs(path)
    # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
    serving = subprocess.Popen([server, device, low], stdout=subprocess.PIPE,
                               preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    if b"ready" not in serving.stdout.readline():
        sys.exit("no FUSE")
    call(libc.mount, b"none", place.encode(), b"overlay", 0, f"lowerdir={low}:{empty}".encode())
    descriptor = os.open(os.path.join(place, "memfd:ringside"), os.O_RDONLY)
    call(libc.umount2, place.encode(), MNT_DETACH)
    print(descriptor, flush=True)
    signal.pause()


main(*sys.argv[1:])
