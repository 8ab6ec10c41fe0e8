#!/usr/bin/env bash
# Jobs that are dead: until when they lived is known, nothing in them gets older, and a job that was killed at work
# did not hang.
. "$(dirname "$0")/doctor.sh"
export LC_ALL=C RINGSIDE_BUFFER=1MiB
command -v perl >/dev/null || tap_skip_all "there is no perl"

# A job in the background; its processes are ranks of their own and end with it.
begin() { # name option...
	export RINGSIDE_SHM=$tap_scratch/$1 RINGSIDE_JOB=$1
	shift
	mkdir -p "$RINGSIDE_SHM"
	"$ringside" sim --nodes 1 --gpus 4 -w ddp --kernel --seconds 600s -o "$RINGSIDE_SHM/traces" "$@" >"$tap_scratch/sim" 2>&1 &
	sim=$!
	started+=("$sim")
}
# Not of dead ones: the system may have given their PID to another process.
pids() { # rank: all of them if there is none
	"$ringside" ls -q --json | perl -MJSON::PP -0777 -e 'my $rank = shift;
		for (@{decode_json(<STDIN>)->{processes}}) {
			print "$_->{pid}\n" if $_->{state} eq "alive" && (!defined $rank || $_->{rank} == $rank);
		}' "$@"
}
one_dead() { [ "$(pids | wc -l)" = 3 ]; }
# The launcher first: it would end the others in its own way.
end_all() { # signal
	local ours
	mapfile -t ours < <(pids)
	kill -9 "$sim"
	wait "$sim" 2>/dev/null
	kill "-$1" "${ours[@]}" 2>/dev/null
	until_ok all_dead
}
all_dead() { [ -z "$(pids)" ]; }
figure() { # key file
	perl -MJSON::PP -e 'my $key = shift; my $v = decode_json(join "", <STDIN>)->{verdicts}[0]; print $v->{$key} // "none"' "$1" <"$2"
}
# The clocks of two processes are compared by the wall clock, which adds some nanoseconds.
rounded() { # key file
	printf %.4f "$(figure "$1" "$2")"
}
hangs_for() { # seconds
	diagnose --hang "$1s"
	grep -q '"class":"never_issued"' "$tap_scratch/doctor.json"
}

confidence=()
for mode in flight trace; do
	for signal in KILL ABRT; do
		begin "$mode-$signal" --mode $mode -f never-arrives:rank=1,at=200ms
		expect_ok "$mode, SIG$signal: a job hangs" until_ok hangs_for 3
		# As a watchdog does, which is not equally fast on all ranks.
		kill "-$signal" "$(pids 3)"
		until_ok one_dead
		diagnose --hang 2s
		expect_same "$mode, SIG$signal: one that waited is dead: it is not the cause" \
			"$(figure class "$tap_scratch/doctor.json") $(figure rank "$tap_scratch/doctor.json") $(
				grep -c 'Rank 3 has died since' "$tap_scratch/doctor.json")" "never_issued 1 1"
		end_all $signal
		diagnose --hang 2s
		verdict="$(figure class "$tap_scratch/doctor.json") $(figure rank "$tap_scratch/doctor.json") $(figure severity "$tap_scratch/doctor.json")"
		expect_same "$mode, SIG$signal: after its death it has the same verdict" "$verdict" "never_issued 1 error"
		confidence+=("$(figure confidence "$tap_scratch/doctor.json")")
		for name in one two; do
			"$ringside" bundle --hang 2s --no-ras --no-traces -o "$tap_scratch/$name.tar" >/dev/null
			tar xOf "$tap_scratch/$name.tar" ringside-bundle/doctor.txt >"$tap_scratch/$name.txt"
			tar xOf "$tap_scratch/$name.tar" ringside-bundle/doctor.json >"$tap_scratch/$name.json"
		done
		expect_same "$mode, SIG$signal: it does not get older from bundle to bundle" \
			"$(rounded seconds "$tap_scratch/two.json") $(rounded gpu_hours "$tap_scratch/two.json")" \
			"$(rounded seconds "$tap_scratch/one.json") $(rounded gpu_hours "$tap_scratch/one.json")"
		expect_same "$mode, SIG$signal: nor in a bundle than in the region" \
			"$(rounded seconds "$tap_scratch/one.json")" "$(rounded seconds "$tap_scratch/doctor.json")"
		expect_same "$mode, SIG$signal: the advice is not for a job that runs" \
			"$(grep -cE 'before you stop|so far|ringside stacks' "$tap_scratch/one.txt")" 0
		expect_ok "$mode, SIG$signal: when it died is given" grep -q 'last sign of life' "$tap_scratch/one.txt"
	done
done
expect_same "all with the same confidence" "$(printf '%s\n' "${confidence[@]}" | sort -u | wc -l)" 1

# Killed at work, while ranks wait for a slow one. What was in flight then would be older than the limit when the bundle is made.
begin busy --mode flight -f slow-rank:rank=1,factor=5
waits() {
	[ "$("$ringside" ls --json | grep -oE '"issued":[1-9][0-9]' | wc -l)" -ge 4 ] &&
		[ "$("$ringside" ps --all --json 2>/dev/null | grep -oE '"state":"running"' | wc -l)" = 3 ]
}
expect_ok "a job works, and three ranks wait for the slow one" until_ok waits
end_all KILL
sleep 2.2
"$ringside" bundle --hang 2s --no-ras -o "$tap_scratch/busy.tar" >/dev/null
expect_same "a job killed at work did not hang" \
	"$("$ringside" doctor --hang 2s --json "$tap_scratch/busy.tar" | grep -cE '"class":"(never_issued|gpu_|network_|not_launched|stuck)')" 0
expect_ok "it is dead, and nothing says why" grep -q '^dead ' <<<"$(tar xOf "$tap_scratch/busy.tar" ringside-bundle/doctor.txt)"

# A rank crashes, and its launcher ends the others within seconds.
begin crashed --mode flight
moves() { [ "$("$ringside" ls --json | grep -oE '"issued":[1-9][0-9]' | wc -l)" -ge 4 ]; }
expect_ok "a job works" until_ok moves
kill -SEGV "$(pids 2)"
until_ok one_dead
sleep 3.5
end_all KILL
"$ringside" bundle --no-ras -o "$tap_scratch/crashed.tar" >/dev/null
for path in "$RINGSIDE_SHM" "$tap_scratch/crashed.tar"; do
	expect_ok "the rank that died first is named, in ${path##*/}" \
		grep -qE '^error +(1\. )?rank 2 died first; the other 3 processes ended ' <("$ringside" doctor "$path")
done

# Without heartbeats it is as unknown in the bundle as in the region.
export RINGSIDE_HEARTBEAT=0
begin silent --mode flight -f never-arrives:rank=1,at=200ms
expect_ok "a job without heartbeats hangs" until_ok hangs_for 2
end_all KILL
sleep 1.2
diagnose --hang 1s
expect_same "when it died is unknown" "$(figure severity "$tap_scratch/doctor.json") $(figure seconds "$tap_scratch/doctor.json")" "warning none"
"$ringside" bundle --hang 1s --no-ras -o "$tap_scratch/silent.tar" >/dev/null
tar xOf "$tap_scratch/silent.tar" ringside-bundle/doctor.json >"$tap_scratch/silent.json"
expect_same "a bundle does not invent a duration" "$(figure severity "$tap_scratch/silent.json") $(figure seconds "$tap_scratch/silent.json")" "warning none"
tap_done
