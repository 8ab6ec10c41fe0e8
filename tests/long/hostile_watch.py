"""Asks an agent for HOSTILE_SECONDS, and says what it shows of four jobs at the end: hostile_watch.py PORT PID-OF-AGENT

A line per job, and lines "time NAME VALUE" with how long it answered, in ms.
"""
import glob
import http.client
import json
import os
import sys
import time

PORT, AGENT = int(sys.argv[1]), int(sys.argv[2])
JOBS = {"well-1": 2001, "well-2": 2002, "well-3": 2003, "hung": 2004}


def cpu_ms():
    with open(f"/proc/{AGENT}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e6


def ask(path):
    # Not from the attackers' address: an agent limits connections for each.
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60, source_address=("127.0.0.2", 0))
    connection.request("GET", path, headers={"Host": "localhost"})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return text if answer.status == 200 else None


def own_pids(uid):
    return {int(os.path.basename(path).split("-")[0]) for path in glob.glob(f"/dev/shm/ringside-{uid}/*.region")}


def shown(now, name, uid):
    own = own_pids(uid)
    indices = {process["job_index"] for process in now["processes"] if process["pid"] in own}
    names = {now["jobs"][index]["name"] for index in indices}
    of_job = [process["pid"] for process in now["processes"] if process["job_index"] in indices]
    named = [f"{verdict['class']}: rank {verdict['rank']}" for verdict in now["verdicts"] if verdict["job"] in names]
    return (f"{name} of {uid}: {sum(pid in own for pid in of_job)} of its own, {sum(pid not in own for pid in of_job)} others, "
            f"{', '.join(named) or 'no verdict'}")


waits, spent, failed = [], [], 0
until = time.monotonic() + float(os.environ["HOSTILE_SECONDS"])
while time.monotonic() < until:
    cpu, began = cpu_ms(), time.monotonic()
    try:
        failed += ask("/metrics") is None
    except OSError:
        failed += 1
    waits.append(1000 * (time.monotonic() - began))
    spent.append(cpu_ms() - cpu)
    time.sleep(0.25)
now = json.loads(ask("/api/v1/now"))
for name, uid in JOBS.items():
    print(shown(now, name, uid))
waits.sort()
print(f"time metrics_median_ms {waits[len(waits) // 2]:.1f}")
print(f"time metrics_99_ms {waits[len(waits) * 99 // 100]:.1f}")
print(f"time metrics_most_ms {waits[-1]:.1f}")
print(f"time metrics_cpu_most_ms {max(spent):.1f}")
print(f"time answers_missing {failed} of {len(waits)}")
print(f"time agent_cpu_percent {100 * cpu_ms() / 1000 / float(os.environ['HOSTILE_SECONDS']):.1f}")
