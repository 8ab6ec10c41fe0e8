#!/usr/bin/env bash
# The services under a real systemd: the packages are installed in a container (systemd-nspawn on an overlay of this machine), where
# agent and hub start, reload, are watched, crash, stop, and are removed. What happens inside comes back as lines "WHAT VALUE".
. "$(dirname "$0")/dist.sh"
[ "$(id -u)" = 0 ] || tap_skip_all "only root can start a container"
command -v systemd-nspawn >/dev/null || tap_skip_all "there is no systemd-nspawn"
[ -x /lib/systemd/systemd ] || tap_skip_all "there is no systemd"
[ -x "$BUILD/ringside-agent" ] || tap_skip_all "the agent is not built"

units=$tap_scratch/units
mkdir "$units"
cp "$BUILD/ringside-agent" "$units/"
for unit in ringside-agent ringside-hub; do
	sed "s|@bindir@|$units|" "packaging/systemd/$unit.service" >"$units/$unit.service" # no spaces in there
	expect_same "systemd accepts $unit" "$(systemd-analyze verify --man=no "$units/$unit.service" 2>&1 | grep -F "$unit")" ""
done
# "→ Overall exposure level for ringside-agent.service: 2.8 OK". The agent may read other users' files, the kernel log
# and GPU devices, which costs points.
exposure() { # unit threshold in tenths
	systemd-analyze security --offline=yes --no-pager --threshold="$2" "$units/$1.service"
}
expect_ok "the agent is exposed to little" exposure ringside-agent 28
expect_ok "the hub to less" exposure ringside-hub 21

pack_once deb
mkdir "$tap_scratch/container"
cat >"$tap_scratch/inside" <<'END'
#!/bin/bash
say() { printf '%s\n' "$*" >>/out; }
show() { systemctl show -P "$2" "ringside-$1.service"; }
# Until a command succeeds; a minute is generous.
soon() {
	for _ in $(seq 600); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	return 1
}
restarted() { [ "$(show agent NRestarts)" -ge "$1" ] && [ "$(show agent ActiveState)" = active ]; }
is() { [ "$(show "$1" "$2")" = "$3" ]; }
shows() { curl -sf http://127.0.0.1:9749/metrics | grep -qE "$1"; }
# systemd gives a container a boot id of its own, and the service another view of it.
lives() { curl -sf http://127.0.0.1:9749/api/v1/summary | grep -q '"processes_alive": *2'; }
# This machine may forbid packages to start services.
rm -f /usr/sbin/policy-rc.d
installed=$(dpkg --get-selections | wc -l)
# Triggers would index all manual pages.
dpkg --no-triggers -i /debs/*.deb >/install.log 2>&1
say installed $?
say enabled "$(systemctl is-enabled ringside-agent) $(systemctl is-active ringside-agent)"
for service in agent hub; do
	# Quick, so that the test is.
	mkdir -p "/etc/systemd/system/ringside-$service.service.d"
	printf '[Service]\nRestartSec=100ms\nWatchdogSec=10\n' >"/etc/systemd/system/ringside-$service.service.d/quick.conf"
done
systemctl daemon-reload
echo 'ARGS=--agents 127.0.0.1:9749 --listen 127.0.0.1:9748' >/etc/default/ringside-hub
@configure@ && @enable@ >/dev/null 2>&1
say started "$(show agent ActiveState) $(show agent SubState)"
pid=$(show agent MainPID)
say user "$(stat -c %u "/proc/$pid" | sed 's/^[1-9][0-9]*$/somebody/')"
say healthy "$(curl -sf http://127.0.0.1:9749/healthz | grep -c '"status":"ok"')"
# A job of another user, seen through everything that the unit forbids.
RINGSIDE_JOB=contained setpriv --reuid 4242 --regid 4242 --clear-groups ringside-sim --nodes 1 --gpus 2 --iterations 100000 >/sim.log 2>&1 &
job=$!
soon shows '^nccl_process_info\{.*contained'
say sees-jobs $?
soon lives
say sees-life $?
kill $job
systemctl reload ringside-agent
say reloaded "$? $(show agent ActiveState) $([ "$(show agent MainPID)" = "$pid" ] && echo same-process)"
dpkg --no-triggers -i /debs/ringside-agent_*.deb >>/install.log 2>&1
say upgraded "$? $(show agent ActiveState) $([ "$(show agent MainPID)" != "$pid" ] && echo new-process)"
# Stopped for longer than the watchdog allows.
before=$(show agent NRestarts)
kill -STOP "$(show agent MainPID)"
soon restarted $((before + 1))
say watched $?
# Repeated crashes.
for crash in 2 3; do
	kill -SEGV "$(show agent MainPID)"
	soon restarted $((before + crash))
	say crash-$((crash - 1)) $?
done
systemctl reset-failed ringside-agent
systemctl stop ringside-agent
say stopped "$(show agent ActiveState) $(show agent Result) $(show agent ExecMainStatus)"
echo 'ARGS=--no-such-option' >/etc/default/ringside-agent
systemctl start ringside-agent 2>/dev/null
soon is agent ActiveState failed
say wrong-options "$(show agent ExecMainStatus) $(show agent NRestarts) restarts"
echo 'ARGS=' >/etc/default/ringside-agent
systemctl reset-failed
systemctl start ringside-agent ringside-hub
say both "$(show agent ActiveState) $(show hub ActiveState)"
say hub-healthy "$(curl -sf http://127.0.0.1:9748/healthz | grep -c '"status":"ok"')"
systemctl reload ringside-hub
say hub-reloaded "$(show hub ActiveState)"
dpkg --no-triggers -P nccl-profiler-ringside ringside ringside-agent ringside-bench ringside-sim >>/install.log 2>&1
say purged "$? $(systemctl is-active ringside-agent ringside-hub | tr '\n' ' ')"
say left "$(find /etc /usr /var /run -xdev -path /var/tmp -prune -o -name '*ringside*' -newer /begin -print | grep -v -e 'service\.d$' -e ringside-test | tr '\n' ' ')"
say packages $(($(dpkg --get-selections | wc -l) - installed))
END
sed -i "s|@configure@|$(as_written '^echo .*ringside-agent')|; s|@enable@|$(as_written '^systemctl enable')|" "$tap_scratch/inside"
cat >"$tap_scratch/boot" <<'END'
# boot SCRATCH DEBS...: in a mount namespace, so that nothing stays mounted
set -eu
cd "$1"
shift
mount -t tmpfs tmpfs container
mkdir container/up container/work container/root
mount -t overlay overlay -o "lowerdir=/,upperdir=container/up,workdir=container/work" container/root
root=$PWD/container/root
rm -rf "$root"/etc/systemd/system/*.wants "$root"/etc/systemd/system/default.target
: >"$root/etc/machine-id"
mkdir "$root/debs"
cp "$@" "$root/debs"
install -m 755 inside "$root/inside"
: >"$root/begin"
cat >"$root/etc/systemd/system/ringside-test.service" <<'UNIT'
[Unit]
DefaultDependencies=no
After=sysinit.target
Requires=sysinit.target
[Service]
Type=oneshot
ExecStart=/inside
ExecStopPost=/bin/systemctl --no-block exit
TimeoutStartSec=500
UNIT
systemd-nspawn --quiet -D "$root" --register=no --keep-unit --private-network --console=pipe --boot -- \
	--unit=ringside-test.service --log-target=null </dev/null >console.log 2>&1 || echo "nspawn $?"
[ ! -e "$root/out" ] || cat "$root/out"
[ ! -e "$root/install.log" ] || cp "$root/install.log" .
END
heard=$(timeout 550 unshare --mount --propagation private bash "$tap_scratch/boot" "$tap_scratch" "$dist"/{nccl-profiler-ringside,ringside,ringside-{agent,bench,sim}}_"$VERSION"_*.deb 2>&1)
if ! grep -q '^installed' <<<"$heard"; then
	printf '%s\n' "$heard" | sed 's/^/# /'
	tap_note_skip "no systemd could be started in a container here: its services were not run"
	tap_done
	exit
fi
expect_heard() { # sentence what value
	expect_same "$1" "$(sed -n "s/^$2 //p" <<<"$heard")" "$3"
}
expect_heard "the packages are installed" installed 0
expect_heard "their services are neither enabled nor started" enabled "disabled inactive"
expect_heard "the agent starts, and says that it is ready" started "active running"
expect_heard "it is not root" user somebody
expect_heard "it answers" healthy 1
expect_heard "it sees the job of another user" sees-jobs 0
expect_heard "and that its processes are alive" sees-life 0
expect_heard "it reloads without a new process" reloaded "0 active same-process"
expect_heard "a new version of the package starts it again" upgraded "0 active new-process"
expect_heard "the watchdog starts it again when it hangs" watched 0
expect_heard "it comes back after a crash" crash-1 0
expect_heard "and after the next" crash-2 0
expect_heard "it stops in peace" stopped "inactive success 0"
expect_heard "with wrong options it is not tried again" wrong-options "2 0 restarts"
expect_heard "agent and hub run side by side" both "active active"
expect_heard "the hub answers" hub-healthy 1
expect_heard "the hub reloads" hub-reloaded active
expect_heard "removing the packages stops both" purged "0 inactive inactive "
expect_heard "nothing of them is left" left ""
expect_heard "and the list of packages is as before" packages 0
[ "$tap_failed" -eq 0 ] || sed 's/^/# /' "$tap_scratch/install.log" "$tap_scratch/console.log"
tap_done
