#!/usr/bin/env bash
# A hung job, and what its processes (--stacks) and NCCL's RAS (--ras) say goes into the verdict: page, log, hook.
# tests/doctor/fake_py_spy stands in for py-spy, tests/doctor/ras_servers.py plays RAS.
. "$(dirname "$0")/agent.sh"
command -v python3 >/dev/null || tap_skip_all "there is no python3"

tools=$tap_scratch/tools
mkdir "$tools"
chmod 755 "$tap_scratch"
place='in torch/utils/data/dataloader.py:1130 in __next__ < /home/u/train.py:88 in step < /home/u/train.py:120 in <module>'
# Simulated ranks sleep, and wake up now and then.
state='(asleep in clock_nanosleep|running)'
cp tests/doctor/fake_py_spy "$tools"
cat >"$tools/py-spy" <<END
#!/bin/sh
grep CapEff /proc/self/status >$tap_scratch/rights
exec $tools/fake_py_spy "\$@"
END
cat >"$tap_scratch/hook" <<END
#!/bin/sh
cat >$tap_scratch/input
echo "\$RINGSIDE_PLACE" >$tap_scratch/place
grep CapEff /proc/self/status >$tap_scratch/hook_rights
END
chmod +x "$tools/py-spy" "$tap_scratch/hook"
before=(env "PATH=$tools:/usr/bin:/bin")

never_arrives() {
	start_sim --nodes 1 --gpus 3 -w loop -f never-arrives:rank=1,at=500ms
}
of_verdict() { # field: of the culprit's verdict
	local said
	said=$(fetch /api/v1/now)
	# Python starts slowly, and this is asked until there is one.
	[[ $said == *'"class":"never_issued"'* ]] || return 0
	python3 -c '
import json, sys
for verdict in json.load(sys.stdin)["verdicts"]:
    if verdict["class"] == "never_issued" and verdict["rank"] == 1 and verdict["severity"] == "error":
        value = verdict[sys.argv[1]]
        print(value if isinstance(value, str) else "\n".join(value or []))' "$1" <<<"$said"
}
verdict_has() { # field pattern
	grep -qE -- "$2" <<<"$(of_verdict "$1")"
}
is_hung() { verdict_has title .; }

# ---- stacks

start_agent --hang 3s --stacks --hook "$tap_scratch/hook"
never_arrives
expect_soon "the culprit's place is in the verdict" verdict_has place "^${place//[().<]/.} \($state\), [0-9.]+ s after its last NCCL call$"
expect_ok "as evidence, too" verdict_has evidence "^Rank 1 is in torch/utils/data/dataloader.py:1130 "
expect_ok "with those that wait" verdict_has evidence "^Ranks? 0(, 2)? (is|are) in torch/utils/data/dataloader.py:1130 "
expect_soon "the log has it, in the line of the verdict" says 'never_issued: .*; place: in torch/utils/data/dataloader.py:1130 .*; evidence: '
expect_same "which is one line" "$(times_said '<3>never_issued|agent: never_issued: .*confidence')" 1
expect_soon "the hook has it in its environment" grep -qE "^${place//[().<]/.} \($state\)" "$tap_scratch/place"
expect_soon "and on standard input" grep -qF '"place":"in torch/utils/data/dataloader.py:1130' "$tap_scratch/input"
if [ "$(id -u)" = 0 ]; then
	expect_same "py-spy has the two rights to read, and no other" "$(tr -d '\t' <"$tap_scratch/rights")" CapEff:0000000000080004
	expect_same "the hook has none" "$(tr -d '\t' <"$tap_scratch/hook_rights")" CapEff:0000000000000000
fi
doctor_has_it() {
	grep -qF "Rank 1 is in torch/utils/data/dataloader.py:1130" \
		<("$BUILD/ringside" doctor --agents "${url#http://}" --hang 2s 2>/dev/null | tr -s ' \n' ' ')
}
[ -x "$BUILD/ringside-fetch" ] && expect_soon "a doctor that asks the agent has it" doctor_has_it
stop_sim TERM
stop_agent

# A tool that hangs does not stop the agent: the verdict comes without frames, and /proc is there.
mv "$tools/py-spy" "$tap_scratch/py-spy"
printf '#!/bin/sh\nexec sleep 1000\n' >"$tools/py-spy"
chmod +x "$tools/py-spy"
start_agent --hang 3s --stacks
never_arrives
is_hanging() { pgrep -f '^sleep 1000$' >/dev/null; }
expect_soon "py-spy hangs" is_hanging
expect_code "meanwhile the agent answers" 200 /api/v1/now
expect_soon "the verdict has what /proc knows" verdict_has place "^$state, "
stop_sim TERM
stop_agent
mv "$tap_scratch/py-spy" "$tools/py-spy"

start_agent --hang 3s --stacks
RINGSIDE_STACKS=0 never_arrives
expect_soon "a job may forbid it" verdict_has missing '^where rank 1 is in its program: RINGSIDE_STACKS=0 in its environment$'
expect_same "then its place is not known" "$(of_verdict place)" ""
stop_sim TERM
stop_agent

start_agent --hang 3s
never_arrives
expect_soon "without --stacks there is a verdict" is_hung
expect_same "and nobody was asked" "$(of_verdict place)" ""
stop_agent
expect_refusal "--native alone" 2 "--native needs --stacks" "$agent" --directory "$shm" --native

# ---- RAS

# What RAS would say of the job that hangs now: rank 1 does not answer, or answers for others.
write_answer() { # shift of process ids
	RINGSIDE_SHM=$shm "$BUILD/ringside" ls --json 2>/dev/null >"$tap_scratch/ls.json"
	python3 - "$tap_scratch" "$1" <<'END'
import json, sys
where, shift = sys.argv[1], int(sys.argv[2])
with open(f"{where}/ls.json", encoding="utf-8") as file:
    alive = [process for process in json.load(file)["processes"] if process["state"] == "alive"]
pids = {process["rank"]: process["pid"] for process in alive}
hashes = {comm["comm_hash"] for process in alive for comm in process["communicators"]}
counts = {"Broadcast": 0, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0, "AllReduce": 10}
status = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False}
rank = lambda number, **rest: {"rank": number, "host": "127.0.0.1", "pid": pids[number] + shift, "cuda_dev": 0, "nvml_dev": 0, **rest}
json.dump({"nccl_version": "2.30.7", "communicators_count": len(hashes), "communicators": [{
    "hash": item, "size": 3, "ranks_count": 2, "missing_ranks_count": 1,
    "ranks": [rank(number, status=status, collective_counts=counts) for number in (0, 2)],
    "missing_ranks": [rank(1, status={"unresponsive": True, "considered_dead": True})]} for item in hashes]},
    open(f"{where}/answer.json", "w", encoding="utf-8"), indent=2)
END
}
ras() { # kind: sets port
	rm -f "$tap_scratch/port"
	python3 tests/doctor/ras_servers.py "$1" "$tap_scratch/answer" "$tap_scratch/commands" >"$tap_scratch/port" &
	ras_pid=$!
	started+=("$ras_pid")
	until_ok test -s "$tap_scratch/port"
	port=$(cat "$tap_scratch/port")
}
hung_with_ras() { # kind shift: a job that hangs, its RAS, and an agent that asks it
	stop_sim TERM
	: >"$tap_scratch/answer.json"
	ras "$1"
	NCCL_RAS_ADDR=127.0.0.1:$port never_arrives
	start_agent --hang 3s
	until_ok is_hung
	stop_agent
	write_answer "$2"
	start_agent --hang 3s --ras
}
hung_with_ras 2.30 0
expect_soon "what RAS knows is in the verdict" verdict_has evidence "^NCCL's RAS: the process has not answered for a minute or more"
expect_same "without caveat" "$(of_verdict missing | grep -c RAS)" 0
stop_agent
hung_with_ras 2.30 1
expect_soon "an answer about other processes is not used" verdict_has missing "^what NCCL's RAS knows: 127.0.0.1:$port answers for another job$"
stop_agent
hung_with_ras garbage 0
expect_soon "garbage is not used" verdict_has missing "^what NCCL's RAS knows: "
expect_same "nor shown" "$(of_verdict evidence | grep -c RAS)" 0
stop_agent
hung_with_ras silent 0
expect_soon "one that is silent: the verdict is there all the same" says 'never_issued: .*; job sim-1'
expect_code "and the agent answers" 200 /api/v1/now
stop_agent
kill -9 "$ras_pid"
wait "$ras_pid" 2>/dev/null
start_agent --hang 3s --ras
expect_soon "nobody listens" verdict_has missing "^what NCCL's RAS knows: no process of its user listens on 127.0.0.1:$port$"
stop_agent
stop_sim TERM
NCCL_RAS_ADDR=192.0.2.1:28028 never_arrives
start_agent --hang 3s --ras
expect_soon "another host is not asked" verdict_has missing "^what NCCL's RAS knows: 192.0.2.1:28028 is not an address of this host$"
stop_agent
stop_sim TERM
NCCL_RAS_ADDR=ras.example:28028 never_arrives
start_agent --hang 3s --ras
expect_soon "names are not looked up" verdict_has missing "^what NCCL's RAS knows: ras.example:28028 is not an address of this host$"
stop_agent
stop_sim TERM
if unshare -n true 2>/dev/null; then
	RINGSIDE_SHM=$shm RINGSIDE_BUFFER=4MiB unshare -n "$BUILD/ringside" sim --kernel --seconds 600s --nodes 1 --gpus 3 -w loop \
		-f never-arrives:rank=1,at=500ms >"$tap_scratch/sim" 2>&1 &
	sim_pid=$!
	started+=("$sim_pid")
	start_agent --hang 3s --ras
	expect_soon "a container's network cannot be reached" verdict_has missing \
		"^what NCCL's RAS knows: its processes are in another network namespace \(a container\)$"
	stop_agent
	stop_sim TERM
fi
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	: >"$tap_scratch/port"
	chmod 666 "$tap_scratch/port" "$tap_scratch/answer.json"
	: >"$tap_scratch/commands"
	chmod 666 "$tap_scratch/commands"
	cp tests/doctor/ras_servers.py "$tap_scratch/ras_servers.py"
	setpriv --reuid 65534 --regid 65534 --clear-groups /usr/bin/python3 "$tap_scratch/ras_servers.py" 2.30 "$tap_scratch/answer" "$tap_scratch/commands" >"$tap_scratch/port" &
	started+=($!)
	until_ok test -s "$tap_scratch/port"
	port=$(cat "$tap_scratch/port")
	NCCL_RAS_ADDR=127.0.0.1:$port never_arrives
	start_agent --hang 3s --ras
	expect_soon "another user's RAS is not asked about this job" verdict_has missing \
		"^what NCCL's RAS knows: no process of its user listens on 127.0.0.1:$port$"
	expect_same "it heard nothing" "$(wc -c <"$tap_scratch/commands")" 0
	stop_agent
	stop_sim TERM
fi
tap_done
