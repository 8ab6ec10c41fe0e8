/* Everything that is read from logs of other tools, as text: the cases of foreign_lines.jsonl, and the files of tests/foreign/data. */
#include "common/attributes.h"
#include "common/op.h"
#include "tests/support/foreign_play.h"
#include "tests/support/shown_text.h"
#include "tests/tap.h"

static struct play play;

static void show_unsigned(const char *name, uint64_t number, uint64_t unknown)
{
	if (number != unknown)
		show(" %s=%" PRIu64, name, number);
}

static void show_log(void)
{
	const struct foreign_log *log = &play.log;

	show("%s: %" PRIu64 " bytes, %" PRIu64 " lines, %" PRIu64 " damaged, %" PRIu64
	     " ignored, %" PRIu64 " orphans, %" PRIu64 " details skipped%s\n",
	     foreign_format_name(log->format), log->bytes, log->lines, log->damaged, log->ignored,
	     log->orphans, log->skipped_details, log->is_cut ? ", cut" : "");
	for (uint32_t i = 0; i < log->process_count; i++) {
		const struct foreign_process *process = &log->processes[i];

		show("process %u '%s' pid %" PRId64 ":", i, process->host, process->pid);
		show_known("rank", process->rank, -1);
		show_text("version", process->version);
		show_unsigned("records", process->records, 0);
		show_unsigned("details", process->details, 0);
		show_unsigned("untimed", process->untimed, 0);
		show_unsigned("coarse", process->coarse, 0);
		show_unsigned("first", process->first_ns, 0);
		show_unsigned("last", process->last_ns, 0);
		show_unsigned("foreign", process->foreign_ops, 0);
		show_unsigned("dropped", foreign_dropped(log, i), 0);
		show_unsigned("dropped_details", foreign_dropped_details(log, i), 0);
		show_unsigned("not_recorded", foreign_not_recorded(log, i), 0);
		show("\n");
	}
	for (uint32_t i = 0; i < log->comm_count; i++) {
		const struct foreign_comm *comm = &log->comms[i];
		struct comm_counts counts;

		foreign_comm_counts(comm, &counts);
		show("comm %u of process %u, hash %" PRIx64 ", rank %d of %d on %d nodes, flags %u",
		     comm->info.id, comm->process, comm->info.hash, comm->info.rank,
		     comm->info.nranks, comm->info.nnodes, comm->info.flags);
		show_text("name", comm->info.name);
		show_unsigned("stamps_at", comm->info.gpu_offset_at_ns, 0);
		show_unsigned("issued", counts.issued, 0);
		show_unsigned("recorded", counts.recorded, 0);
		show_unsigned("timed", counts.timed, 0);
		show_unsigned("collectives", counts.collectives, 0);
		show_unsigned("last_done", counts.last_done_ns, 0);
		show_unsigned("last_done_number", counts.last_done_number, 0);
		show("\n");
	}
}

static void show_records(void)
{
	for (size_t i = 0; i < play.op_count; i++) {
		const struct op_record *op = &play.ops[i];

		show("op %u/%" PRIu64 ": comm %u #%" PRIu64, play.op_process[i], op->sequence,
		     op->comm, op->number);
		show_known("function", op->function, 0);
		show_known("algorithm", op->algorithm, 0);
		show_known("protocol", op->protocol, 0);
		show_known("state", op->state, OP_DONE);
		show_known("source", op->time_source, 0);
		show_known("peer", op->peer, OP_NOBODY);
		show_known("root", op->root, OP_NOBODY);
		show_unsigned("match", op->match & ((UINT64_C(1) << 48) - 1), 0);
		show_unsigned("match_of", op->match >> 48, 0);
		show_unsigned("bytes", op->bytes, OP_BYTES_UNKNOWN);
		show_unsigned("nccl", op->nccl_sequence, 0);
		show_unsigned("channels", op->channels, 0);
		show_unsigned("started", op->kernels_started, 0);
		show_unsigned("stopped", op->kernels_stopped, 0);
		show_unsigned("issue", op->issue_ns, 0);
		show_unsigned("task", op->task_ns, 0);
		show_unsigned("active", op->active_ns, 0);
		show_unsigned("done", op->done_ns, 0);
		show_unsigned("gpu_start", op->gpu_start_ns, 0);
		show_unsigned("gpu_stop", op->gpu_stop_ns, 0);
		show("\n");
	}
	for (size_t i = 0; i < play.detail_count; i++) {
		const struct op_detail *detail = &play.details[i];

		show("detail %" PRIu64 ": comm %u #%" PRIu64 " kind %u channel %u flags %u",
		     detail->sequence, detail->comm, detail->number, detail->kind, detail->channel,
		     detail->flags);
		show_known("peer", detail->peer, OP_NOBODY);
		show_known("step", detail->step, 0);
		show_unsigned("bytes", detail->bytes, 0);
		show_unsigned("pid", detail->origin_pid, 0);
		for (int j = 0; j < 4; j++)
			show(" %" PRIu64, detail->time_ns[j]);
		show("\n");
	}
	for (size_t i = 0; i < play.damage_count; i++) {
		const struct foreign_damage *damage = &play.damages[i];

		show("damage in line %" PRIu64 ": %s", damage->line, damage->what);
		show_unsigned("bytes", damage->bytes, 0);
		show_unsigned("missing", damage->missing, 0);
		show("%s\n", damage->is_cut ? ", cut" : "");
	}
}

static void take_case(const char *lines, size_t length)
{
	static const char mark[] = "END\n";
	int fd;

	/* The last line of such a case has no newline. */
	if (length > sizeof(mark) && memcmp(lines + length - sizeof(mark) + 1, mark, 4) == 0)
		length -= sizeof(mark) - 1;
	fd = play_file(lines, length);
	play_fd(&play, fd);
	close(fd);
	EXPECT(play.status == OK);
	show_log();
	show_records();
	show("\n");
}

static void each_case(void)
{
	char *text = shown_file("tests/unit/import/foreign_lines.jsonl");

	shown_cases(text, take_case);
	free(text);
	EXPECT_THAT("each line is read as expected",
		    shown_is_expected("tests/unit/import/expected/foreign_lines.txt"));
}

static void each_file(void)
{
	static const char *const names[] = {
		"inspector-v4.0.log",	 "inspector-v4.0-verbose.log", "inspector-v4.1.log",
		"inspector-v4.2.log",	 "inspector-v4.3.log",	       "inspector-v4.4.log",
		"inspector-damaged.log", "inspector-mixed.jsonl",      "comma-latency.txt",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		play_data(&play, names[i]);
		show("=== %s\n", names[i]);
		show_log();
		show_records();
		show("\n");
	}
	EXPECT_THAT("each file is read as expected",
		    shown_is_expected("tests/unit/import/expected/foreign_files.txt"));
}

/* A limit, one process alone, and a visitor that has seen enough. */
static bool one_op(const struct op_record *op, uint32_t process, void *context)
{
	play_op(op, process, context);
	return false;
}

static bool one_detail(const struct op_detail *detail, uint32_t process, void *context)
{
	play_detail(detail, process, context);
	return false;
}

static void what_is_asked_for(void)
{
	static const char *const names[] = { "inspector-v4.3.log", "inspector-mixed.jsonl",
					     "comma-latency.txt" };
	const struct foreign_request requests[] = {
		{ .process = -1, .visit_op = play_op, .context = &play, .limit_bytes = 1000 },
		{ .process = 1,
		  .visit_op = play_op,
		  .visit_detail = play_detail,
		  .context = &play },
		{ .process = -1,
		  .visit_op = one_op,
		  .visit_detail = play_detail,
		  .context = &play },
		{ .process = -1, .visit_detail = one_detail, .context = &play },
		{ .process = -1 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(names) * ARRAY_LENGTH(requests); i++) {
		const char *name = names[i / ARRAY_LENGTH(requests)];
		char path[100];
		int fd;

		snprintf(path, sizeof(path), "tests/foreign/data/%s", name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		foreign_log_release(&play.log);
		memset(&play, 0, sizeof(play));
		play.status = foreign_read(&play.log, fd, &requests[i % ARRAY_LENGTH(requests)]);
		close(fd);
		EXPECT(play.status == OK);
		show("=== %s, request %zu\n", name, i % ARRAY_LENGTH(requests));
		show_log();
		show_records();
	}
	EXPECT_THAT("what is asked for is read",
		    shown_is_expected("tests/unit/import/expected/foreign_requests.txt"));
}

int main(void)
{
	each_case();
	each_file();
	what_is_asked_for();
	foreign_log_release(&play.log);
	return tap_done();
}
