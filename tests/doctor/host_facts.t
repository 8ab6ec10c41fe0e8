#!/usr/bin/env bash
# Verdicts name the port, the clock and the Xid behind them; facts alone accuse nobody. The facts of the hosts are given, as
# agents send them (agent.json); those of the GPU were read from NVML on an H200 (docs/results/host-facts-h200.txt).
. "$(dirname "$0")/slowness.sh"

begin=1767225600 # of simulated jobs

# The job and what an agent on one of its hosts knows as one archive. Times in lines are @SECONDS after the start.
with_facts() { # job archive host < lines
	python3 - "$tap_scratch/$1" "$tap_scratch/$2" "$3" "$begin" <<PYTHON
import glob, io, json, os, re, sys, tarfile

job, archive, host, begin = sys.argv[1:]
lines = """$(cat)""".splitlines()
lines = [re.sub(r"@(-?\d+)", lambda at: str(int(begin) + int(at.group(1))), line) for line in lines if line]
note = json.dumps({"host": host, "host_facts": ["time %d %d" % (int(begin) - 100, int(begin) + 14)] + lines}).encode()
with tarfile.open(archive, "w", format=tarfile.USTAR_FORMAT) as tar:
    for path in sorted(glob.glob(job + "/*.ringside")):
        tar.add(path, "traces/" + os.path.basename(path))
    info = tarfile.TarInfo(host + "/agent.json")
    info.size = len(note)
    tar.addfile(info, io.BytesIO(note))
PYTHON
}

gpu_of() { # job rank: "bus pid"
	"$ringside" ls --json "$tap_scratch/$1" | python3 -c 'import json, sys
for p in json.load(sys.stdin)["processes"]:
    if p["rank"] == int(sys.argv[1]): print(p["communicators"][0]["gpu_bus"], p["pid"])' "$2"
}

evidence() { value evidence; }
notes() { # archive: rules of notes
	python3 -c 'import json, sys
print(" ".join(sorted(v["rule"] for v in json.load(open(sys.argv[1]))["verdicts"]
                      if v["class"] == "setup" and v["severity"] == "note")))' "$tap_scratch/named.json"
}

# ---- a slow rank ------------------------------------------------------------------------------------
size=(--nodes 4 --gpus 4 --seconds 15s)
simulate rank "${size[@]}" -w fsdp --seed 3 -f slow-rank:rank=5,factor=1.3
read -r gpu pid <<<"$(gpu_of rank 5)"
read -r other _ <<<"$(gpu_of rank 6)"

# The clock of the H200 with a job, and after its power was capped.
clock() { # section
	awk -v section="$1" '/^== / { is_in = $2 == section } is_in && $1 == "series" && $2 == "gpu_clock" { print $4; exit }' \
		docs/results/host-facts-h200.txt
}
fast=$(clock job) slow=$(clock capped)
expect_ok "the H200 was slower when it was capped" test "$slow" -lt "$fast"
with_facts rank clock.tar node0001 <<FACTS
series gpu_clock $gpu $slow @14 @-100:$fast @4:$slow
series gpu_clock $other $fast @14 @-100:$fast
series gpu_throttle $gpu 4 @14 @-100:4
series process_throttled_us $pid 9000000 @14 @-100:1000000 @10:9000000
FACTS
expect_same "a slow rank" "$(named clock.tar)" "slow_rank 5"
fast_text=${fast:0:-3},${fast: -3}
expect_ok "names the clock that dropped, since when, and the reason" grep -q \
	"Its GPU ($gpu) runs at $slow MHz since 00:00:04, the other 1 GPU of its host at $fast_text MHz; throttle reason: power cap\." \
	<(evidence)
expect_ok "and the CPU quota" grep -q "The CPU quota of its cgroup stopped its threads for 8.00 s since 00:00:10\." <(evidence)

with_facts rank xid.tar node0001 <<FACTS
event xid ${gpu%.0} 94 -1 @3 @9 2 Contained: SM (0x1). RST: No, D-RST: No
event xid ${other%.0} 79 -1 @3 @3 1 GPU has fallen off the bus.
event xid ${gpu%.0} 48 -1 @-3600 @-3600 1 before the job
FACTS
named xid.tar >/dev/null
expect_ok "an Xid of its GPU in the time of the job" grep -q "Xid 94 on its GPU (${gpu%.0}) at 00:00:03, 2 times until 00:00:09: contained" \
	<(evidence)
expect_same "not of another GPU, and none from before the job" "$(evidence | grep -cE "Xid (79|48)")" 0

with_facts rank idle.tar node0001 <<FACTS
series gpu_clock $gpu 345 @14 @-100:$fast @4:345
series gpu_clock $other $fast @14 @-100:$fast
series gpu_throttle $gpu 1 @14 @-100:1
series port_state mlx5_3/1 4 @14 @-100:4
series port_symbol_error mlx5_3/1 4911 @14 @-100:700 @5:4911
FACTS
named idle.tar >/dev/null
expect_same "an idle GPU has a low clock, and a port makes no rank compute slower" "$(evidence | grep -cE "MHz|symbol")" 0

with_facts rank elsewhere.tar node0002 <<FACTS
series gpu_clock $gpu 345 @14 @-100:$fast @4:345
series gpu_throttle $gpu 64 @14 @-100:0 @4:64
FACTS
named elsewhere.tar >/dev/null
expect_same "facts of another host are not its own" "$(evidence | grep -cE "MHz")" 0

# ---- a slow link ------------------------------------------------------------------------------------
simulate link "${size[@]}" -w fsdp --seed 3 -f slow-link:from=3,to=4
ports='series port_state mlx5_0/1 4 @14 @-100:4
series port_state mlx5_1/1 4 @14 @-100:4
series port_state mlx5_3/1 4 @14 @-100:4'
with_facts link port.tar node0000 <<FACTS
$ports
series port_rate mlx5_3/1 100000 @14 @-100:400000 @5:100000
series port_symbol_error mlx5_3/1 4911 @14 @-100:700 @5:2000 @6:4911
series port_symbol_error mlx5_1/1 9000 @14 @-100:10 @-50:9000
FACTS
expect_same "a slow link" "$(named port.tar)" "slow_link 3>4"
expect_ok "names the port and its counters" grep -q \
	"Host node0000, mlx5_3 port 1: 4,211 symbol errors since 00:00:05 (the other 2: none)\." <(evidence)
expect_ok "and that it became slower" grep -q "mlx5_3 port 1 runs at 100 Gb/s since 00:00:05, before at 400 Gb/s\." <(evidence)
expect_same "a counter that moved before the job is not mentioned" "$(evidence | grep -cE "mlx5_1")" 0
with_facts link peer.tar node0001 <<FACTS
$ports
series port_link_downed mlx5_1/1 3 @14 @-100:1 @9:3
FACTS
named peer.tar >/dev/null
expect_ok "a port at the other end" grep -q "Host node0001, mlx5_1 port 1: 2 link failures since 00:00:09" <(evidence)
with_facts link all.tar node0000 <<FACTS
$ports
series port_out_of_sequence mlx5_0/1 5000 @14 @-100:0 @5:5000
series port_out_of_sequence mlx5_1/1 5100 @14 @-100:0 @5:5100
series port_out_of_sequence mlx5_3/1 5200 @14 @-100:0 @5:5200
FACTS
named all.tar >/dev/null
expect_same "what all ports have distinguishes none" "$(evidence | grep -cE "out of sequence")" 0

# ---- a healthy job on hosts with bad facts ------------------------------------------------------------
simulate good "${size[@]}" -w fsdp --seed 11
read -r gpu pid <<<"$(gpu_of good 5)"
with_facts good bad.tar node0001 <<FACTS
$ports
series gpu_clock $gpu 345 @14 @-100:$fast @4:345
series gpu_throttle $gpu 64 @14 @-100:0 @4:64
series port_symbol_error mlx5_3/1 4911 @14 @-100:700 @5:4911
series disk_free /dev/shm 2 @14 @-100:500 @4:2
series process_throttled_us $pid 9000000 @14 @-100:1000000 @10:9000000
event xid ${gpu%.0} 63 -1 @3 @3 1 Row remapper
FACTS
expect_same "a healthy job with bad facts: nobody is accused" "$(named bad.tar)" ""
expect_ok "it is healthy" "$ringside" doctor "$tap_scratch/bad.tar"
expect_same "what is known stands in notes" "$(notes)" "host-disk host-gpu host-port host-xid"
with_facts good old.tar node0001 <<FACTS
$ports
series port_symbol_error mlx5_3/1 4911 @-50 @-100:700 @-50:4911
event xid ${gpu%.0} 79 -1 @-3600 @-3600 1 GPU has fallen off the bus.
event xid ${gpu%.0} 31 4711 @3 @3 1 MMU Fault
FACTS
named old.tar >/dev/null
expect_same "nothing from before the job, and no errors of programs" "$(notes)" ""

tap_done
