#!/usr/bin/env bash
# A real Prometheus scrapes all three formats, including native histograms; the queries of docs/METRICS.md are valid.
. "$(dirname "$0")/metrics.sh"
command -v prometheus >/dev/null || tap_skip_all "prometheus is not installed"
command -v python3 >/dev/null || tap_skip_all "python3 is not installed"
build_tool metrics_sample
unset http_proxy HTTP_PROXY
if python3 tests/metrics/metrics_prometheus.py "$tap_scratch/metrics_sample" "$tap_scratch" docs/METRICS.md \
	>"$tap_scratch/said" 2>&1; then
	tap_line ok "Prometheus scrapes everything" ""
else
	tap_line "not ok" "Prometheus scrapes everything" "$(cat "$tap_scratch/said"; tail -n 5 "$tap_scratch/prometheus.log")"
fi
while IFS= read -r line; do
	case $line in
	ok:*) tap_line ok "${line#ok: }" "" ;;
	wrong:*) tap_line "not ok" "${line#wrong: }" "$line" ;;
	esac
done <"$tap_scratch/said"
expect_same "everything was compared" "$(grep -c '^ok' "$tap_scratch/said")" 10
tap_done
