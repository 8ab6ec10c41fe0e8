#!/usr/bin/env bash
# One user has more than the agent follows: it stays within the memory of its unit, says what it leaves out, and
# shows and judges the jobs of others.
. "$(dirname "$0")/agent.sh"
[ "$(id -u)" -eq 0 ] || tap_skip_all "needs root, to act as another user"
command -v python3 >/dev/null || tap_skip_all "python3 is not installed"
limit_kib=$(($(sed -n 's/^MemoryMax=\([0-9]*\)M$/\1/p' packaging/systemd/ringside-agent.service) * 1024))
stranger=12345
hoarder=12346

# A simulated job of this user that runs, 120 regions of another one, and too many files of a third.
start_sim --gpus 2
has_regions() { [ "$(find "$shm" -name '*.region' | wc -l)" -eq 2 ]; }
until_ok has_regions
template=$(find "$shm" -name '*.region' | head -n 1)
mkdir "$shm/ringside-$stranger"
chmod 0777 "$shm/ringside-$stranger"
python3 tests/agent/forge_regions.py "$template" "$shm/ringside-$stranger" 120
mkdir "$shm/ringside-$hoarder"
(cd "$shm/ringside-$hoarder" && seq 1 6000 | xargs touch)
chown -R "$stranger:$stranger" "$shm/ringside-$stranger"
chown "$hoarder:$hoarder" "$shm/ringside-$hoarder"

start_agent --hang 20s
# An expression over the agent's answer, as Python has it; jobs are by name, left_out by user.
now() { # expression
	fetch /api/v1/now | python3 -c 'import json, sys
answer = json.load(sys.stdin)
jobs = {job["name"]: job for job in answer["jobs"]}
left_out = {user["uid"]: user for user in answer["left_out"]}
print(eval(sys.argv[1]))' "$1" 2>/dev/null
}
finds() { # expression wanted
	[ "$(now "$1")" = "$2" ]
}
expect_soon "each region is either followed or counted as left out" \
	finds "0 < jobs['forged']['processes'] < 60 and left_out[$stranger]['processes'] == 120 - jobs['forged']['processes']" True
left=$(now "left_out[$stranger]['processes']")
expect_soon "and so are directories with too many files" finds "left_out[$hoarder]['directories']" 1
expect_ok "per user, as a metric" shows \
	"^ringside_agent_user_left_out\{user=\"$stranger\",what=\"processes\"\} $left$"
expect_ok "and in total" shows "^ringside_agent_left_out_processes $left$"
expect_same "in one line" "$(times_said "user $stranger has more than the agent follows")" 1

expect_soon "the other job is there with its processes" finds 'jobs["sim-1"]["processes"]' 2
expect_soon "its ranks call operations" finds \
	'sum(m["operations_per_s"] > 0 for c in answer["communicators"] if c["label"] == "world" for m in c["members"])' 2
expect_soon "its hangs are judged" finds 'jobs["sim-1"]["hangs"]["is_judged"]' True
expect_ok "its metrics are complete" shows '^nccl_operations_total\{.*nccl_job="sim-1".*rank="1"'
expect_same "it is in the summary" "$(fetch /api/v1/summary |
	python3 -c 'import json, sys; print(*[job["ranks"] for job in json.load(sys.stdin)["jobs"] if job["name"] == "sim-1"])')" 2

for path in /metrics /api/v1/now "/api/v1/history?after=0" "/api/v1/snapshot?operations=1000"; do
	size=$(fetch "$path" -o /dev/null -w '%{size_download}')
	expect_ok "an answer is bounded: $path" test "$size" -gt 0 -a "$size" -le $((32 * 1024 * 1024))
done
peak_kib=$(awk '/^VmHWM/ { print $2 }' "/proc/$agent_pid/status")
expect_ok "its memory stays below half of its unit's, at $peak_kib KiB" test "$peak_kib" -le $((limit_kib / 2))

stop_sim TERM
stop_agent
expect_same "it ends cleanly" "$?" 0
tap_done
