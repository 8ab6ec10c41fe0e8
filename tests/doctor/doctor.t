#!/usr/bin/env bash
# The command: options, sources, exit codes, JSON, watching. What verdicts say is tested elsewhere.
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

# ---- a healthy job, a hung one, nothing at all

expect_same "a healthy job: exit code 0" "$(code_of "$ringside" doctor "$tap_scratch/healthy")" 0
expect_ok "and one clear sentence" \
	grep -q '^healthy     8 ranks on 2 hosts, 1 communicator; all its processes have ended' \
	<("$ringside" doctor "$tap_scratch/healthy")
expect_same "a hung one: exit code 1" "$(code_of "$ringside" doctor --hang 5s "$tap_scratch/hung")" 1
"$ringside" doctor --hang 5s "$tap_scratch/hung" >"$tap_scratch/said"
expect_ok "the culprit is named first" grep -q '^error       rank 5 ' "$tap_scratch/said"
for part in evidence confidence 'next steps' runbook; do
	expect_ok "there is: $part" grep -q "^$part  " "$tap_scratch/said"
done
expect_ok "and where communicators stand" grep -qE '^world +8 +8 +7 ' "$tap_scratch/said"
expect_same "nothing beyond 80 columns on a terminal of 80" \
	"$(COLUMNS=80 "$ringside" doctor --hang 5s "$tap_scratch/hung" | awk 'length > 80')" ""
expect_same "no colours into a pipe" "$(grep -c $'\033' "$tap_scratch/said")" 0
expect_same "less than --hang is no hang" "$(code_of "$ringside" doctor --hang 500s "$tap_scratch/hung")" 0
# Other tests have processes, too, and those are found.
if unshare -Urpf --mount-proc true 2>/dev/null; then
	expect_refusal "nothing recorded" 3 "nothing is recorded on this machine" unshare -Urpf --mount-proc "$ringside" doctor
fi
expect_refusal "a path that leads nowhere" 3 "No such file" "$ringside" doctor "$tap_scratch/nowhere"
if command -v script >/dev/null; then
	script -qec "$ringside doctor --hang 5s $tap_scratch/hung" /dev/null >"$tap_scratch/terminal" 2>&1 </dev/null
	expect_ok "colours on a terminal" grep -q $'\033\[1;31merror' "$tap_scratch/terminal"
	NO_COLOR=1 script -qec "$ringside doctor --hang 5s $tap_scratch/hung" /dev/null >"$tap_scratch/terminal" 2>&1 </dev/null
	expect_same "none with NO_COLOR" "$(grep -c $'\033' "$tap_scratch/terminal")" 0
fi

# Of processes that are gone: what they left behind is told when nothing runs any more.
make_samples
expect_same "a job that was killed is trouble, whether it hung or not" \
	"$(code_of "$ringside" doctor --hang 1s "$tap_scratch/stuck") $(code_of "$ringside" doctor --hang 1000s "$tap_scratch/stuck")" "1 1"
expect_ok "dead is not healthy" grep -q '^dead        1 rank .*' <("$ringside" doctor --hang 1000s "$tap_scratch/stuck")
expect_ok "losses limit what can be said" grep -q '^warning  .*12 operations were lost by the recorder of 1 process$' \
	<("$ringside" doctor "$tap_scratch/lossy")

# ---- JSON

diagnose --hang 5s "$tap_scratch/hung"
expect_same "JSON: format and version" "$(value '"$_->{format} $_->{version}"')" "ringside-doctor 1"
expect_same "what was looked at" "$(value '"$_->{looked_at}{ranks} $_->{looked_at}{hosts} $_->{looked_at}{communicators}"')" "8 2 1"
expect_same "the verdict" "$(value 'my $v = $_->{verdicts}[0]; "$v->{class} $v->{severity} $v->{rank} $v->{communicator}"')" \
	"never_issued error 5 world"
expect_same "python reads it, too" "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["is_healthy"])' <"$tap_scratch/doctor.json")" False
diagnose "$tap_scratch/healthy"
expect_same "healthy" "$(value '"$_->{is_healthy} " . scalar(grep { $_->{severity} ne "note" } @{$_->{verdicts}})')" "1 0"

# Every key is explained.
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
expect_same "of which there are no others" "$(sed -n 's/.*\[VERDICT_[A-Z_]*\] = { "\([a-z_]*\)".*/\1/p' src/doctor/verdict.c |
	while IFS= read -r class; do grep -qF "| \`$class\` |" docs/DOCTOR.md || echo "$class"; done)" ""

# ---- options

expect_refusal "two sources" 2 "three sources" "$ringside" doctor --agents a x
expect_refusal "two sources, again" 2 "three sources" "$ringside" doctor --agents a --prometheus http://b
expect_refusal "no agent" 2 "names no agent" "$ringside" doctor --agents ,
expect_refusal "a bad agent" 2 "'a:b' has no port" "$ringside" doctor --agents a:b
expect_refusal "a password on the command line" 2 "goes into a file" "$ringside" doctor --agents http://me:pw@a
expect_refusal "no list of agents" 2 "No such file" "$ringside" doctor --agents "@$tap_scratch/none"
expect_refusal "no URL" 2 "is no URL" "$ringside" doctor --prometheus prometheus:9090
expect_refusal "a bad time" 2 "is not a time" "$ringside" doctor --hang soon
expect_refusal "a time that is too short" 2 "too short" "$ringside" doctor --interval 1ms
expect_refusal "a bad number" 2 "from 1 to 1024" "$ringside" doctor --parallel 0
expect_refusal "a bad price" 2 "is no price" "$ringside" doctor --gpu-hour-price free
for peak in '' nvlink nvlink=x net=-1 disk=5; do
	expect_refusal "a bad peak: '$peak'" 2 "is not like nvlink=450" "$ringside" doctor --peak "$peak"
done
expect_refusal "watching files" 2 "follows what runs" "$ringside" doctor --watch "$tap_scratch/hung"
expect_refusal "no such baseline" 3 "No such file" "$ringside" doctor --baseline "$tap_scratch/none" "$tap_scratch/healthy"
expect_refusal "a baseline that is none" 3 "baseline" "$ringside" doctor --baseline README.md "$tap_scratch/healthy"
expect_refusal "expected bandwidth that is none" 3 "no file of expected" "$ringside" doctor --expected README.md "$tap_scratch/healthy"
expect_refusal "a job that is not there" 3 "no process of a job 'other'" "$ringside" doctor --job other "$tap_scratch/healthy"
expect_same "a job that is" "$(code_of "$ringside" doctor --job sim-7 "$tap_scratch/healthy")" 0
expect_refusal "a log that is not there" 3 "No such file" "$ringside" doctor --log "$tap_scratch/none"

# ---- sources

tar -C "$tap_scratch" -cf "$tap_scratch/bundle.tar" hung
diagnose --hang 5s "$tap_scratch/bundle.tar"
expect_same "an archive" "$? $(value '$_->{verdicts}[0]{rank}')" "1 5"
tar -C "$tap_scratch" -cf "$tap_scratch/whole.tar" healthy
head -c "$(($(stat -c %s "$tap_scratch/whole.tar") * 6 / 10))" "$tap_scratch/whole.tar" >"$tap_scratch/cut.tar"
diagnose "$tap_scratch/cut.tar"
expect_same "an archive that was cut is not healthy" \
	"$? $(value 'join " ", map { "$_->{class}/$_->{rule}" } grep { $_->{severity} eq "warning" && $_->{rule} eq "files" } @{$_->{verdicts}}')" \
	"1 blind/files"
expect_ok "and verify names it" grep -q "$tap_scratch/cut.tar: archive truncated at byte" <("$ringside" verify "$tap_scratch/cut.tar" 2>&1)
split -n 3 "$tap_scratch/whole.tar" "$tap_scratch/part."
gzip "$tap_scratch"/part.a?
cat "$tap_scratch"/part.a?.gz >"$tap_scratch/parts.tar.gz"
diagnose "$tap_scratch/parts.tar.gz"
expect_same "one that was packed in parts is read to its end" "$? $(value '$_->{looked_at}{ranks}')" "0 8"
mkdir "$tap_scratch/logs"
printf 'node1:77:88 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>\nsomething else\n' >"$tap_scratch/logs/a.log"
printf 'node2:77:88 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.2<0>\n' >"$tap_scratch/logs/b.log"
diagnose --log "$tap_scratch/logs/a.log" "$tap_scratch/logs/b.log"
expect_same "files behind --log are logs" "$(value '"$_->{looked_at}{log_files} $_->{looked_at}{log_lines}"')" "2 3"
diagnose --log "$tap_scratch/logs"
expect_same "a directory of them" "$(value '$_->{looked_at}{log_files}')" 2
ln -s . "$tap_scratch/logs/again"
ln -s /etc "$tap_scratch/logs/away"
diagnose --log "$tap_scratch/logs"
expect_same "links in it are not followed" "$(value '$_->{looked_at}{log_files}')" 2
rm "$tap_scratch/logs/again" "$tap_scratch/logs/away"
diagnose --log <(sleep 0.2; cat "$tap_scratch/logs/a.log")
expect_same "what another program writes" "$? $(value '$_->{looked_at}{log_lines}')" "0 2"
mkdir -p "$tap_scratch/deep/1/2/3/4/5/6/7/8/9"
diagnose --log "$tap_scratch/deep" --log "$tap_scratch/logs"
expect_same "what lies too deep is told" "$(value 'scalar grep { $_->{rule} eq "the rest of the logs" } @{$_->{verdicts}}')" 1
diagnose --log "$tap_scratch/logs" --job sim-7 "$tap_scratch/healthy"
expect_same "with a recording" "$(value '"$_->{looked_at}{log_files} $_->{looked_at}{ranks}"')" "2 8"
cp -r "$tap_scratch/healthy" "$tap_scratch/damaged"
victim=$(find "$tap_scratch/damaged" -type f | sort | head -n 1)
printf 'x%.0s' $(seq 100) | dd of="$victim" bs=1 seek=3000 conv=notrunc 2>/dev/null
diagnose "$tap_scratch/damaged"
expect_same "a damaged file is said, and limits the rest" \
	"$? $(value 'join " ", map { "$_->{class}/$_->{rule}" } grep { $_->{severity} eq "warning" } @{$_->{verdicts}}')" "1 blind/files"

# ---- agents

if [ ! -x "$fetch" ]; then
	tap_line ok "agents # SKIP built without libcurl" ""
	tap_done
fi
mkdir "$tap_scratch/bin"
cp "$ringside" "$tap_scratch/bin/ringside"
expect_refusal "without ringside-fetch one line says what to install" 3 "libcurl4-gnutls-dev" \
	"$tap_scratch/bin/ringside" doctor --agents a
cp "$tap_scratch/bundle.tar" "$tap_scratch/served"
start_servers /api/v1/snapshot="$tap_scratch/served"
# A busy machine is no dead agent: who answers at all has time for it.
good=(--timeout 60s --agents "$(address_of good)")
diagnose --hang 5s "${good[@]}"
expect_same "a snapshot" "$? $(value '"$_->{verdicts}[0]{rank} $_->{looked_at}{sources} $_->{looked_at}{sources_silent}"')" "1 5 1 0"
"$ringside" doctor --json --hang 5s "${good[@]}" <&- >"$tap_scratch/doctor.json" 2>/dev/null
expect_same "also with standard input closed" "$? $(value '"$_->{verdicts}[0]{rank} $_->{looked_at}{sources_silent}"')" "1 5 0"

# What an agent says it left out; and agents that a bundle had no answer of.
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
expect_same "what an agent left out is told" "$? $(said_of agents)" "1 blind/agents/warning"
expect_same "all of it" "$(value 'scalar @{(grep { $_->{rule} eq "agents" } @{$_->{verdicts}})[0]{evidence}}')" 3
expect_ok "a bundle is made of it" "$ringside" bundle --no-ras "${good[@]}" -o "$tap_scratch/partly.tar"
expect_ok "whose README says so" grep -q '2 processes are not in its answer' <(tar xOf "$tap_scratch/partly.tar" ringside-bundle/README.txt)
diagnose "$tap_scratch/partly.tar"
expect_same "and the doctor, too" "$? $(said_of agents)" "1 blind/agents/warning"
tar -C "$tap_scratch" -cf "$tap_scratch/served" half
both=(--timeout 60s --agents "$(address_of good),127.0.0.1:$(port_of refused)")
diagnose --hang 5s "${both[@]}"
expect_same "others wait for ranks of a silent agent" "$? $(value '$_->{verdicts}[0]{class}')" "1 agent_dead"
expect_ok "a bundle of that" "$ringside" bundle --hang 5s --no-ras "${both[@]}" -o "$tap_scratch/half.tar"
diagnose --hang 5s "$tap_scratch/half.tar"
expect_same "says the same" "$? $(value '"$_->{verdicts}[0]{class} $_->{looked_at}{sources} $_->{looked_at}{sources_silent}"')" "1 agent_dead 2 1"
expect_same "and so does what is in it" "$(tar xOf "$tap_scratch/half.tar" ringside-bundle/doctor.json | json_says '$_->{verdicts}[0]{class}')" agent_dead
cp "$tap_scratch/bundle.tar" "$tap_scratch/served"
list=$tap_scratch/agents
{
	echo "# all of them"
	for server in good silent drip garbage huge half closes redirect wrong locked missing refused; do
		address_of "$server"
	done
	echo no-such-host.invalid
} >"$list"
# Those that never answer take all the time there is, and the others need some of it: more, where the machine is busy.
for timeout in 4 15 60; do
	diagnose --hang 5s --timeout ${timeout}s --agents "@$list"
	code=$?
	asked=$(grep -c 'GET /api/v1/snapshot' "$tap_scratch/asked/locked")
	"$ringside" doctor -a --timeout ${timeout}s --agents "@$list" >"$tap_scratch/said" 2>"$tap_scratch/err"
	[ "$(value '$_->{looked_at}{sources_silent}')" != 13 ] && grep -q "HTTP 401" "$tap_scratch/said" && break
done
expect_same "one good agent among many that are not: the hang is found" \
	"$code $(value '"$_->{verdicts}[0]{class} $_->{verdicts}[0]{rank}"')" "1 never_issued 5"
expect_same "and twelve are said to be silent" "$(value '"$_->{looked_at}{sources} $_->{looked_at}{sources_silent}"')" "13 12"
expect_ok "why, in words" grep -q "it wants a password or token (HTTP 401): --auth FILE" <(tr -s "\n " " " <"$tap_scratch/said")
expect_ok "no bytes of theirs reach the terminal" test "$(grep -c $'\033' "$tap_scratch/said")" -eq 0
expect_same "and nothing on stderr" "$(cat "$tap_scratch/err")" ""
expect_refusal "a secret that is none" 2 "no line" "$ringside" doctor --auth /dev/null --agents "$(address_of good)"
diagnose --agents "127.0.0.1:$(port_of refused)" --timeout 1s
expect_same "nobody answers: trouble, not a failure" "$? $(value '$_->{verdicts}[0]{class}')" "1 blind"
expect_same "each agent was asked once at a time" "$(grep -c 'GET /api/v1/snapshot' "$tap_scratch/asked/locked")" $((asked + 1))

diagnose --hang 5s --gpu-hour-price 3600 "$tap_scratch/hung"
expect_ok "money" test "$(value 'int(abs($_->{verdicts}[0]{money} - 8 * $_->{verdicts}[0]{seconds}))')" -eq 0

# ---- watching: what appears, and what clears

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
expect_same "it ends on SIGTERM with the last look's exit code" "$?" 1
expect_same "a line of JSON" "$(head -n 1 "$tap_scratch/watched" | json_says '$_->{verdicts}[0]{rank}')" 5
expect_same "and no word when nothing changes" "$(wc -l <"$tap_scratch/watched")" 1

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
expect_same "SIGINT ends it with the last look's exit code, too" "$?" 0
expect_ok "what appears is told with the time" grep -qE '^20[0-9-]+ [0-9:]+ UTC: appeared$' "$tap_scratch/watched"
expect_ok "and with its evidence" grep -q '^error       rank 5 ' "$tap_scratch/watched"
expect_ok "what is over is told, too" grep -qE 'UTC: cleared after .*: rank 5 ' "$tap_scratch/watched"
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
