/* For tests of the simulator: what is in the trace files of a directory, as text. */
#ifndef SIM_FILES_SHOW_H
#define SIM_FILES_SHOW_H

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/op.h"
#include "format/trace_read.h"
#include "output/sink.h"

enum { SHOWN_COMMS = 8, SHOWN_KINDS = SHOWN_COMMS * OP_FUNCTIONS };

/* The operations of a communicator with one function, added up. */
struct shown_kind {
	uint64_t ops, done, timed, bytes, issue_ns, duration_ns, waits_ns[OP_WAITS];
	uint64_t kernels[2], proxies[2], steps[2], moved[2];
	uint32_t flags;
};

struct shown_file {
	struct op_record *open; /* not over */
	size_t open_count;
	struct op_detail *details; /* all */
	size_t detail_count;
	struct shown_kind kinds[SHOWN_KINDS];
	struct comm_info comms[SHOWN_COMMS]; /* by id */
	struct trace_counts counts;
	struct comm_counts comm_counts[SHOWN_COMMS];
	struct clock_anchor anchors[2]; /* the first, the last */
	size_t anchor_count;
	uint64_t hash; /* of all operations and details */
	char info[4096];
};

/* Times since the beginning of the recording; "-" if there is none. */
static inline const char *shown_time(const struct shown_file *file, uint64_t ns)
{
	static char texts[16][32];
	static unsigned int next;
	char *text = texts[next++ % 16];

	if (ns == 0)
		return "-";
	snprintf(text, sizeof(texts[0]), "%+" PRId64, (int64_t)(ns - file->anchors[0].clock_ns));
	return text;
}

static inline void shown_add(struct shown_file *file, const struct op_record *op)
{
	struct shown_kind *kind;

	file->hash = hash_word(file->hash, hash_bytes(op, sizeof(*op)));
	if (op->comm >= SHOWN_COMMS || op->function >= OP_FUNCTIONS)
		abort();
	kind = &file->kinds[op->comm * OP_FUNCTIONS + op->function];
	kind->ops++;
	kind->done += op->state == OP_DONE;
	kind->timed += op->time_source != OP_TIME_NONE;
	kind->bytes += op->bytes;
	kind->issue_ns += op->issue_ns - file->anchors[0].clock_ns;
	kind->duration_ns += op->time_source != OP_TIME_NONE ? op_span_ns(op) : 0;
	for (int i = 0; i < OP_WAITS; i++)
		kind->waits_ns[i] += op->wait_ns[i];
	kind->kernels[0] += op->kernels_started;
	kind->kernels[1] += op->kernels_stopped;
	kind->proxies[0] += op->proxies_started;
	kind->proxies[1] += op->proxies_stopped;
	kind->steps[0] += op->send_steps;
	kind->steps[1] += op->recv_steps;
	kind->moved[0] += op->send_bytes;
	kind->moved[1] += op->recv_bytes;
	kind->flags |= op->flags;
	if (op->done_ns != 0)
		return;
	file->open = realloc(file->open, (file->open_count + 1) * sizeof(*file->open));
	file->open[file->open_count++] = *op;
}

static inline void shown_links(struct sink *sink, struct trace_records *records)
{
	struct region_link link;

	while (trace_records_link(records, &link) == OK)
		if (link.key != 0)
			sink_format(sink,
				    "  link of comm %u %s %d: %" PRIu64 " proxies, %" PRIu64
				    " steps, %" PRIu64 " bytes, waits %" PRIu64 " %" PRIu64
				    " %" PRIu64 "\n",
				    (unsigned int)(link.key >> 34),
				    link.key >> 32 & 1 ? "from" : "to",
				    (int)((uint32_t)link.key - 1), link.proxies, link.steps,
				    link.bytes, link.wait_ns[0], link.wait_ns[1], link.wait_ns[2]);
}

static inline void shown_block(struct shown_file *file, const struct trace_item *item,
			       struct sink *links)
{
	struct trace_comm_counts counts;
	struct trace_records records;
	struct op_detail detail;
	struct op_record op;
	struct comm_info comm;
	struct clock_anchor anchor;

	if (item->type == TRACE_PROCESS) {
		snprintf(file->info, sizeof(file->info), "%.*s", (int)item->payload_bytes,
			 (const char *)item->payload);
		return;
	}
	if (trace_records_init(&records, item) != OK)
		abort();
	if (item->type == TRACE_COMM)
		while (trace_records_comm(&records, &comm) == OK && comm.id < SHOWN_COMMS)
			file->comms[comm.id] = comm;
	if (item->type == TRACE_ANCHOR)
		while (trace_records_anchor(&records, &anchor) == OK)
			file->anchors[file->anchor_count++ == 0 ? 0 : 1] = anchor;
	if (item->type == TRACE_COUNTS || item->type == TRACE_CLOSE) {
		if (trace_records_counts(&records, &file->counts) != OK)
			abort();
		while (trace_records_comm_counts(&records, &counts) == OK &&
		       counts.id < SHOWN_COMMS)
			file->comm_counts[counts.id] = counts.counts;
	}
	if (item->type == TRACE_LINKS)
		shown_links(links, &records);
	if (item->type == TRACE_OPS)
		while (trace_records_op(&records, &op) == OK)
			shown_add(file, &op);
	if (item->type == TRACE_DETAILS)
		while (trace_records_detail(&records, &detail) == OK) {
			file->hash = hash_word(file->hash, hash_bytes(&detail, sizeof(detail)));
			file->details = realloc(file->details,
						(file->detail_count + 1) * sizeof(*file->details));
			file->details[file->detail_count++] = detail;
		}
}

static inline void show_comm(struct sink *sink, const struct shown_file *file, uint32_t id)
{
	const struct comm_info *comm = &file->comms[id];
	const struct comm_counts *counts = &file->comm_counts[id];

	sink_format(sink,
		    "  comm %u %s 0x%016" PRIx64
		    ", v%u, rank %d of %d on %d nodes, flags 0x%x, init %s, finalize %s, gpu %d "
		    "%s %s, mask 0x%x, gpu offset %" PRId64 " at %s\n",
		    comm->id, comm->name, comm->hash, comm->interface, comm->rank, comm->nranks,
		    comm->nnodes, comm->flags, shown_time(file, comm->init_ns),
		    shown_time(file, comm->finalize_ns), comm->gpu, comm->gpu_uuid, comm->gpu_bus,
		    comm->mask, comm->gpu_offset_ns, shown_time(file, comm->gpu_offset_at_ns));
	sink_format(sink,
		    "    issued %" PRIu64 ", collectives %" PRIu64 ", signature 0x%016" PRIx64
		    ", last issue %s, recorded %" PRIu64 ", timed %" PRIu64 ", untrusted %" PRIu64
		    ", last done #%" PRIu64 " %s\n",
		    counts->issued, counts->collectives, counts->signature,
		    shown_time(file, counts->last_issue_ns), counts->recorded, counts->timed,
		    counts->untrusted, counts->last_done_number,
		    shown_time(file, counts->last_done_ns));
}

static inline void show_kinds(struct sink *sink, const struct shown_file *file)
{
	for (uint32_t i = 0; i < SHOWN_KINDS; i++) {
		const struct shown_kind *kind = &file->kinds[i];

		if (kind->ops == 0)
			continue;
		sink_format(sink,
			    "  %s %s: %" PRIu64 " calls, %" PRIu64 " done, %" PRIu64
			    " timed, %" PRIu64 " bytes, calls +%" PRIu64 ", duration %" PRIu64
			    ", kernels %" PRIu64 "-%" PRIu64 ", flags 0x%x\n",
			    file->comms[i / OP_FUNCTIONS].name,
			    op_function_name((uint8_t)(i % OP_FUNCTIONS)), kind->ops, kind->done,
			    kind->timed, kind->bytes, kind->issue_ns, kind->duration_ns,
			    kind->kernels[0], kind->kernels[1], kind->flags);
		if (kind->proxies[0] == 0)
			continue;
		sink_format(sink,
			    "    proxies %" PRIu64 "-%" PRIu64 ", sent %" PRIu64 " in %" PRIu64
			    " steps, received %" PRIu64 " in %" PRIu64 ", waits",
			    kind->proxies[0], kind->proxies[1], kind->moved[0], kind->steps[0],
			    kind->moved[1], kind->steps[1]);
		for (int wait = 0; wait < OP_WAITS; wait++)
			sink_format(sink, " %" PRIu64, kind->waits_ns[wait]);
		sink_text(sink, "\n");
	}
}

static inline void show_open(struct sink *sink, const struct shown_file *file)
{
	size_t launched = 0;

	for (size_t i = 0; i < file->open_count; i++) {
		const struct op_record *op = &file->open[i];

		if (op->state == OP_LAUNCHED && launched++ > 0)
			continue;
		sink_format(sink,
			    "  open: %s %s #%" PRIu64 " match %" PRIu64 " %s, count %" PRIu64
			    " of %s, root %d, peer %d, call %s, launch %s, active %s, kernels "
			    "%u-%u, proxies %u-%u\n",
			    file->comms[op->comm].name, op_function_name(op->function), op->number,
			    op->match, op_state_name(op->state), op->count,
			    op_datatype_name(op->datatype), op->root, op->peer,
			    shown_time(file, op->issue_ns), shown_time(file, op->launch_ns),
			    shown_time(file, op->active_ns), op->kernels_started,
			    op->kernels_stopped, op->proxies_started, op->proxies_stopped);
	}
	if (launched > 0)
		sink_format(sink, "  %zu launched\n", launched);
}

static inline bool shown_is_next(const struct op_detail *detail, const struct op_detail *next)
{
	return detail->kind == OP_DETAIL_STEP && next->kind == OP_DETAIL_STEP &&
	       detail->comm == next->comm && detail->number == next->number &&
	       detail->channel == next->channel && detail->peer == next->peer &&
	       detail->flags == next->flags && detail->bytes == next->bytes &&
	       detail->step + 1 == next->step &&
	       memcmp(detail->time_ns, next->time_ns, sizeof(detail->time_ns)) == 0;
}

/* What has begun and is not over: channels, connections and transfers. */
static inline void show_begun(struct sink *sink, const struct shown_file *file)
{
	static const char *const kinds[] = { "?", "kernel", "proxy", "steps" };

	for (size_t i = 0, last; i < file->detail_count; i = last + 1) {
		const struct op_detail *detail = &file->details[i];
		bool is_kernel = detail->kind == OP_DETAIL_KERNEL;

		for (last = i; last + 1 < file->detail_count &&
			       shown_is_next(&file->details[last], &file->details[last + 1]);)
			last++;
		if (detail->time_ns[3] != 0 ||
		    (detail->kind == OP_DETAIL_PROXY && detail->time_ns[1] == 0))
			continue;
		sink_format(sink, "    %s #%" PRIu64 " %s of channel %u",
			    file->comms[detail->comm].name, detail->number, kinds[detail->kind & 3],
			    detail->channel);
		if (!is_kernel)
			sink_format(sink, " %s %d, step %d-%d, %" PRIu64 " bytes",
				    detail->flags & OP_DETAIL_IS_SEND ? "to" : "from", detail->peer,
				    detail->step, file->details[last].step, detail->bytes);
		for (int at = is_kernel ? 2 : 0; at < 3; at++)
			sink_format(sink, " %s", shown_time(file, detail->time_ns[at]));
		sink_text(sink, "\n");
	}
}

static inline void show_file(struct sink *sink, const char *path, bool is_detailed)
{
	struct shown_file *file = calloc(1, sizeof(*file));
	bool is_first = strstr(path, "/r0-") != NULL;
	struct trace_reader reader;
	struct trace_item item;
	struct sink links;
	size_t damages = 0;

	if (file == NULL || trace_open(&reader, path, NULL) != OK)
		abort();
	sink_init_memory(&links);
	while (trace_next(&reader, &item) != TRACE_END)
		if (item.found == TRACE_BLOCK)
			shown_block(file, &item, &links);
		else
			damages += item.found != TRACE_CUT || item.bytes != 0;
	sink_format(sink,
		    "%s: %s, %zu damages, %zu anchors, %zu details, records 0x%016" PRIx64 "\n",
		    strrchr(path, '/') + 1, reader.is_closed ? "closed" : "not closed", damages,
		    file->anchor_count, file->detail_count, file->hash);
	if (is_detailed) {
		sink_format(sink,
			    "  clock %" PRIu64 " at wall %" PRIu64 ", last %s at %+" PRId64 "\n",
			    file->anchors[0].clock_ns, file->anchors[0].wall_ns,
			    shown_time(file, file->anchors[1].clock_ns),
			    (int64_t)(file->anchors[1].wall_ns - file->anchors[0].wall_ns));
		sink_format(sink, "  counted until %s: %" PRIu64 " in file, %" PRIu64 " recorded\n",
			    shown_time(file, file->counts.clock_ns), file->counts.trace_records,
			    file->counts.ring_head);
		for (const char *line = file->info; is_first && *line != '\0';
		     line += strcspn(line, "\n") + 1)
			sink_format(sink, "  %.*s\n", (int)strcspn(line, "\n"), line);
		for (uint32_t id = 0; id < SHOWN_COMMS; id++)
			if (file->comms[id].id != 0)
				show_comm(sink, file, id);
	}
	show_kinds(sink, file);
	if (is_detailed)
		sink_text(sink, sink_string(&links));
	if (!reader.is_closed) {
		show_open(sink, file);
		show_begun(sink, file);
	}
	sink_release(&links);
	trace_close(&reader);
	free(file->open);
	free(file->details);
	free(file);
}

static inline int shown_order(const struct dirent **a, const struct dirent **b)
{
	return strverscmp((*a)->d_name, (*b)->d_name);
}

/* All files of the directory, which is removed. */
static inline void show_files(struct sink *sink, const char *directory, bool is_detailed)
{
	struct dirent **names;
	int count = scandir(directory, &names, NULL, shown_order);
	char path[4096];

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]->d_name);
		if (names[i]->d_name[0] != '.') {
			show_file(sink, path, is_detailed);
			unlink(path);
		}
		free(names[i]);
	}
	if (count >= 0)
		free(names);
	rmdir(directory);
}

#endif
