"""Reads NCCL Inspector's metrics as its documentation and its dashboard have them.

    inspector_metrics.py check FILE...        grammar, names, labels in order, HELP and TYPE; bounded sizes
    inspector_metrics.py unique FILE...       no series is there twice, in whatever file
    inspector_metrics.py dashboard JOB FILE...    what the dashboard asks for gets an answer
    inspector_metrics.py scrape PORT          a node-exporter: its textfile collector has no error; how many series
    inspector_metrics.py label NAME FILE...   the values of a label, one a line

Exit code 1 and what is wrong otherwise.
"""

import re
import sys
import urllib.request

COMMON = ["version", "slurm_job_id", "node", "gpu", "comm_name", "n_nodes", "nranks"]
COLL = COMMON + ["collective", "message_size", "algo_proto"]
P2P = COMMON + ["p2p_operation", "message_size"]
METRICS = {"nccl_bus_bandwidth_gbs": COLL, "nccl_collective_exec_time_microseconds": COLL,
           "nccl_p2p_bus_bandwidth_gbs": P2P, "nccl_p2p_exec_time_microseconds": P2P}
OWN = [["gpu_uuid"], ["gpu_uuid", "process"]]
SAMPLE = re.compile(r'^([a-z_0-9]+)\{(.*)\} ([0-9]+\.[0-9]{6})$')
LABEL = re.compile(r'([a-z_0-9]+)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
SIZES = re.compile(r'^(0B|1-1024B|([1-9][0-9]*)-([1-9][0-9]*)(KB|MB|GB|TB))$')
# What NVIDIA's dashboard selects and groups by; it also has `cluster`, which Inspector never wrote.
PANELS = [(metric, {"collective": function}) for metric in list(METRICS)[:2]
          for function in ("AllReduce", "AllGather", "ReduceScatter")] + [
         (metric, {"p2p_operation": function}) for metric in list(METRICS)[2:]
         for function in ("Send", "Recv")]
GROUPED = ("message_size", "nranks", "n_nodes", "slurm_job_id")


def fail(where, why):
    print("%s: %s" % (where, why))
    sys.exit(1)


def parse(path):
    """(name, label pairs, value) of each sample; the comments before."""
    samples, heads = [], []
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if not text.endswith("\n"):
        fail(path, "the last line is not whole")
    for line in text.splitlines():
        if line.startswith("# "):
            heads.append(line)
            continue
        match = SAMPLE.match(line)
        if not match:
            fail(path, "no sample: %s" % line)
        pairs, at = [], 0
        while at < len(match.group(2)):
            label = LABEL.match(match.group(2), at)
            if not label:
                fail(path, "no label: %s" % line)
            pairs.append((label.group(1), label.group(2)))
            at = label.end()
        samples.append((match.group(1), pairs, float(match.group(3))))
    return heads, samples


def check(paths):
    texts = set()
    for path in paths:
        heads, samples = parse(path)
        texts.add("\n".join(heads))
        order = list(dict.fromkeys(name for name, _, _ in samples))
        if order != [name for name in METRICS if name in order]:
            fail(path, "metrics are not together, or out of order: %s" % order)
        for name in METRICS:
            if sum(head.startswith("# TYPE %s gauge" % name) for head in heads) != 1:
                fail(path, "no TYPE of %s" % name)
        for name, pairs, value in samples:
            labels = [label for label, _ in pairs]
            if labels[:len(METRICS[name])] != METRICS[name] or labels[len(METRICS[name]):] not in OWN:
                fail(path, "labels of %s are %s" % (name, labels))
            if not SIZES.match(dict(pairs)["message_size"]):
                fail(path, "message_size %s" % dict(pairs)["message_size"])
            if value <= 0:
                fail(path, "%s is %s" % (name, value))
    if len(texts) != 1:
        fail("HELP", "differs between files: %s" % texts)


def unique(paths):
    seen = {}
    for path in paths:
        for name, pairs, _ in parse(path)[1]:
            key = (name, tuple(sorted(pairs)))
            if key in seen:
                fail(path, "%s is in %s, too" % (key, seen[key]))
            seen[key] = path


def dashboard(job, paths):
    samples = [(name, dict(pairs)) for path in paths for name, pairs, _ in parse(path)[1]]
    for metric, wanted in PANELS:
        wanted = dict(wanted, slurm_job_id=job)
        if not any(name == metric and wanted.items() <= labels.items() and
                   all(labels.get(label) for label in GROUPED) for name, labels in samples):
            fail(metric, "nothing for %s" % wanted)


def scrape(port):
    try:
        with urllib.request.urlopen("http://127.0.0.1:%s/metrics" % port, timeout=60) as answer:
            text = answer.read().decode()
    except OSError as error:
        fail(port, "nobody answers: %s" % error)
    if not re.search(r"^node_textfile_scrape_error 0$", text, re.M):
        fail(port, "the collector has an error: %s" % re.findall("^node_textfile.*", text, re.M))
    if "error" in text.splitlines()[0].lower():
        fail(port, text.splitlines()[0])
    print(sum(line.split("{")[0] in METRICS for line in text.splitlines()))


def main():
    what, rest = sys.argv[1], sys.argv[2:]
    if what == "check":
        check(rest)
    elif what == "unique":
        unique(rest)
    elif what == "dashboard":
        dashboard(rest[0], rest[1:])
    elif what == "scrape":
        scrape(rest[0])
    elif what == "label":
        print("\n".join(sorted({dict(pairs).get(rest[0], "") for path in rest[1:]
                                for _, pairs, _ in parse(path)[1]})))
    return 0


if __name__ == "__main__":
    sys.exit(main())
