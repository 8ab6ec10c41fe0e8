"""Start N ranks of a Python script with the environment that torchrun would give them:

    start_ranks.py N PORT SCRIPT ARGUMENT...
"""

import os
import subprocess
import sys
import time


def main():
    ranks, port, script = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    processes = []
    for rank in range(ranks):
        settings = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks),
                        LOCAL_WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        processes.append(subprocess.Popen([sys.executable] + script, env=settings))
    patience = 50
    while any(process.poll() is None for process in processes):
        if any(process.poll() for process in processes):
            patience -= 1
            if patience == 0:
                for process in processes:
                    process.kill()
        time.sleep(0.1)
    return max(abs(process.returncode) for process in processes)


sys.exit(main())
