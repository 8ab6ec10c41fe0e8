#!/usr/bin/env bash
# Our records as NCCL Inspector's logs, and back: nothing that the format can hold is lost.
. "$(dirname "$0")/../cli/cli.sh"

"$ringside" sim --offline --kernel --nodes 2 --gpus 2 -w tp-pp --seconds 3s -o "$tap_scratch/traces" >/dev/null 2>&1
expect_ok "an export as Inspector's logs" "$ringside" export "$tap_scratch/traces" --format inspector -o "$tap_scratch/logs/"
expect_same "files are named like Inspector's" \
	"$(find "$tap_scratch/logs" -type f | grep -cvE '/[A-Za-z0-9]+-pid[0-9]+\.log$')" 0
expect_same "one per process" "$(find "$tap_scratch/logs" -type f | wc -l)" 4

# What both sides have for every operation with a duration that Inspector knows.
facts() { # PATH
	"$ringside" dump "$1" | perl -MJSON::PP -ne '
		my $op = decode_json($_);
		next unless $op->{duration_ns} && defined $op->{bytes};
		next unless $op->{function} =~ /^(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|Send|Recv)$/;
		my $peer = $op->{peer} // "-";
		my $number = $op->{function} =~ /^(Send|Recv)$/ ? "-" : $op->{nccl_sequence};
		printf "%s %s %s %s %s %s %s %d %s\n", $op->{host}, $op->{pid}, $op->{comm_hash}, $op->{comm_rank},
			$op->{function}, $number, $peer, ($op->{duration_ns} + 500) / 1000, $op->{bytes};' | sort
}
facts "$tap_scratch/traces" >"$tap_scratch/before"
facts "$tap_scratch/logs" >"$tap_scratch/after"
expect_ok "there are some" test "$(wc -l <"$tap_scratch/before")" -gt 500
expect_ok "the same operations, sizes, and times to the microsecond come back" cmp "$tap_scratch/before" "$tap_scratch/after"

# What perf_summary_exporter.py reads from a line: every field by name, with the right type.
expect_same "every line has what NVIDIA's own reader needs" "$(cat "$tap_scratch"/logs/*.log | perl -MJSON::PP -ne '
	BEGIN {
		%number = map { $_ => 1 } qw(rank n_ranks nnodes dump_timestamp_us pid coll_sn coll_msg_size_bytes coll_exec_time_us
			coll_algobw_gbs coll_busbw_gbs p2p_sn p2p_peer p2p_msg_size_bytes p2p_exec_time_us p2p_algobw_gbs p2p_busbw_gbs);
		%fields = (header => [qw(id comm_name rank n_ranks nnodes)],
			metadata => [qw(inspector_output_format_version git_rev rec_mechanism dump_timestamp_us hostname pid)],
			coll_perf => [qw(coll coll_sn coll_msg_size_bytes coll_exec_time_us coll_timing_source coll_algobw_gbs coll_busbw_gbs)],
			p2p_perf => [qw(p2p p2p_sn p2p_peer p2p_msg_size_bytes p2p_exec_time_us p2p_timing_source p2p_algobw_gbs p2p_busbw_gbs)]);
	}
	my $line = decode_json($_);
	my $body = exists $line->{coll_perf} ? "coll_perf" : "p2p_perf";
	$wrong++ unless join(" ", sort keys %$line) eq join(" ", sort "header", "metadata", $body);
	for my $part ("header", "metadata", $body) {
		for my $key (@{$fields{$part}}) {
			my $value = $line->{$part}{$key};
			my $is_number = defined $value && encode_json([$value]) =~ /^\[-?[0-9]/;
			$wrong++ if !defined $value || $is_number != exists $number{$key};
		}
		$wrong++ if keys %{$line->{$part}} != @{$fields{$part}};
	}
	$wrong++ unless $line->{metadata}{inspector_output_format_version} eq "v4.0";
	END { print $wrong // 0 }')" 0
expect_same "nothing that is there is counted as missing" \
	"$("$ringside" ls --json "$tap_scratch/logs" | grep -o '"lost":{[^}]*"switched_off":[1-9]' | wc -l)" 0

# Two processes with the same identity.
"$ringside" import tests/foreign/data/inspector-v4.0.log tests/foreign/data/inspector-v4.1.log -o "$tap_scratch/twins" >/dev/null
"$ringside" export "$tap_scratch/twins" --format inspector -o "$tap_scratch/twin-logs/" >/dev/null 2>&1
expect_same "two processes with the same name get separate files, and records of unknown size no line" \
	"$(cd "$tap_scratch/twin-logs" && wc -l -- *.log | awk '{ print $1, $2 }' | tr '\n' ' ')" \
	"6 alpha-pid4100-2.log 23 alpha-pid4100.log 29 total "
tap_done
