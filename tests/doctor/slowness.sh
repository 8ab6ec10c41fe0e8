# shellcheck shell=bash
# For tests of slowness on simulated jobs: source this instead of tap.sh.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
command -v python3 >/dev/null || tap_skip_all "there is no python3"
ringside=$BUILD/ringside

# A simulated job in the scratch directory; offline: only files are written.
simulate() { # name option...
	local name=$1
	shift
	rm -rf "${tap_scratch:?}/$name"
	"$ringside" sim --offline --kernel -o "$tap_scratch/$name" "$@" >/dev/null
}

save() { # name: a baseline of that job
	"$ringside" baseline save "$tap_scratch/$1" -o "$tap_scratch/$1.json"
}

# The doctor's verdicts, one line each, without notes: "slow_rank 5", "slow_link 3>4",
# "slow_nvlink @node0001", "slow_communicator =dp-1"; nothing if there are none.
named() { # name option...
	list_verdicts note "$@"
}

# The same with notes about slowness, which costs the job little or is over.
found() { # name option...
	list_verdicts none "$@"
}

list_verdicts() { # severity-left-out name option...
	local but=$1 name=$2
	shift 2
	"$ringside" doctor --json "$tap_scratch/$name" "$@" >"$tap_scratch/named.json"
	python3 - "$tap_scratch/named.json" "$but" <<'PYTHON'
import json
import sys

for verdict in json.load(open(sys.argv[1]))["verdicts"]:
    if verdict["severity"] == sys.argv[2] or verdict["class"] in ("setup", "blind"):
        continue
    words = [verdict["class"]]
    if verdict["rank"] is not None:
        peer = "" if verdict["peer"] is None else ">%d" % verdict["peer"]
        words.append("%d%s" % (verdict["rank"], peer))
    elif verdict["host"]:
        words.append("@" + verdict["host"])
    elif verdict["class"] == "slow_communicator":
        words.append("=" + verdict["communicator"])
    print(" ".join(words))
PYTHON
}

# One value of the first verdict of the last call.
value() { # key
	python3 -c 'import json, sys
v = json.load(open(sys.argv[1]))["verdicts"][0]
print(" ".join(v[sys.argv[2]]) if isinstance(v[sys.argv[2]], list) else v[sys.argv[2]])' \
		"$tap_scratch/named.json" "$1"
}
