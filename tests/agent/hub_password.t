#!/usr/bin/env bash
# Alerts that are posted to a hub with passwords: a child process checks the password, and nothing is taken before.
. "$(dirname "$0")/agent.sh"
[ -x "$BUILD/ringside-fetch" ] || tap_skip_all "ringside-fetch was not built (no libcurl)"
! ldd "$agent" | grep -q libasan || tap_skip_all "nothing can be preloaded before AddressSanitizer"

# Notes which process computes a hash.
"${CC:-cc}" -shared -fPIC -D_GNU_SOURCE -x c -o "$tap_scratch/shim.so" - -ldl <<'END' || exit 1
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
char *crypt_r(const char *phrase, const char *setting, void *data)
{
	char *(*real)(const char *, const char *, void *) = dlsym(RTLD_NEXT, __func__);
	FILE *file = fopen(getenv("HASHED"), "ae");

	fprintf(file, "%d\n", (int)getpid());
	fclose(file);
	return real(phrase, setting, data);
}
END
hashed=$tap_scratch/hashed
# shellcheck disable=SC2016
printf '%s\n' 'basic_auth_users:' '  alice: $2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW' >"$tap_scratch/web.yml"
: >"$tap_scratch/agents"
LD_PRELOAD=$tap_scratch/shim.so HASHED=$hashed "$agent" hub --listen 127.0.0.1:0 --agents "@$tap_scratch/agents" \
	--web-config "$tap_scratch/web.yml" 2>"$log" &
agent_pid=$!
started+=("$agent_pid")
until_ok eval 'is_listening || ! is_running'
url=$(sed -n 's|.*listening on \(http://[^,]*\).*|\1|p' "$log")
: >"$hashed"

alert='{"version":"4","status":"firing","alerts":[{"status":"firing","labels":{"nccl_job":"x"}}]}'
post() { # curl-option...
	fetch /api/v1/alerts -X POST -H 'Content-Type: application/json' "$@"
}
post_code() { # curl-option...
	code_of /api/v1/alerts -X POST -H 'Content-Type: application/json' "$@"
}
# Alertmanager sends more than one packet if there are many alerts.
{
	head -c 200000 /dev/zero | tr '\0' ' '
	printf '%s' "$alert"
} >"$tap_scratch/long"
head -c 400000 /dev/zero | tr '\0' ' ' >"$tap_scratch/too-long"

expect_same "no password" "$(post_code -d "$alert")" 401
expect_same "a wrong one" "$(post_code -u alice:wrong -d "$alert")" 401
expect_same "a wrong one with a long body" "$(post_code -u alice:wrong --data-binary "@$tap_scratch/long")" 401
expect_same "a wrong one without a body" "$(post_code -u alice:wrong)" 401
expect_same "the right one, with a long body" "$(post -u 'alice:U*U' --data-binary "@$tap_scratch/long")" '{"jobs":0,"jobs_unknown":1}'
expect_same "the right one again" "$(post -u 'alice:U*U' -d "$alert")" '{"jobs":0,"jobs_unknown":1}'
one=(-sS --max-time 60 -H 'Content-Type: application/json' -u 'alice:U*U' -d "$alert" "$url/api/v1/alerts")
expect_same "two on one connection" "$(curl "${one[@]}" --next "${one[@]}")" $'{"jobs":0,"jobs_unknown":1}\n{"jobs":0,"jobs_unknown":1}'
expect_ok "a body without end is cut off" test "$(post_code -u 'alice:U*U' --data-binary "@$tap_scratch/too-long")" != 200
expect_same "four passwords were compared" "$(wc -l <"$hashed")" 4
expect_same "none of them by the hub itself" "$(grep -cx "$agent_pid" "$hashed")" 0

# Requests wait for their turn, as GET does.
pids=()
for i in 1 2 3 4 5 6; do
	post_code -u "alice:wrong$i" -d "$alert" >"$tap_scratch/code.$i" &
	pids+=($!)
done
wait "${pids[@]}"
expect_same "many at the same time" "$(cat "$tap_scratch"/code.* | tr -d '\n')" 401401401401401401
expect_same "and still none by the hub" "$(grep -cx "$agent_pid" "$hashed")" 0
stop_agent
tap_done
