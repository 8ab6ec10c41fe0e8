/*
 * The byte tables in docs/FORMATS.md and docs/FORMATS.md must agree with the compiler. With --print
 * the rows are printed, without their meaning.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "format/region_layout.h"
#include "format/trace_layout.h"
#include "tests/tap.h"

struct field {
	const char *structure;
	const char *name;
	size_t offset;
	size_t size;
};

#define FIELD(structure, name)                                                 \
	{                                                                      \
		"struct " #structure, #name, offsetof(struct structure, name), \
			sizeof(((struct structure *)NULL)->name)               \
	}

static const struct field region_fields[] = {
	FIELD(region_header, magic),
	FIELD(region_header, major),
	FIELD(region_header, minor),
	FIELD(region_header, byte_order),
	FIELD(region_header, header_bytes),
	FIELD(region_header, total_bytes),
	FIELD(region_header, parts),
	FIELD(region_header, pid),
	FIELD(region_header, pid_namespace),
	FIELD(region_header, start_ticks),
	FIELD(region_header, boot_id),
	FIELD(region_header, mode),
	FIELD(region_header, kind),
	FIELD(region_header, interface),
	FIELD(region_header, mask),
	FIELD(region_header, info_bytes),
	FIELD(region_header, clock),
	FIELD(region_header, first_anchor),
	FIELD(region_header, lock_inode),
	FIELD(region_header, alive_ns),
	FIELD(region_header, last_anchor),
	FIELD(region_header, ended_ns),
	FIELD(region_header, drained),
	FIELD(region_header, details_drained),
	FIELD(region_header, trace_bytes),
	FIELD(region_header, trace_records),
	FIELD(region_header, lost),
	FIELD(region_header, odd),
	FIELD(region_header, ring_head),
	FIELD(region_header, details_head),
	FIELD(region_header, comms_made),
	FIELD(region_header, live_cursor),
	FIELD(region_header, proxy_cursor),
	FIELD(region_header, totals_used),
	FIELD(region_header, names_used),
	FIELD(region_header, kernel_request),
	FIELD(region_header, kernel_answer),
	FIELD(region_header, sampling),
	FIELD(region_header, timing_error),
	FIELD(region_header, timed_launches),
	FIELD(region_header, untimed_launches),
	FIELD(region_header, recording_ns),
	FIELD(region_header, times_read_ns),
	FIELD(region_header, times_taken),
	FIELD(region_header, times_dropped),
	FIELD(region_part, offset),
	FIELD(region_part, count),
	FIELD(region_part, stride),
	FIELD(region_comm, word),
	FIELD(region_comm, reserved),
	FIELD(region_comm, info),
	FIELD(region_comm, counts),
	FIELD(region_comm, untrusted_channels),
	FIELD(region_live, word),
	FIELD(region_live, group),
	FIELD(region_live, started),
	FIELD(region_live, stopped),
	FIELD(region_live, last_start_ns),
	FIELD(region_live, first_stop_ns),
	FIELD(region_live, task_index),
	FIELD(region_live, notes),
	FIELD(region_live, comm_slot),
	FIELD(region_live, op),
	FIELD(region_proxy, word),
	FIELD(region_proxy, live),
	FIELD(region_proxy, live_generation),
	FIELD(region_proxy, comm),
	FIELD(region_proxy, peer),
	FIELD(region_proxy, origin_pid),
	FIELD(region_proxy, channel),
	FIELD(region_proxy, flags),
	FIELD(region_proxy, number),
	FIELD(region_proxy, steps),
	FIELD(region_proxy, chunk_bytes),
	FIELD(region_proxy, posted),
	FIELD(region_proxy, transmitted),
	FIELD(region_proxy, done),
	FIELD(region_proxy, start_ns),
	FIELD(region_proxy, active_ns),
	FIELD(region_proxy, since_ns),
	FIELD(region_proxy, bytes),
	FIELD(region_proxy, wait_ns),
	FIELD(region_proxy, open),
	FIELD(region_step, step_plus_1),
	FIELD(region_step, state),
	FIELD(region_step, polls),
	FIELD(region_step, time_ns),
	FIELD(region_step, bytes),
	FIELD(region_peer, key),
	FIELD(region_peer, count),
	FIELD(region_total, key),
	FIELD(region_total, count),
	FIELD(region_total, bytes),
	FIELD(region_total, timed),
	FIELD(region_total, sum_ns),
	FIELD(region_total, max_ns),
	FIELD(region_total, send_bytes),
	FIELD(region_total, recv_bytes),
	FIELD(region_total, wait_ns),
	FIELD(region_total, timed_bytes),
	FIELD(region_total, shared),
	FIELD(region_total, buckets),
	FIELD(region_total, shared_ns),
	FIELD(region_link, key),
	FIELD(region_link, proxies),
	FIELD(region_link, steps),
	FIELD(region_link, bytes),
	FIELD(region_link, wait_ns),
};

static const struct field shared_fields[] = {
	FIELD(op_record, sequence),
	FIELD(op_record, comm),
	FIELD(op_record, function),
	FIELD(op_record, datatype),
	FIELD(op_record, algorithm),
	FIELD(op_record, protocol),
	FIELD(op_record, number),
	FIELD(op_record, match),
	FIELD(op_record, signature),
	FIELD(op_record, count),
	FIELD(op_record, bytes),
	FIELD(op_record, nccl_sequence),
	FIELD(op_record, user_tag),
	FIELD(op_record, stream),
	FIELD(op_record, root),
	FIELD(op_record, peer),
	FIELD(op_record, flags),
	FIELD(op_record, state),
	FIELD(op_record, time_source),
	FIELD(op_record, channels),
	FIELD(op_record, warps),
	FIELD(op_record, issue_ns),
	FIELD(op_record, launch_ns),
	FIELD(op_record, task_ns),
	FIELD(op_record, active_ns),
	FIELD(op_record, done_ns),
	FIELD(op_record, gpu_start_ns),
	FIELD(op_record, gpu_stop_ns),
	FIELD(op_record, start_spread_ns),
	FIELD(op_record, stop_spread_ns),
	FIELD(op_record, kernels_started),
	FIELD(op_record, kernels_stopped),
	FIELD(op_record, proxies_started),
	FIELD(op_record, proxies_stopped),
	FIELD(op_record, captured_number),
	FIELD(op_record, send_bytes),
	FIELD(op_record, recv_bytes),
	FIELD(op_record, wait_ns),
	FIELD(op_record, send_steps),
	FIELD(op_record, recv_steps),
	FIELD(op_record, reserved),
	FIELD(op_detail, sequence),
	FIELD(op_detail, comm),
	FIELD(op_detail, kind),
	FIELD(op_detail, channel),
	FIELD(op_detail, flags),
	FIELD(op_detail, number),
	FIELD(op_detail, peer),
	FIELD(op_detail, step),
	FIELD(op_detail, time_ns),
	FIELD(op_detail, bytes),
	FIELD(op_detail, origin_pid),
	FIELD(comm_info, id),
	FIELD(comm_info, interface),
	FIELD(comm_info, hash),
	FIELD(comm_info, rank),
	FIELD(comm_info, nranks),
	FIELD(comm_info, nnodes),
	FIELD(comm_info, flags),
	FIELD(comm_info, init_ns),
	FIELD(comm_info, finalize_ns),
	FIELD(comm_info, gpu),
	FIELD(comm_info, mask),
	FIELD(comm_info, gpu_offset_ns),
	FIELD(comm_info, gpu_offset_at_ns),
	FIELD(comm_info, name),
	FIELD(comm_info, gpu_uuid),
	FIELD(comm_info, gpu_bus),
	FIELD(comm_info, place_error_ns),
	FIELD(comm_info, reserved),
	FIELD(comm_counts, issued),
	FIELD(comm_counts, collectives),
	FIELD(comm_counts, replays),
	FIELD(comm_counts, signature),
	FIELD(comm_counts, last_issue_ns),
	FIELD(comm_counts, captured),
	FIELD(comm_counts, missed),
	FIELD(comm_counts, reserved),
	FIELD(comm_counts, recorded),
	FIELD(comm_counts, timed),
	FIELD(comm_counts, replayed),
	FIELD(comm_counts, abandoned),
	FIELD(comm_counts, untracked),
	FIELD(comm_counts, untrusted),
	FIELD(comm_counts, last_done_ns),
	FIELD(comm_counts, last_done_number),
	FIELD(clock_source, kind),
	FIELD(clock_source, multiplier),
	FIELD(clock_source, base_ticks),
	FIELD(clock_source, base_ns),
	FIELD(clock_anchor, clock_ns),
	FIELD(clock_anchor, wall_ns),
};

static const struct field trace_fields[] = {
	FIELD(trace_header, magic),
	FIELD(trace_header, major),
	FIELD(trace_header, minor),
	FIELD(trace_header, byte_order),
	FIELD(trace_header, header_bytes),
	FIELD(trace_header, reserved),
	FIELD(trace_header, created_wall_ns),
	FIELD(trace_header, checksum),
	FIELD(trace_block, magic),
	FIELD(trace_block, type),
	FIELD(trace_block, reserved),
	FIELD(trace_block, payload_bytes),
	FIELD(trace_block, records),
	FIELD(trace_block, checksum),
	FIELD(trace_name, id),
	FIELD(trace_name, text),
	FIELD(trace_counts, clock_ns),
	FIELD(trace_counts, trace_records),
	FIELD(trace_counts, ring_head),
	FIELD(trace_counts, lost),
	FIELD(trace_counts, odd),
	FIELD(trace_counts, comms),
	FIELD(trace_comm_counts, id),
	FIELD(trace_comm_counts, counts),
};

static void print_rows(const struct field *fields, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || strcmp(fields[i].structure, fields[i - 1].structure) != 0)
			printf("\n### `%s`\n\n| offset | bytes | field | meaning "
			       "|\n|---|---|---|---|\n",
			       fields[i].structure);
		printf("| %zu | %zu | `%s` | |\n", fields[i].offset, fields[i].size,
		       fields[i].name);
	}
}

static char *read_text(const char *path)
{
	static char text[1 << 18];
	FILE *file = fopen(path, "r");
	size_t got = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;

	if (file != NULL)
		fclose(file);
	text[got] = '\0';
	return text;
}

/* Every field has a row under the heading of its structure. */
static void check_document(const char *path, const struct field *fields, size_t count)
{
	const char *text = read_text(path);
	size_t missing = 0;

	for (size_t i = 0; i < count; i++) {
		char heading[64], row[128];
		const char *section, *end, *found;

		text_format(heading, sizeof(heading), "### `%s`", fields[i].structure);
		text_format(row, sizeof(row), "\n| %zu | %zu | `%s` | ", fields[i].offset,
			    fields[i].size, fields[i].name);
		section = strstr(text, heading);
		end = section != NULL ? strstr(section, "\n#") : NULL;
		found = section != NULL ? strstr(section, row) : NULL;
		if (found != NULL && (end == NULL || found < end))
			continue;
		printf("# %s lacks, under %s:%s", path, heading, row);
		printf("\n");
		missing++;
	}
	EXPECT_THAT(path, missing == 0);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--print") == 0) {
		print_rows(region_fields, ARRAY_LENGTH(region_fields));
		print_rows(shared_fields, ARRAY_LENGTH(shared_fields));
		print_rows(trace_fields, ARRAY_LENGTH(trace_fields));
		return 0;
	}
	check_document("docs/FORMATS.md", region_fields, ARRAY_LENGTH(region_fields));
	check_document("docs/FORMATS.md", shared_fields, ARRAY_LENGTH(shared_fields));
	check_document("docs/FORMATS.md", trace_fields, ARRAY_LENGTH(trace_fields));
	return tap_done();
}
