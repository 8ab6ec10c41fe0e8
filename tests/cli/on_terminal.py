"""Run a command on a terminal: on_terminal.py ROWS COLUMNS COMMAND... Prints what the terminal got, as text; the exit code is the command's."""
import fcntl
import os
import pty
import struct
import sys
import termios


def main():
    rows, columns, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    child, end = pty.fork()
    if child == 0:
        # The parent sets the size: wait for it.
        sys.stdin.readline()
        os.execvp(command[0], command)
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    attributes = termios.tcgetattr(end)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(end, termios.TCSANOW, attributes)
    os.write(end, b"\n")
    got = b""
    while True:
        try:
            part = os.read(end, 65536)
        except OSError:
            break
        if not part:
            break
        got += part
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.stdout.write(got.decode(errors="replace").replace("\r\n", "\n"))
    return code if code >= 0 else 128 - code


sys.exit(main())
