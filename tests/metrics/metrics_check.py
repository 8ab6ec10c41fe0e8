#!/usr/bin/env python3
"""Reads metrics with other people's parsers and compares.

metrics_check.py same TEXT OPENMETRICS PROTOBUF NAMES   the three say the same, and what the table says
metrics_check.py once TEXT...                           no series is in two of the files, or in one twice
metrics_check.py sum TEXT NAME [LABEL=VALUE...]         the sum over all series that match
metrics_check.py grows EARLIER LATER                    no counter decreased, except nccl_wait_seconds_total
metrics_check.py report TEXT JSON                       the sums of `ringside report --json --by
                                                        comm,rank,function,size,source`
"""
import codecs
import json
import math
import subprocess
import sys

from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser as strict_parser


def fail(why):
    print(why)
    sys.exit(1)


def key_of(sample):
    return sample.name, frozenset(sample.labels.items())


def samples_of(families):
    """A dictionary of samples; HELP by the family name of text 0.0.4."""
    samples, helps = {}, {}
    for family in families:
        for sample in family.samples:
            if sample.timestamp is not None:
                fail(f"{sample.name} has a timestamp")
            if key_of(sample) in samples:
                fail(f"{sample} is a duplicate")
            samples[key_of(sample)] = float(sample.value)
        suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
        name = family.name if family.name.endswith(suffix) else family.name + suffix
        helps[name] = family.documentation
    return samples, helps


def read_text(path):
    with open(path, encoding="utf-8") as file:
        return samples_of(text_parser.text_string_to_metric_families(file.read()))


def read_openmetrics(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        return samples_of(strict_parser.text_string_to_metric_families(file.read()))


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def decode(path):
    with open(path, "rb") as file:
        data = file.read()
    at, stream = 0, bytearray()
    while at < len(data):
        length, body = varint(data, at)
        stream += b"\x0a" + data[at : body + length]
        at = body + length
    return subprocess.run(
        ["protoc", "--proto_path=tests/metrics", "--decode=io.prometheus.client.Families",
         "tests/metrics/metrics.proto"],
        input=bytes(stream), stdout=subprocess.PIPE, check=True).stdout.decode()


def parse(lines):
    """protoc's text: a dictionary of lists."""
    message = {}
    for line in lines:
        line = line.strip()
        if line == "}":
            return message
        if line.endswith(" {"):
            message.setdefault(line[:-2], []).append(parse(lines))
            continue
        key, value = line.split(": ", 1)
        if value.startswith('"'):
            value = codecs.escape_decode(value[1:-1].encode())[0].decode()
        message.setdefault(key, []).append(value)
    return message


def bound_text(value):
    return repr(float(value))


def check_native(histogram, labels):
    """Native and classic buckets must agree."""
    if int(histogram["schema"][0]) != 3 or float(histogram["zero_threshold"][0]) != 2.0**-22:
        fail(f"wrong schema or threshold: {labels}")
    counts, index, count = {-176: int(histogram["zero_count"][0])}, 0, 0
    deltas = iter(histogram.get("positive_delta", []))
    for span in histogram.get("positive_span", []):
        index += int(span["offset"][0])
        for _ in range(int(span["length"][0])):
            count += int(next(deltas))
            if count <= 0 or index in counts:
                fail(f"bucket {index} has {count}: {labels}")
            counts[index] = count
            index += 1
    if next(deltas, None) is not None or sum(counts.values()) != int(histogram["sample_count"][0]):
        fail(f"native buckets do not add up: {labels}")
    for bucket in histogram["bucket"]:
        bound = float(bucket["upper_bound"][0])
        below = sum(n for i, n in counts.items() if 2.0 ** (i / 8) <= bound)
        if below != int(bucket["cumulative_count"][0]):
            fail(f"{below} below {bound}, unlike the classic bucket: {labels}")


def histogram_samples(name, labels, histogram):
    for bucket in histogram["bucket"]:
        le = bound_text(bucket["upper_bound"][0])
        yield (name + "_bucket", labels | {("le", le)}), float(bucket["cumulative_count"][0])
    count = float(histogram["sample_count"][0])
    yield (name + "_bucket", labels | {("le", "+Inf")}), count
    yield (name + "_count", labels), count
    yield (name + "_sum", labels), float(histogram["sample_sum"][0])


def read_protobuf(path):
    samples, helps = {}, {}
    for family in parse(iter(decode(path).splitlines())).get("family", []):
        name = family["name"][0]
        helps[name] = family["help"][0]
        for metric in family["metric"]:
            labels = frozenset((l["name"][0], l["value"][0]) for l in metric.get("label", []))
            kind = next(k for k in ("gauge", "counter", "histogram") if k in metric)
            if kind.upper() != family["type"][0]:
                fail(f"{name} is {family['type'][0]} and has a {kind}")
            found = [((name, labels), float(metric[kind][0].get("value", [0])[0]))]
            if kind == "histogram":
                check_native(metric[kind][0], labels)
                found = list(histogram_samples(name, labels, metric[kind][0]))
            for key, value in found:
                if key in samples:
                    fail(f"{key} is a duplicate")
                samples[key] = value
    return samples, helps


def read_names(path):
    names = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, kind, labels, documentation = line.rstrip("\n").split("\t")
            names[name] = kind, set(filter(None, labels.split(","))), documentation
    return names


def check_table(samples, helps, names):
    """Every sample, label and HELP must be in the table."""
    for name, text in helps.items():
        if name not in names or names[name][2] != text:
            fail(f"{name}: HELP differs from the table")
    for name, labels in samples:
        base = name
        for suffix in ("_bucket", "_sum", "_count"):
            if name not in names and name.endswith(suffix):
                base = name[: -len(suffix)]
        extra = {label for label, _ in labels} - names[base][1] - {"le"}
        if name == "nccl_job_info":
            extra = {label for label in extra if not label.startswith("label_")}
        if extra:
            fail(f"{name} has labels {extra} that are not in the table")


def compare(what, got, wanted):
    for key in wanted.keys() | got.keys():
        if got.get(key) != wanted.get(key):
            fail(f"{what}: {key} is {got.get(key)}, in text {wanted.get(key)}")


def same(text, openmetrics, protobuf, names):
    samples, helps = read_text(text)
    table = read_names(names)
    check_table(samples, helps, table)
    for what, (others, other_helps) in (
        ("openmetrics", read_openmetrics(openmetrics)),
        ("protobuf", read_protobuf(protobuf)),
    ):
        compare(what, others, samples)
        compare(what + " HELP", other_helps, helps)
    print(f"{len(samples)} samples, {len(helps)} of {len(table)} families")


def once(*paths):
    seen = {}
    for path in paths:
        for key in read_text(path)[0]:
            if key in seen:
                fail(f"{key} is in {seen[key]} and {path}")
            seen[key] = path
    print(f"{len(seen)} samples")


def total(path, name, *wanted):
    pairs = {tuple(w.split("=", 1)) for w in wanted}
    values = [v for (n, labels), v in read_text(path)[0].items() if n == name and pairs <= labels]
    print(f"{math.fsum(values):.15g}" if values else "none")


def grows(earlier, later):
    with open(earlier, encoding="utf-8") as file:
        families = list(text_parser.text_string_to_metric_families(file.read()))
    after, count = read_text(later)[0], 0
    for family in families:
        if family.type not in ("counter", "histogram") or not family.name.startswith("nccl_"):
            continue
        if family.name.startswith("nccl_wait_seconds"):
            continue
        for sample in family.samples:
            count += 1
            if after.get(key_of(sample), -1) < sample.value:
                fail(f"{sample} decreased to {after.get(key_of(sample))}")
    print(f"{count} counters")


def size_text(row):
    least = row["size_least"]
    if least is None:
        return "unknown"
    if least < 256:
        return "0" if least == 0 else "1B"
    power = min(int(math.log2(least)), 33)
    return f"{2 ** (power % 10)}{['B', 'KiB', 'MiB', 'GiB'][power // 10]}"


def reported_sums(path):
    """By (communicator's hash, global rank, function, size): calls, bytes, timed ns, timed calls; and timed
    calls of all sizes."""
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    sums, timed = {}, {}
    for row in report["custom"][0]["rows"]:
        member = (report["communicators"][row["comm_index"]]["hash"][2:], row["rank"])
        key = member + (row["function"], size_text(row))
        is_timed = row["source"] in ("kernel_gpu", "cuda_event")
        old = sums.get(key, (0, 0, 0, 0))
        sums[key] = (old[0] + row["calls"], old[1] + row["bytes"],
                     old[2] + (row["sum_ns"] if is_timed else 0),
                     old[3] + (row["timed"] if is_timed else 0))
        timed[key[:3]] = timed.get(key[:3], 0) + (row["timed"] if is_timed else 0)
    return sums, timed


def report(path, json_path):
    samples = read_text(path)[0]
    ranks = {}
    for (name, labels), _ in samples.items():
        if name == "nccl_communicator_info":
            of = dict(labels)
            # Of several ranks of a process it is not always known which one it is.
            unplaced = f"{of['rank']} of {of['comm_name']}"
            ranks[of["comm"], of["rank"]] = of.get("global_rank", unplaced)
    sums, timed = reported_sums(json_path)

    def collect(name, last):
        found = {}
        for (sample, labels), value in samples.items():
            of = dict(labels)
            if sample == name:
                member = (of["comm"], ranks[of["comm"], of["rank"]], of["function"])
                found[member + ((of["size"],) if last else ())] = value
        return found

    compare_all = (
        ("nccl_operations_total", True, {k: float(v[0]) for k, v in sums.items()}),
        ("nccl_operation_bytes_total", True, {k: float(v[1]) for k, v in sums.items()}),
        ("nccl_timed_operations_total", True, {k: float(v[3]) for k, v in sums.items()}),
        # Untimed operations have no sample.
        ("nccl_operation_seconds_total", True, {k: v[2] / 1e9 for k, v in sums.items() if v[3]}),
        ("nccl_operation_duration_seconds_count", False,
         {k: float(v) for k, v in timed.items() if v}),
    )
    for name, last, wanted in compare_all:
        got = collect(name, last)
        for key in got.keys() | wanted.keys():
            if got.get(key) != wanted.get(key):
                fail(f"{name} {key} is {got.get(key)}, reported {wanted.get(key)}")
    print(f"{len(sums)} rows")


if __name__ == "__main__":
    commands = {"same": same, "once": once, "sum": total, "grows": grows, "report": report}
    commands[sys.argv[1]](*sys.argv[2:])
