#!/usr/bin/env bash
# A snapshot of all processes from an agent: readable like any trace file, with the same contents as the regions.
. "$(dirname "$0")/agent.sh"
ringside=$BUILD/ringside
[ -x "$ringside" ] || tap_skip_all "ringside is not built"

# An agent spends so much of a processor on archives, and no more: who asks too often gets a 503, and comes again.
fetch() { # path curl-option...
	local path=$1
	shift
	curl -sSf --retry 60 --max-time 60 "$@" "$url$path"
}
start_agent --keep 5m
host=$(uname -n)
expect_code "no processes" 200 /api/v1/snapshot
fetch /api/v1/snapshot -o "$tap_scratch/empty.tar"
expect_same "an empty snapshot is an archive" "$(tar tf "$tap_scratch/empty.tar")" "$host/agent.json"
for number in x -1 20001 1e3 99999999999999999999; do
	expect_code "operations=$number" 400 "/api/v1/snapshot?operations=$number"
done

for number in x -1 16385; do
	expect_code "past=$number" 400 "/api/v1/snapshot?past=$number"
done

# Four ranks on two nodes; the sends of one are never completed. No record should be overwritten.
export NCCL_ALGO=Ring
start_sim --nodes 2 --gpus 2 -w ddp --rate 100 --sizes 64KiB -m trace -o "$tap_scratch/traces" -f stuck-send:rank=1,at=1500ms
unset NCCL_ALGO

# Operations in flight and their waits, without values that grow with time.
in_flight='
	local $/;
	for (sort { "$a->{pid} $a->{number}" cmp "$b->{pid} $b->{number}" } @{decode_json(<STDIN>)->{operations}}) {
		print join(" ", @$_{qw(rank pid comm_id number state function bytes issue_ns)},
			"k@{$_->{kernel_started}}/@{$_->{kernel_stopped}}",
			map { ($_->{reason}, $_->{peer} // "-", "@{$_->{channels}}", @$_{qw(since_ns steps_done steps)}) }
				@{$_->{waits}}), "\n";
	}'
flights_of() { # path
	"$ringside" ps --json "$1" 2>/dev/null | perl -MJSON::PP -e "$in_flight"
}
# Wait until the job has recorded enough: it may pause for a moment before it hangs.
have_recorded() { # operations
	"$ringside" ls --json "$shm" 2>/dev/null |
		perl -MJSON::PP -0777 -ne 'my @all = @{decode_json($_)->{processes}}; exit !(@all == 4 && !grep { $_->{recorded} <= '"$1"' } @all)'
}
is_the_same() {
	have_recorded 512 || return 1
	flights_of "$shm" >"$tap_scratch/before"
	fetch '/api/v1/snapshot?operations=20' -o "$tap_scratch/snapshot.tar" || return 1
	flights_of "$shm" >"$tap_scratch/after"
	flights_of "$tap_scratch/snapshot.tar" >"$tap_scratch/fetched"
	grep -q send_net "$tap_scratch/fetched" && cmp -s "$tap_scratch/before" "$tap_scratch/after" &&
		cmp -s "$tap_scratch/before" "$tap_scratch/fetched"
}
expect_soon "the snapshot shows the same hang as the regions" is_the_same
expect_same "one file per process, and one about the agent" \
	"$(tar tf "$tap_scratch/snapshot.tar" | sed 's|.*/||; s/-[0-9]*\./-PID./' | tr '\n' ' ')" \
	"r0-PID.ringside r1-PID.ringside r2-PID.ringside r3-PID.ringside agent.json "
expect_same "its content type" "$(header_of Content-Type /api/v1/snapshot)" application/x-tar
expect_ok "gzip if accepted" tar tf <(fetch /api/v1/snapshot -H 'Accept-Encoding: gzip' | gzip -dc)

facts() { # of the host, line by line
	fetch /api/v1/snapshot | tar xO "$host/agent.json" |
		perl -MJSON::PP -0777 -ne 'print map { "$_\n" } @{decode_json($_)->{host_facts} // []}'
}
has_facts() { facts | grep -q '^series memory_available - [0-9]* [0-9]* [0-9]*:[0-9]*$'; }
expect_soon "facts of the host are in it" has_facts
expect_same "when they were read" "$(facts | grep -cE '^time [1-9][0-9]+ [1-9][0-9]+$')" 1
expect_ok "GPUs, or why they cannot be read" grep -qE '^(gpu [0-9a-f]+:|gap gpu [^ ])' <(facts)

shown=$(fetch /metrics && fetch /api/v1/now && fetch '/api/v1/history?after=0' && fetch /api/v1/summary)
expect_ok "metrics and page show the job" grep -q sim-1 <<<"$shown"
expect_same "and neither paths nor command lines" "$(grep -cF -e "$BUILD" -e "$tap_scratch" -e "--gpus" <<<"$shown")" 0
expect_ok "a snapshot has the program's path" grep -qaF "$BUILD" <(fetch /api/v1/snapshot)

mkdir "$tap_scratch/unpacked"
expect_ok "tar unpacks it" tar xf "$tap_scratch/snapshot.tar" -C "$tap_scratch/unpacked"
expect_same "the unpacked files show the same" "$(flights_of "$tap_scratch/unpacked")" "$(cat "$tap_scratch/fetched")"
said=$("$ringside" verify "$tap_scratch/unpacked" 2>&1)
expect_same "nothing is missing" "$? $(grep -c '^nothing is missing so far: 4 processes' <<<"$said")" "0 1"
expect_same "verify reports that each is a window" \
	"$(grep -c 'a snapshot with the last 512 of [0-9]* recorded operations$' <<<"$said")" 4
expect_same "older operations are not lost" "$("$ringside" verify --json "$tap_scratch/snapshot.tar" |
	perl -MJSON::PP -0777 -ne 'my $v = decode_json($_); print join " ", map { $_->{keeps_all} ? "all" : "some" } @{$v->{processes}}')" \
	"some some some some"
said=$("$ringside" report "$tap_scratch/snapshot.tar" 2>&1)
expect_same "the report says so" \
	"$(grep -c 'a snapshot holds the most recent ones of each' <<<"$(tr -s ' \n' ' ' <<<"$said")") $(
		grep -c 'were lost\|damaged\|no end' <<<"$said")" "1 0"
expect_same "and lists the living processes" "$("$ringside" ls --json "$tap_scratch/snapshot.tar" |
	perl -MJSON::PP -0777 -ne 'my $l = decode_json($_); print join " ", map { $_->{life} // $_->{state} } @{$l->{processes}}')" \
	"alive alive alive alive"
files_of() { # job
	fetch "/api/v1/snapshot?job=$1" | tar t | sed 's|.*/||; s/-[0-9]*\./-PID./' | tr '\n' ' '
}
expect_same "only the processes of a job, if asked for" "$(files_of sim-1), $(files_of other)" \
	"r0-PID.ringside r1-PID.ringside r2-PID.ringside r3-PID.ringside agent.json , agent.json "
if [ -x "$BUILD/ringside-fetch" ]; then
	expect_refusal "the doctor lists the jobs if there is no such job" 3 "no job 'other' here; available: sim-1" \
		"$ringside" doctor --agents "$url" --job other
	expect_same "and asks for the processes of a job only" "$("$ringside" doctor --json --agents "$url" --job sim-1 |
		perl -MJSON::PP -0777 -ne 'print decode_json($_)->{looked_at}{processes}')" 4
fi
expect_code "a name that no job can have" 400 "/api/v1/snapshot?job=$(printf 'x%.0s' {1..200})"

# Numbers are rounded up to a few steps.
note() { # what of agent.json, as Perl
	fetch /api/v1/snapshot | tar xO "$host/agent.json" | perl -MJSON::PP -0777 -ne "my \$n = decode_json(\$_); print $1"
}
asked_for() { # operations
	fetch "/api/v1/snapshot?operations=$1" | tar xO "$host/agent.json" | grep -o '"operations_asked":[0-9]*'
}
expect_same "at least the requested number of operations" "$(for number in 0 1 512 2049 4097; do asked_for $number; done)" \
	"$(printf '"operations_asked":%s\n' 0 512 512 4096 20000)"
asked_past() { # operations
	fetch "/api/v1/snapshot?operations=512&past=$1" | tar xO "$host/agent.json" | grep -o '"past_asked":[0-9]*'
}
expect_same "and of the past, whatever was asked before" "$(for number in 0 1 4097 0; do asked_past $number; done)" \
	"$(printf '"past_asked":%s\n' 0 1024 16384 0)"
# Both on one connection, so that few scans come in between.
is_same_archive() {
	rm -f "$tap_scratch/one.tar" "$tap_scratch/other.tar"
	fetch '/api/v1/snapshot?operations=1' -o "$tap_scratch/one.tar" "$url/api/v1/snapshot?operations=400" -o "$tap_scratch/other.tar" &&
		cmp -s "$tap_scratch/one.tar" "$tap_scratch/other.tar"
}
expect_soon "equivalent requests share an archive until the next scan" is_same_archive

# Anonymous clients do not get environment variables; clients of the agent's Unix socket do.
expect_ok "the regions have variables" grep -qraF env.NCCL_ALGO=Ring "$shm"
expect_same "the archive has none" "$(fetch /api/v1/snapshot | grep -acF env.NCCL_ALGO)" 0
expect_same "and the note says so" "$(note '$n->{environment_left_out} ? "left out" : "there"')" "left out"
first=$agent_pid first_url=$url
start_agent_at --listen 127.0.0.1:0 --listen "unix:$tap_scratch/socket"
expect_same "clients of the Unix socket get them" \
	"$(fetch /api/v1/snapshot --unix-socket "$tap_scratch/socket" | grep -acF env.NCCL_ALGO=Ring)" 4
expect_same "other clients still do not" "$(fetch /api/v1/snapshot | grep -acF env.NCCL_ALGO)" 0
if [ -x "$BUILD/ringside-fetch" ]; then
	notes_of() { # agent
		"$ringside" doctor --json --agents "$1" | grep -o '"rule":"environment"'
	}
	expect_same "the doctor reports that they are missing" "$(notes_of "$url")" '"rule":"environment"'
	expect_same "and nothing if they are not" "$(notes_of "unix:$tap_scratch/socket")" ""
fi
stop_agent
# shellcheck disable=SC2016
printf '%s\n' 'basic_auth_users:' '  alice: $2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW' >"$tap_scratch/web.yml"
start_agent --web-config "$tap_scratch/web.yml"
expect_same "authenticated clients get them" "$(fetch /api/v1/snapshot -u 'alice:U*U' | grep -acF env.NCCL_ALGO=Ring)" 4
stop_agent
# One is made at a time: who wants another one waits, and gets what was asked for.
asked_at_once() {
	local number pids=()
	for number in 0 512 2048; do
		asked_for "$number" >"$tap_scratch/at_once.$number" &
		pids+=($!)
	done
	wait "${pids[@]}"
	cat "$tap_scratch"/at_once.*
}
start_agent
expect_same "different requests at the same time" "$(asked_at_once)" "$(printf '"operations_asked":%s\n' 0 2048 512)"
stop_agent
agent_pid=$first url=$first_url

# A stopped process is recognized.
pid=$(note '$n->{processes}[2]{pid}')
kill -STOP "$pid"
is_stopped() { [ "$(note '$n->{processes}[2]{state}')" = T ]; }
expect_soon "a stopped process" is_stopped
kill -CONT "$pid"
expect_same "the note has host, processes and limits" \
	"$(note 'join " ", $n->{host}, $n->{processes_packed}, $n->{processes_left_out}, $n->{limits}{operations}')" \
	"$host 4 0 20000"

# Without finished operations it is small and still shows a hang.
shows_hang() {
	fetch /api/v1/snapshot -o "$tap_scratch/small.tar"
	flights_of "$tap_scratch/small.tar" | grep send_net | cmp -s - <(flights_of "$shm" | grep send_net)
}
expect_soon "the hang is shown" shows_hang
expect_ok "a hang of four processes takes less than 64 KiB" \
	test "$(stat -c %s "$tap_scratch/small.tar")" -lt 65536

# Ended processes keep their last state for a while: the job ends without finalizing NCCL.
stop_sim KILL
are_dead() { [ "$(note 'join " ", map { $_->{life} } @{$n->{processes}}')" = "killed killed killed killed" ]; }
expect_soon "the note lists killed processes" are_dead
fetch '/api/v1/snapshot?operations=20000' -o "$tap_scratch/dead.tar"
expect_same "their operations in flight are kept" "$(flights_of "$tap_scratch/dead.tar" | grep -c send_net)" \
	"$(flights_of "$shm" | grep -c send_net)"
expect_ok "and verify misses nothing" "$ringside" verify "$tap_scratch/dead.tar"

# A client that requests all archives all the time gets a share of the time, and others are still served.
start_sim --nodes 2 --gpus 8 -w ddp --rate 100 --sizes 64KiB -f stuck-send:rank=1,at=1500ms
are_many() { [ "$(note 'scalar(grep { $_->{life} eq "alive" } @{$n->{processes}})')" = 16 ]; }
expect_soon "sixteen processes are in the snapshot" are_many
is_refused() {
	local all=()
	for number in 0 512 1024 2048 4096 20000; do
		all+=("$url/api/v1/snapshot?operations=$number")
	done
	{ curl -s -I "${all[@]}" && curl -s -I -H 'Accept-Encoding: gzip' "${all[@]}"; } | tr -d '\r' >"$tap_scratch/heads"
	grep -q '^HTTP/1.1 503' "$tap_scratch/heads" && grep -q '^Retry-After: 1$' "$tap_scratch/heads"
}
# Requests beyond a tenth of a CPU are rejected; on a busy machine the agent may not get that much. Scans need some of it, too.
agent_ms() { awk -v second="$(getconf CLK_TCK)" '{ print int(1000 * ($14 + $15) / second) }' "/proc/$agent_pid/stat"; }
sentence="endless requests are rejected with Retry-After"
began=$SECONDS before_ms=$(agent_ms)
if until_ok is_refused; then
	tap_line ok "$sentence" ""
elif [ $((($(agent_ms) - before_ms) / (SECONDS - began))) -lt 200 ]; then
	tap_line ok "$sentence # SKIP the machine is too busy: the agent had less than a fifth of a CPU" ""
else
	tap_line "not ok" "$sentence" "$(cat "$tap_scratch/heads")"
fi
expect_code "metrics are served meanwhile" 200 /metrics
expect_soon "and snapshots are available again soon" answers 200 /api/v1/snapshot
stop_sim TERM
stop_agent
tap_done
