"""Runs a command in a pseudo terminal as a shell would, for tests/top/terminal.mjs.

	terminal_bridge.py COLUMNS ROWS COMMAND...

What the command writes comes out of our stdout. Lines on our stdin say what to do:

	keys HEX	press these
	size COLUMNS ROWS
	signal NUMBER	to the command
	modes		write a line to stderr: echo, line mode, is the command stopped

When it ends, a last line of modes comes, and our exit code is the command's, or 128 and the signal.
"""
import fcntl
import os
import select
import signal
import struct
import sys
import termios


def resize(fd, columns, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def is_stopped(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] == "T"


def tell_modes(fd, stopped):
    local = termios.tcgetattr(fd)[3]
    echo, lines = bool(local & termios.ECHO), bool(local & termios.ICANON)
    print(f"modes echo={echo} lines={lines} stopped={stopped}", file=sys.stderr, flush=True)


def obey(line, fd, pid):
    word, *rest = line.split()
    if word == "keys":
        os.write(fd, bytes.fromhex(rest[0]))
    elif word == "size":
        resize(fd, int(rest[0]), int(rest[1]))
    elif word == "signal":
        os.kill(pid, int(rest[0]))
    elif word == "modes":
        tell_modes(fd, is_stopped(pid))


def relay(fd, pid, shell):
    """Runs until the shell has exited and all output was read."""
    ended = os.pidfd_open(shell)
    sources, rest = [fd, 0, ended], b""
    while True:
        ready = select.select(sources, [], [])[0]
        if fd in ready:
            os.write(1, os.read(fd, 65536))
        elif ended in ready:
            return
        if 0 in ready:
            data = os.read(0, 65536)
            if not data:
                sources.remove(0)
                os.kill(pid, signal.SIGKILL)
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                obey(line.decode(), fd, pid)


def become_shell(slave, tell, command):
    """Starts a session with a foreground job: Ctrl-Z stops only those."""
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in range(3):
        os.dup2(slave, fd)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    go_from, go_to = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.read(go_from, 1)
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(command[0], command)
    os.setpgid(pid, pid)
    os.tcsetpgrp(0, pid)
    os.write(tell, struct.pack("i", pid))
    os.write(go_to, b"x")
    status = os.waitpid(pid, 0)[1]
    os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


def main():
    # Keep the other end open, so that modes can be read after the end.
    fd, slave = os.openpty()
    resize(fd, int(sys.argv[1]), int(sys.argv[2]))
    told, tell = os.pipe()
    shell = os.fork()
    if shell == 0:
        os.close(fd)
        become_shell(slave, tell, sys.argv[3:])
    pid = struct.unpack("i", os.read(told, 4))[0]
    relay(fd, pid, shell)
    tell_modes(fd, False)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(shell, 0)[1]))


main()
