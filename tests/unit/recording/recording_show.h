/* A whole recording as text, for expected files: every field that does not depend on the machine. */
#ifndef RECORDING_SHOW_H
#define RECORDING_SHOW_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/op.h"
#include "output/sink.h"
#include "recording/recording.h"

static inline const char *show_name(const char *path)
{
	const char *slash = path != NULL ? strrchr(path, '/') : NULL;

	return path == NULL ? "none" : slash != NULL ? slash + 1 : path;
}

/* Since the first anchor; "-": none. */
static inline const char *show_ns(const struct recording_process *process, uint64_t ns)
{
	static char texts[16][32];
	static unsigned int next;
	char *text = texts[next++ % 16];

	if (ns == 0)
		return "-";
	snprintf(text, sizeof(texts[0]), "%+" PRId64,
		 (int64_t)(ns - (process->anchor_count > 0 ? process->anchors[0].clock_ns : 0)));
	return text;
}

static inline void show_file(struct sink *sink, const struct recording_process *process,
			     const struct recording_file *file)
{
	sink_format(sink,
		    "  file %s%s%s: %" PRIu64 " bytes from %" PRIu64 "%s, live after %" PRIu64
		    ", created %" PRIu64 ", %" PRIu64 " records %" PRIu64 "-%" PRIu64 ", %" PRIu64
		    " details to %" PRIu64 ", %" PRIu64 " damages, %" PRIu64
		    " unknown, %s, cut at %" PRIu64 "\n",
		    show_name(file->path), file->archive ? " in " : "",
		    file->archive ? show_name(file->archive) : "", file->bytes, file->start,
		    file->is_snapshot ? ", a snapshot" : "", file->live_after,
		    file->created_wall_ns, file->records, file->first_sequence, file->last_sequence,
		    file->details, file->last_detail, file->damages, file->unknown_blocks,
		    file->is_closed ? "closed" : "not closed", file->cut_offset);
	(void)process;
}

static inline void show_proxy(struct sink *sink, const struct recording_process *process,
			      const struct recording_proxy *one)
{
	const struct region_proxy *proxy = &one->proxy;

	sink_format(sink,
		    "    proxy of comm %u #%" PRIu64 ", channel %u, peer %d, flags %u, step %u of "
		    "%u, bytes %" PRIu64
		    ", transmitted %u, posted %u, start %s, active %s, since %s\n",
		    proxy->comm, proxy->number, proxy->channel, proxy->peer, proxy->flags,
		    (unsigned int)proxy->done, (unsigned int)proxy->steps, proxy->bytes,
		    proxy->transmitted, proxy->posted, show_ns(process, proxy->start_ns),
		    show_ns(process, proxy->active_ns), show_ns(process, proxy->since_ns));
	for (unsigned int i = 0; i < one->step_count; i++)
		sink_format(sink, "      step %u state %u, %" PRIu64 " bytes, %s %s %s\n",
			    one->steps[i].step_plus_1 - 1, one->steps[i].state, one->steps[i].bytes,
			    show_ns(process, one->steps[i].time_ns[0]),
			    show_ns(process, one->steps[i].time_ns[1]),
			    show_ns(process, one->steps[i].time_ns[2]));
}

static inline void show_flights(struct sink *sink, const struct recording_process *process)
{
	for (size_t i = 0; i < process->flight_count; i++) {
		const struct recording_flight *flight = &process->flights[i];

		sink_format(sink,
			    "  flight: comm %u #%" PRIu64 " %s %s, sequence %" PRIu64
			    ", hash %016" PRIx64 ", %u children%s, started %" PRIx64
			    " stopped %" PRIx64 ", call %s done %s\n",
			    flight->op.comm, flight->op.number,
			    op_function_name(flight->op.function), op_state_name(flight->op.state),
			    flight->op.sequence, hash_bytes(&flight->op, sizeof(flight->op)),
			    flight->open_children, flight->is_retiring ? ", retiring" : "",
			    flight->started[0], flight->stopped[0],
			    show_ns(process, flight->op.issue_ns),
			    show_ns(process, flight->op.done_ns));
		for (size_t j = 0; j < flight->proxy_count; j++)
			show_proxy(sink, process, &flight->proxies[j]);
	}
	for (size_t i = 0; i < process->proxy_count; i++)
		show_proxy(sink, process, &process->proxies[i]);
}

struct show_walk {
	uint64_t count, hash, places[4], stop_at;
};

static inline bool show_visit_op(const struct op_record *op, enum recording_place place,
				 void *context)
{
	struct show_walk *walk = context;

	walk->hash = hash_word(walk->hash, hash_bytes(op, sizeof(*op)));
	walk->places[place]++;
	return ++walk->count != walk->stop_at;
}

static inline bool show_visit_detail(const struct op_detail *detail, enum recording_place place,
				     void *context)
{
	struct show_walk *walk = context;

	walk->hash = hash_word(walk->hash, hash_bytes(detail, sizeof(*detail)));
	walk->places[place]++;
	return ++walk->count != walk->stop_at;
}

static inline void show_walked(struct sink *sink, const char *what, const struct show_walk *seen,
			       const struct recording_walk *walk)
{
	sink_format(sink,
		    "  %s: %" PRIu64 " (%" PRIu64 " %" PRIu64 " %" PRIu64 "), hash %016" PRIx64
		    "; in trace %" PRIu64 ", ring %" PRIu64 ", live %" PRIu64 ", repeated %" PRIu64
		    ", refused %" PRIu64 " at %" PRIu64 ", untimed %" PRIu64 ", recovered %" PRIu64
		    ", overwritten %" PRIu64 ", torn %" PRIu64 ", damages %" PRIu64 ", %s\n",
		    what, seen->count, seen->places[1], seen->places[2], seen->places[3],
		    seen->hash, walk->in_trace, walk->in_ring, walk->in_live, walk->repeated,
		    walk->refused, walk->refused_at, walk->untimed, walk->recovered,
		    walk->overwritten, walk->torn, walk->damages,
		    walk->problem ? walk->problem : "no problem");
}

static inline void show_walks(struct sink *sink, const struct recording_process *process)
{
	struct show_walk ops = { 0 }, details = { 0 }, first = { .stop_at = 3 };
	struct recording_walk walk;

	if (recording_each_op(process, show_visit_op, &ops, &walk) != OK)
		sink_text(sink, "  operations cannot be read\n");
	show_walked(sink, "operations", &ops, &walk);
	if (recording_each_op(process, show_visit_op, &first, &walk) != OK)
		sink_text(sink, "  operations cannot be read\n");
	show_walked(sink, "first three", &first, &walk);
	if (recording_each_detail(process, show_visit_detail, &details, &walk) != OK)
		sink_text(sink, "  details cannot be read\n");
	show_walked(sink, "details", &details, &walk);
}

static inline void show_account(struct sink *sink, const struct recording_process *process)
{
	struct recording_account account;

	if (recording_account(&account, process) != OK)
		sink_text(sink, "  no account\n");
	sink_format(sink,
		    "  account: issued %" PRIu64 ", recorded %" PRIu64 ", timed %" PRIu64
		    ", untrusted %" PRIu64 ", in flight %" PRIu64 ", kept %" PRIu64
		    ", lost %" PRIu64 " (uncounted %" PRIu64 ", details %" PRIu64
		    "), missing %" PRId64 ", unread %" PRId64 "%s%s%s%s\n",
		    account.issued, account.recorded, account.timed, account.untrusted,
		    account.in_flight, account.kept, account.lost_operations,
		    account.lost_uncounted, account.lost_details, account.missing, account.unread,
		    account.has_counts ? ", counted" : "", account.is_exact ? ", exact" : "",
		    account.is_moving ? ", moving" : "", account.keeps_all ? ", keeps all" : "");
	for (size_t i = 0; i < account.comm_count; i++) {
		const struct recording_account_comm *comm = &account.comms[i];

		sink_format(sink,
			    "    of comm %u%s: issued %" PRIu64 ", recorded %" PRIu64
			    ", timed %" PRIu64 ", untrusted %" PRIu64 ", captured %" PRIu64
			    ", replayed %" PRIu64 ", abandoned %" PRIu64 ", untracked %" PRIu64
			    ", in flight %" PRIu64 ", retiring %" PRIu64 ", kept %" PRIu64
			    ", missing %" PRId64 "\n",
			    comm->id, comm->has_counts ? "" : " (not counted)", comm->issued,
			    comm->recorded, comm->timed, comm->untrusted, comm->captured,
			    comm->replayed, comm->abandoned, comm->untracked, comm->in_flight,
			    comm->retiring, comm->kept, comm->missing);
	}
	recording_account_release(&account);
}

static inline void show_process(struct sink *sink, const struct recording_process *process)
{
	uint64_t wall_ns = 0, clock_ns = 0, again_ns = 0;
	char value[64];

	sink_format(sink,
		    "process %s of %s rank %" PRId64 " (local %" PRId64 " of %" PRId64
		    "), host %s, boot %.8s, pid %" PRId64 ", here %s, namespace %" PRIu64
		    ", ticks %" PRIu64 ", run %u of %u%s, v%u, life %d, state %d, owner %s\n",
		    process->mode, process->job, process->rank, process->local_rank,
		    process->world_size, process->host, process->boot_id, process->pid,
		    process->pid_here > 0 ? "found" : "unknown", process->pid_namespace,
		    process->start_ticks, process->run, process->runs,
		    process->is_earlier_run ? " (earlier)" : "", process->interface,
		    (int)process->life, process->process_state,
		    process->owner == (int64_t)getuid() ? "own" : "another");
	sink_format(sink,
		    "  started %" PRIu64 ", %ssnapshot at %" PRIu64 " with %" PRIu64
		    " operations, life %d, state %d; %s counts %s%s, recorded %" PRIu64
		    ", drained %" PRIu64 ", ended %s, alive %s, heartbeat %" PRIu64
		    ", filling %zu, refused %zu (%s)\n",
		    process->started_wall_ns, process->is_snapshot ? "a " : "",
		    process->snapshot_wall_ns, process->snapshot_operations,
		    (int)process->snapshot_life, process->snapshot_state,
		    process->is_final ? "final" : "no final", show_ns(process, process->counts_ns),
		    process->has_counts ? "" : " (none)", process->recorded, process->drained,
		    show_ns(process, process->ended_ns), show_ns(process, process->alive_ns),
		    process->heartbeat_ns, process->filling, process->refused,
		    process->refused_why ? process->refused_why : "nothing");
	for (size_t i = 0; i < process->file_count; i++)
		show_file(sink, process, &process->files[i]);
	for (size_t i = 0; i < process->comm_count; i++) {
		const struct recording_comm *comm = &process->comms[i];

		sink_format(sink,
			    "  comm %u %s %016" PRIx64 " rank %d of %d, %sinfo %016" PRIx64
			    ", counts %016" PRIx64 "\n",
			    comm->info.id, comm->info.name, comm->info.hash, comm->info.rank,
			    comm->info.nranks, comm->has_counts ? "counted, " : "",
			    hash_bytes(&comm->info, sizeof(comm->info)),
			    hash_bytes(&comm->counts, sizeof(comm->counts)));
	}
	for (size_t i = 0; i < process->link_count; i++)
		sink_format(sink,
			    "  link %" PRIx64 ": %" PRIu64 " proxies, %" PRIu64 " steps, %" PRIu64
			    " bytes\n",
			    process->links[i].key, process->links[i].proxies,
			    process->links[i].steps, process->links[i].bytes);
	sink_format(sink, "  %zu anchors", process->anchor_count);
	for (size_t i = 0; i < process->anchor_count && i < 4; i++)
		sink_format(sink, " %s/%" PRIu64, show_ns(process, process->anchors[i].clock_ns),
			    process->anchors[i].wall_ns);
	if (process->anchor_count > 0) {
		uint64_t at_ns = process->anchors[0].clock_ns + 123456789;

		recording_wall_ns(process, at_ns, &wall_ns);
		recording_clock_ns(process, wall_ns, &clock_ns);
		recording_clock_ns(process, 1, &again_ns);
		sink_format(sink, ", +123456789 is %" PRIu64 " and back %s, and before it %" PRIu64,
			    wall_ns, show_ns(process, clock_ns), again_ns);
	}
	sink_format(sink, "\n  last call %s, last %s, end is %s, label %s\n",
		    show_ns(process, recording_last_call_ns(process)),
		    show_ns(process, recording_last_ns(process)),
		    recording_end_is_known(process) ? "known" : "not known",
		    recording_info(process, "label.simulated", value, sizeof(value)) ? value
										     : "none");
	show_flights(sink, process);
	show_walks(sink, process);
	show_account(sink, process);
}

static inline void show_recording(struct sink *sink, const struct recording *recording)
{
	sink_format(
		sink,
		"%zu files read, %zu foreign, %zu apart, %zu notes of %zu bytes, %zu left out\n",
		recording->files_read, recording->files_foreign, recording->owners_apart,
		recording->note_count, recording->note_bytes, recording->troubles_left_out);
	for (size_t i = 0; i < recording->trouble_count; i++) {
		const struct recording_trouble *trouble = &recording->troubles[i];
		int process = -1;

		for (size_t j = 0; j < recording->count; j++)
			if (recording->processes[j] == trouble->process)
				process = (int)j;
		sink_format(sink,
			    "trouble: %s in %s at %" PRIu64 ", %" PRIu64 " bytes, process %d: %s\n",
			    recording_trouble_name(trouble->kind), show_name(trouble->path),
			    trouble->offset, trouble->bytes, process, trouble->what);
	}
	for (size_t i = 0; i < recording->count; i++)
		show_process(sink, recording->processes[i]);
}

#endif
