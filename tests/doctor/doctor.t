#!/usr/bin/env bash
# The command: options, sources, exit codes, JSON, --watch. Verdict texts are tested elsewhere.
. "$(dirname "$0")/doctor.sh"
command -v python3 >/dev/null || tap_skip_all "there is no python3"

simulate healthy --nodes 2 --gpus 4 -w fsdp --seconds 6s
simulate hung --nodes 2 --gpus 4 -w fsdp -f never-arrives:rank=5 --at 2s
value() { # expression
	json_says "$1" "$tap_scratch/doctor.json"
}
code_of() { # command...
	"$@" >/dev/null 2>&1
	echo $?
}

# ---- a healthy job, a hung one, no job

expect_same "a healthy job: exit code 0" "$(code_of "$ringside" doctor "$tap_scratch/healthy")" 0
expect_ok "with a one-line summary" \
	grep -q '^healthy     8 ranks on 2 hosts, 1 communicator; all its processes have ended' \
	<("$ringside" doctor "$tap_scratch/healthy")
expect_ok "and what speed was compared with: nothing shows a network that was always slow" \
	grep -q '^speed       compared between ranks, and over [0-9.]* ' <("$ringside" doctor "$tap_scratch/healthy")
"$ringside" baseline save "$tap_scratch/healthy" -o "$tap_scratch/healthy.json"
expect_same "but a baseline would" \
	"$("$ringside" doctor --baseline "$tap_scratch/healthy.json" "$tap_scratch/healthy" | grep -c '^speed')" 0
# Two faults in one collective: the first is the verdict, and the second is not hidden behind it.
caveats() { # fault...
	rm -rf "$tap_scratch/two"
	"$ringside" sim --offline --kernel --nodes 4 --gpus 4 -w fsdp --seed 6 --seconds 60s "$@" -o "$tap_scratch/two" >/dev/null
	"$ringside" doctor --all "$tap_scratch/two" | grep -A1 'Rank 13 has called it' | tr -s ' \n' ' '
}
expect_ok "a GPU that does not start what another rank holds up is a caveat" \
	grep -q "but its GPU has not started it" <(caveats -f kill:rank=2,at=10s -f gpu-stuck:rank=13,what=not-started,at=9.9s)
expect_same "one that waits is not" "$(caveats -f kill:rank=2,at=10s)" ""
expect_same "a hung one: exit code 1" "$(code_of "$ringside" doctor --hang 5s "$tap_scratch/hung")" 1
"$ringside" doctor --hang 5s "$tap_scratch/hung" >"$tap_scratch/said"
expect_ok "the culprit is named first" grep -q '^error       rank 5 ' "$tap_scratch/said"
for part in evidence confidence 'next steps' runbook; do
	expect_ok "the verdict has: $part" grep -q "^$part  " "$tap_scratch/said"
done
expect_ok "confidence is a percentage" grep -qE '^confidence  >?[0-9]+%$' "$tap_scratch/said"
expect_ok "with the state of communicators" grep -qE '^world +8 +8 +7 ' "$tap_scratch/said"
expect_same "no line is longer than 80 columns" \
	"$(COLUMNS=80 "$ringside" doctor --hang 5s "$tap_scratch/hung" | awk 'length > 80')" ""
expect_same "no colours in a pipe" "$(grep -c $'\033' "$tap_scratch/said")" 0
expect_same "below --hang it is not a hang: could not tell, its recordings have no end" \
	"$(code_of "$ringside" doctor --hang 500s "$tap_scratch/hung")" 3
# Processes of other tests would be found.
if unshare -Urpf --mount-proc true 2>/dev/null; then
	expect_refusal "nothing recorded" 3 "no recordings found on this host" unshare -Urpf --mount-proc "$ringside" doctor
fi
expect_refusal "a path that does not exist" 3 "No such file" "$ringside" doctor "$tap_scratch/nowhere"
if command -v script >/dev/null; then
	script -qec "'$ringside' doctor --hang 5s $tap_scratch/hung" /dev/null >"$tap_scratch/terminal" 2>&1 </dev/null
	expect_ok "colours on a terminal" grep -q $'\033\[1;31merror' "$tap_scratch/terminal"
	NO_COLOR=1 script -qec "$ringside doctor --hang 5s $tap_scratch/hung" /dev/null >"$tap_scratch/terminal" 2>&1 </dev/null
	expect_same "none with NO_COLOR" "$(grep -c $'\033' "$tap_scratch/terminal")" 0
fi

# Processes that are gone: their recordings are examined if nothing runs.
make_samples
expect_same "a killed job is a problem, whether it hung or not" \
	"$(code_of "$ringside" doctor --hang 1s "$tap_scratch/stuck") $(code_of "$ringside" doctor --hang 1000s "$tap_scratch/stuck")" "1 1"
expect_ok "dead is not healthy" grep -qE '^dead        1 (of [0-9]+ ranks|rank) .*' <("$ringside" doctor --hang 1000s "$tap_scratch/stuck")
expect_ok "losses are reported" grep -q '^warning  .*12 operations were lost by the recorder of 1 process$' \
	<("$ringside" doctor "$tap_scratch/lossy")

# ---- JSON

diagnose --hang 5s "$tap_scratch/hung"
expect_same "JSON: format and version" "$(value '"$_->{format} $_->{version}"')" "ringside-doctor 1"
expect_same "what was examined" "$(value '"$_->{looked_at}{ranks} $_->{looked_at}{hosts} $_->{looked_at}{communicators}"')" "8 2 1"
expect_same "the verdict" "$(value 'my $v = $_->{verdicts}[0]; "$v->{class} $v->{severity} $v->{rank} $v->{communicator}"')" \
	"never_issued error 5 world"
expect_same "Python reads it, too" "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["is_healthy"])' <"$tap_scratch/doctor.json")" False
diagnose "$tap_scratch/healthy"
expect_same "healthy" "$(value '"$_->{is_healthy} " . scalar(grep { $_->{severity} ne "note" } @{$_->{verdicts}})')" "1 0"

# Every key is documented.
keys() {
	json_says '
		my (%keys, @open) = ();
		@open = ($_);
		while (@open) {
			my $value = shift @open;
			push @open, @$value if ref $value eq "ARRAY";
			next unless ref $value eq "HASH";
			$keys{$_} = 1 for keys %$value;
			push @open, values %$value;
		}
		join "\n", sort keys %keys' "$tap_scratch/doctor.json"
}
diagnose --hang 5s "$tap_scratch/hung"
unexplained=$(keys | while IFS= read -r key; do
	grep -qF -- "\`$key\`" docs/JSON.md || echo "$key"
done)
expect_same "docs/JSON.md explains every key" "$unexplained" ""
expect_ok "there are keys" test "$(keys | wc -l)" -gt 40
for class in never_issued mismatch not_launched gpu_not_reached gpu_stuck network_stuck deadlock process_dead process_stopped agent_dead \
	unseen stuck slow_rank slow_host slow_link slow_network slow_nvlink slow_communicator slow_size slow_algorithm \
	below_expected setup blind; do
	grep -qF "| \`$class\` |" docs/DOCTOR.md || echo "$class"
done >"$tap_scratch/classes"
expect_same "and every class" "$(cat "$tap_scratch/classes")" ""
expect_same "and there are no others" "$(sed -n 's/.*\[VERDICT_[A-Z_]*\] = { "\([a-z_]*\)".*/\1/p' src/doctor/verdict.c |
	while IFS= read -r class; do grep -qF "| \`$class\` |" docs/DOCTOR.md || echo "$class"; done)" ""

# ---- options

expect_refusal "two sources" 2 "four sources" "$ringside" doctor --agents a x
expect_refusal "two sources, with --prometheus" 2 "four sources" "$ringside" doctor --agents a --prometheus http://b
expect_refusal "no agent" 2 "lists no agent" "$ringside" doctor --agents ,
expect_refusal "a bad agent" 2 "'a:b' has no port" "$ringside" doctor --agents a:b
expect_refusal "a password on the command line" 2 "password into a file" "$ringside" doctor --agents http://me:pw@a
expect_refusal "no list of agents" 2 "No such file" "$ringside" doctor --agents "@$tap_scratch/none"
expect_refusal "no URL" 2 "is not a URL" "$ringside" doctor --prometheus prometheus:9090
expect_refusal "a bad time" 2 "is not a time" "$ringside" doctor --hang soon
expect_refusal "an interval that is too short" 2 "too short" "$ringside" doctor --interval 1ms
expect_refusal "a bad number" 2 "from 1 to 1024" "$ringside" doctor --parallel 0
expect_refusal "a bad price" 2 "is not a price" "$ringside" doctor --gpu-hour-price free
for peak in '' nvlink nvlink=x net=-1 disk=5; do
	expect_refusal "a bad peak: '$peak'" 2 "is not like nvlink=450" "$ringside" doctor --peak "$peak"
done
expect_refusal "watching files" 2 "follows what runs" "$ringside" doctor --watch "$tap_scratch/hung"
expect_refusal "no such baseline" 3 "No such file" "$ringside" doctor --baseline "$tap_scratch/none" "$tap_scratch/healthy"
expect_refusal "a file that is not a baseline" 3 "baseline" "$ringside" doctor --baseline README.md "$tap_scratch/healthy"
expect_refusal "a file without expected bandwidth" 3 "not a file of expected" "$ringside" doctor --expected README.md "$tap_scratch/healthy"
expect_refusal "a job that does not exist" 3 "no job 'other' here; available: sim-7" "$ringside" doctor --job other "$tap_scratch/healthy"
expect_same "a job that exists" "$(code_of "$ringside" doctor --job sim-7 "$tap_scratch/healthy")" 0
expect_refusal "a log that does not exist" 3 "No such file" "$ringside" doctor --log "$tap_scratch/none"

# ---- sources

tar -C "$tap_scratch" -cf "$tap_scratch/bundle.tar" hung
diagnose --hang 5s "$tap_scratch/bundle.tar"
expect_same "an archive" "$? $(value '$_->{verdicts}[0]{rank}')" "1 5"
tar -C "$tap_scratch" -cf "$tap_scratch/whole.tar" healthy
head -c "$(($(stat -c %s "$tap_scratch/whole.tar") * 6 / 10))" "$tap_scratch/whole.tar" >"$tap_scratch/cut.tar"
diagnose "$tap_scratch/cut.tar"
expect_same "a truncated archive is not healthy" \
	"$? $(value 'join " ", map { "$_->{class}/$_->{rule}" } grep { $_->{severity} eq "warning" && $_->{rule} eq "files" } @{$_->{verdicts}}')" \
	"3 blind/files"
expect_ok "and verify reports it" grep -q "$tap_scratch/cut.tar: .*truncated at byte" <("$ringside" verify "$tap_scratch/cut.tar" 2>&1)
split -n 3 "$tap_scratch/whole.tar" "$tap_scratch/part."
gzip "$tap_scratch"/part.a?
cat "$tap_scratch"/part.a?.gz >"$tap_scratch/parts.tar.gz"
diagnose "$tap_scratch/parts.tar.gz"
expect_same "an archive compressed in parts is read to its end" "$? $(value '$_->{looked_at}{ranks}')" "0 8"
mkdir "$tap_scratch/logs"
printf 'node1:77:88 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>\nsomething else\n' >"$tap_scratch/logs/a.log"
printf 'node2:77:88 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.2<0>\n' >"$tap_scratch/logs/b.log"
diagnose --log "$tap_scratch/logs/a.log" "$tap_scratch/logs/b.log"
expect_same "files after --log are logs" "$(value '"$_->{looked_at}{log_files} $_->{looked_at}{log_lines}"')" "2 3"
diagnose --log "$tap_scratch/logs"
expect_same "a directory of logs" "$(value '$_->{looked_at}{log_files}')" 2
ln -s . "$tap_scratch/logs/again"
ln -s /etc "$tap_scratch/logs/away"
diagnose --log "$tap_scratch/logs"
expect_same "symbolic links in it are not followed" "$(value '$_->{looked_at}{log_files}')" 2
rm "$tap_scratch/logs/again" "$tap_scratch/logs/away"
diagnose --log <(sleep 0.2; cat "$tap_scratch/logs/a.log")
expect_same "output of another program" "$? $(value '$_->{looked_at}{log_lines}')" "0 2"
mkdir -p "$tap_scratch/deep/1/2/3/4/5/6/7/8/9"
diagnose --log "$tap_scratch/deep" --log "$tap_scratch/logs"
expect_same "directories that are too deep are reported" "$(value 'scalar grep { $_->{rule} eq "the rest of the logs" } @{$_->{verdicts}}')" 1
diagnose --log "$tap_scratch/logs" --job sim-7 "$tap_scratch/healthy"
expect_same "with a recording" "$(value '"$_->{looked_at}{log_files} $_->{looked_at}{ranks}"')" "2 8"
cp -r "$tap_scratch/healthy" "$tap_scratch/damaged"
victim=$(find "$tap_scratch/damaged" -type f | sort | head -n 1)
printf 'x%.0s' $(seq 100) | dd of="$victim" bs=1 seek=3000 conv=notrunc 2>/dev/null
diagnose "$tap_scratch/damaged"
expect_same "a damaged file is reported and limits the rest" \
	"$? $(value 'join " ", map { "$_->{class}/$_->{rule}" } grep { $_->{severity} eq "warning" } @{$_->{verdicts}}')" "3 blind/files"

# Files that end too early: up to their last record nothing is wrong.
mkdir "$tap_scratch/cut" "$tap_scratch/some"
for file in "$tap_scratch"/healthy/*; do
	size=$(stat -c %s "$file")
	head -c $((size * 2 / 3)) "$file" >"$tap_scratch/cut/${file##*/}"
done
cp "$tap_scratch"/cut/* "$tap_scratch/some"
cp "$file" "$tap_scratch/some"
head -c $((size / 200)) "$file" >"$tap_scratch/stump"
said() { value '"$_->{answer} " . ($_->{is_healthy} ? "healthy" : "not healthy") . join "", map { " $_->{aspect}" } @{$_->{not_judged}}'; }
diagnose "$tap_scratch/healthy"
expect_same "whole files: nothing wrong" "$? $(said)" "0 nothing_wrong healthy"
diagnose "$tap_scratch/cut"
expect_same "all files cut to two thirds: could not tell" "$? $(said)" "3 could_not_tell not healthy end speed"
diagnose "$tap_scratch/some"
expect_same "all but one" "$? $(said)" "3 could_not_tell not healthy end speed"
diagnose "$tap_scratch/stump"
expect_same "a file from which nothing could be read" "$? $(said)" "3 could_not_tell not healthy end"
diagnose "$(dirname "$0")/../foreign/data/comma-latency.txt"
expect_same "a log of another tool, with an unfinished operation" "$? $(said)" "3 could_not_tell not healthy end"
"$ringside" sim --offline --kernel --nodes 2 --gpus 2 -w fsdp -f gpu-stuck:rank=0 -f gpu-stuck:rank=1 -f gpu-stuck:rank=2 \
	-f gpu-stuck:rank=3 --at 5s --seconds 900s -o "$tap_scratch/standing" >/dev/null || exit 1
diagnose "$tap_scratch/standing"
expect_same "no GPU starts its kernel for 15 minutes: stuck, cause unknown" \
	"$? $(value '"$_->{answer} $_->{verdicts}[0]{class} " . ($_->{verdicts}[0]{rank} // "nobody")')" "1 stuck_cause_unknown stuck nobody"

# Runbooks open from where they are mentioned.
runbook=$("$ringside" doctor --hang 5s "$tap_scratch/hung" | sed -n 's/^runbook *//p')
expect_same "a verdict prints the command that shows its runbook" "$runbook" "ringside help nccl-hang-rank-missing"
expect_same "which works" "$("$ringside" help "${runbook##* }" | head -n 1)" "# NcclHangRankMissing"
export RINGSIDE_RUNBOOKS=https://wiki.example/ringside/
diagnose --hang 5s "$tap_scratch/hung"
expect_same "or its address, where the admin keeps them" "$(value '$_->{verdicts}[0]{runbook}')" \
	https://wiki.example/ringside/runbooks/NcclHangRankMissing.md
unset RINGSIDE_RUNBOOKS
expect_same "also by an option" "$("$ringside" doctor --runbooks https://wiki.example --hang 5s "$tap_scratch/hung" | sed -n 's/^runbook *//p')" \
	https://wiki.example/runbooks/NcclHangRankMissing.md

# ---- agents

if [ ! -x "$fetch" ]; then
	tap_line ok "agents # SKIP built without libcurl" ""
	tap_done
fi
mkdir "$tap_scratch/bin"
cp "$ringside" "$tap_scratch/bin/ringside"
expect_refusal "without ringside-fetch an error says what to install" 3 "no ringside-fetch beside .*apt install \./ringside_\*\.deb.*wheel does not have it" \
	"$tap_scratch/bin/ringside" doctor --agents a
cp "$tap_scratch/bundle.tar" "$tap_scratch/served"
start_servers /api/v1/snapshot="$tap_scratch/served"
# A busy machine is not a dead agent: generous timeouts.
good=(--timeout 60s --agents "$(address_of good)")
diagnose --hang 5s "${good[@]}"
expect_same "a snapshot" "$? $(value '"$_->{verdicts}[0]{rank} $_->{looked_at}{sources} $_->{looked_at}{sources_silent}"')" "1 5 1 0"
"$ringside" doctor --json --hang 5s "${good[@]}" <&- >"$tap_scratch/doctor.json" 2>/dev/null
expect_same "also with closed standard input" "$? $(value '"$_->{verdicts}[0]{rank} $_->{looked_at}{sources_silent}"')" "1 5 0"

# What an agent left out; and agents that did not answer when a bundle was made.
said_of() { # class or rule
	value "join ' ', map { \"\$_->{class}/\$_->{rule}/\$_->{severity}\" } grep { \$_->{class} eq '$1' || \$_->{rule} eq '$1' } @{\$_->{verdicts}}"
}
mkdir "$tap_scratch/half"
for trace in "$tap_scratch"/hung/*; do
	"$ringside" ps --json "$trace" 2>/dev/null | grep -q '"rank":[0-3],' && cp "$trace" "$tap_scratch/half"
done
cp -r "$tap_scratch/healthy" "$tap_scratch/partly"
echo '{"host":"n1","processes_left_out":2,"is_failing":true,"is_time_up":true}' >"$tap_scratch/partly/agent.json"
tar -C "$tap_scratch" -cf "$tap_scratch/served" partly
diagnose "${good[@]}"
expect_same "what an agent left out is reported" "$? $(said_of agents)" "3 blind/agents/warning"
expect_same "completely" "$(value 'scalar @{(grep { $_->{rule} eq "agents" } @{$_->{verdicts}})[0]{evidence}}')" 3
expect_ok "a bundle is made from it" "$ringside" bundle --no-ras "${good[@]}" -o "$tap_scratch/partly.tar"
expect_ok "whose README mentions it" grep -q '2 processes are not in its answer' <(tar xOf "$tap_scratch/partly.tar" ringside-bundle/README.txt)
diagnose "$tap_scratch/partly.tar"
expect_same "and so does the doctor" "$? $(said_of agents)" "3 blind/agents/warning"
tar -C "$tap_scratch" -cf "$tap_scratch/served" half
both=(--timeout 60s --agents "$(address_of good),127.0.0.1:$(port_of refused)")
diagnose --hang 5s "${both[@]}"
expect_same "others wait for ranks of an agent that does not answer" "$? $(value '$_->{verdicts}[0]{class}')" "1 agent_dead"
expect_ok "a bundle of that job" "$ringside" bundle --hang 5s --no-ras "${both[@]}" -o "$tap_scratch/half.tar"
diagnose --hang 5s "$tap_scratch/half.tar"
expect_same "gives the same verdict" "$? $(value '"$_->{verdicts}[0]{class} $_->{looked_at}{sources} $_->{looked_at}{sources_silent}"')" "1 agent_dead 2 1"
expect_same "and so does the document in it" "$(tar xOf "$tap_scratch/half.tar" ringside-bundle/doctor.json | json_says '$_->{verdicts}[0]{class}')" agent_dead
cp "$tap_scratch/bundle.tar" "$tap_scratch/served"
list=$tap_scratch/agents
{
	echo "# all of them"
	for server in good silent drip garbage huge half closes redirect wrong locked missing refused; do
		address_of "$server"
	done
	echo no-such-host.invalid
} >"$list"
# Servers that never answer use up all the time, and the others need some of it: more on a busy machine.
for timeout in 4 15 60; do
	diagnose --hang 5s --timeout ${timeout}s --agents "@$list"
	code=$?
	asked=$(grep -c 'GET /api/v1/snapshot' "$tap_scratch/asked/locked")
	"$ringside" doctor -a --timeout ${timeout}s --agents "@$list" >"$tap_scratch/said" 2>"$tap_scratch/err"
	[ "$(value '$_->{looked_at}{sources_silent}')" != 13 ] && grep -q "HTTP 401" "$tap_scratch/said" && break
done
expect_same "one good agent among many broken ones: the hang is found" \
	"$code $(value '"$_->{verdicts}[0]{class} $_->{verdicts}[0]{rank}"')" "1 never_issued 5"
expect_same "and twelve are reported as silent" "$(value '"$_->{looked_at}{sources} $_->{looked_at}{sources_silent}"')" "13 12"
expect_ok "with the reason" grep -q "password or token required (HTTP 401): use --auth FILE" <(tr -s "\n " " " <"$tap_scratch/said")
expect_ok "no escape sequences of theirs reach the terminal" test "$(grep -c $'\033' "$tap_scratch/said")" -eq 0
expect_same "and nothing on stderr" "$(cat "$tap_scratch/err")" ""
expect_refusal "an invalid credentials file" 2 "no line" "$ringside" doctor --auth /dev/null --agents "$(address_of good)"
diagnose --agents "127.0.0.1:$(port_of refused)" --timeout 1s
expect_same "nobody answers: could not tell" "$? $(value '$_->{verdicts}[0]{class}')" "3 blind"
expect_same "each agent was asked once at a time" "$(grep -c 'GET /api/v1/snapshot' "$tap_scratch/asked/locked")" $((asked + 1))

diagnose --hang 5s --gpu-hour-price 3600 "$tap_scratch/hung"
expect_ok "the cost" test "$(value 'int(abs($_->{verdicts}[0]{money} - 8 * $_->{verdicts}[0]{seconds}))')" -eq 0

# ---- --watch: what appears, and what clears

watch() { # option...
	rm -f "$tap_scratch/watched"
	"$ringside" doctor --watch --interval 200ms --hang 5s "$@" "${good[@]}" \
		>"$tap_scratch/watched" 2>"$tap_scratch/watch.err" &
	watch_pid=$!
	started+=("$watch_pid")
}
watch --json
until_ok test -s "$tap_scratch/watched"
kill -TERM "$watch_pid"
wait "$watch_pid"
expect_same "it ends on SIGTERM with the exit code of the last scan" "$?" 1
expect_same "a line of JSON" "$(head -n 1 "$tap_scratch/watched" | json_says '$_->{verdicts}[0]{rank}')" 5
expect_same "and nothing if nothing changes" "$(wc -l <"$tap_scratch/watched")" 1

serve() { # directory: from now on, whole
	tar -C "$tap_scratch" -cf "$tap_scratch/next" "$1"
	mv "$tap_scratch/next" "$tap_scratch/served"
}
serve healthy
watch
until_ok grep -q ^healthy "$tap_scratch/watched"
serve hung
until_ok grep -q appeared "$tap_scratch/watched"
serve healthy
until_ok grep -q cleared "$tap_scratch/watched"
kill -INT "$watch_pid"
wait "$watch_pid"
expect_same "it ends on SIGINT with the exit code of the last scan" "$?" 0
expect_ok "a new verdict is printed with the time" grep -qE '^20[0-9-]+ [0-9:]+ UTC: appeared$' "$tap_scratch/watched"
expect_ok "and with its evidence" grep -q '^error       rank 5 ' "$tap_scratch/watched"
expect_ok "a cleared verdict is printed, too" grep -qE 'UTC: cleared after .*: rank 5 ' "$tap_scratch/watched"
serve healthy
watch --json
until_ok test -s "$tap_scratch/watched"
serve hung
until_ok grep -q '"event":"appeared"' "$tap_scratch/watched"
serve healthy
until_ok grep -q '"event":"cleared"' "$tap_scratch/watched"
kill -TERM "$watch_pid"
wait "$watch_pid"
expect_same "the same as JSON, a line each" \
	"$(python3 -c 'import json, sys
for line in sys.stdin:
    event = json.loads(line)
    print(event.get("event", event.get("format")), event.get("verdict", {}).get("rank"))' <"$tap_scratch/watched" | sort -u)" \
	"appeared 5
cleared None
ringside-doctor None"
tap_done
