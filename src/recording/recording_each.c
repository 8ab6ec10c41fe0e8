/*
 * The walk: trace files, then the region's ring from where the files end, then live slots.
 *
 * Live slots were copied when the region was loaded, files and ring are read now. What was in flight
 * then may be finished by now; it is given once, as finished: `seen` remembers which live slots were
 * met on the way.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_open.h"
#include "op/op_check.h"
#include "region/region_ring.h"
#include "recording/recording_each.h"
#include "recording/recording_load.h"
#include "trace/trace_read.h"
#include "trace/trace_records.h"

void recording_each_refused(struct walk *walk, const char *problem, uint64_t offset)
{
	walk->counts->refused++;
	walk->counts->refused_at = offset;
	walk->counts->problem = problem;
}

void recording_each_seen(struct walk *walk, uint32_t comm, uint64_t number)
{
	const struct recording_process *process = walk->process;
	size_t from = 0, to = process->flight_count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		const struct op_record *found = &process->flights[middle].op;

		if (found->comm == comm && found->number == number) {
			walk->seen[middle] = true;
			return;
		}
		if (found->comm < comm || (found->comm == comm && found->number < number))
			from = middle + 1;
		else
			to = middle;
	}
}

static void give_op(struct walk *walk, struct op_record *op, enum recording_place place)
{
	walk->counts->untimed += !op_check_time(op);
	walk->counts->in_trace += place == RECORDING_IN_TRACE;
	walk->counts->in_ring += place == RECORDING_IN_RING;
	walk->counts->in_live += place == RECORDING_IN_LIVE;
	if (place != RECORDING_IN_LIVE)
		recording_each_seen(walk, op->comm, op->number);
	walk->is_over = !walk->visit_op(op, place, walk->context);
}

static void give_detail(struct walk *walk, const struct op_detail *detail,
			enum recording_place place)
{
	walk->counts->in_trace += place == RECORDING_IN_TRACE;
	walk->counts->in_ring += place == RECORDING_IN_RING;
	walk->is_over = !walk->visit_detail(detail, place, walk->context);
}

bool recording_each_is_new(struct walk *walk, uint64_t sequence)
{
	if (sequence <= walk->floor) {
		walk->counts->repeated++;
		return false;
	}
	if (sequence > walk->last)
		walk->last = sequence;
	return true;
}

static void walk_ops(struct walk *walk, const struct trace_item *item)
{
	struct trace_records records;
	struct op_record op;
	const char *problem;
	enum status status = trace_records_init(&records, item);

	while (status == OK && !walk->is_over) {
		status = trace_records_op(&records, &op);
		if (status != OK)
			break;
		/* Of a snapshot these are among the flights. */
		if (op.sequence > walk->live_after)
			continue;
		problem = op_check(&op);
		if (problem != NULL)
			recording_each_refused(walk, problem, item->offset);
		else if (recording_each_is_new(walk, op.sequence))
			give_op(walk, &op, RECORDING_IN_TRACE);
	}
	if (status == ERR_FORMAT)
		recording_each_refused(walk, "its coding is damaged", item->offset);
}

static void walk_details(struct walk *walk, const struct trace_item *item)
{
	struct trace_records records;
	struct op_detail detail;
	const char *problem;
	enum status status = trace_records_init(&records, item);

	while (status == OK && !walk->is_over) {
		status = trace_records_detail(&records, &detail);
		if (status != OK)
			break;
		problem = op_check_detail(&detail);
		if (problem != NULL)
			recording_each_refused(walk, problem, item->offset);
		/* A snapshot numbers its own. */
		else if (walk->is_snapshot || recording_each_is_new(walk, detail.sequence))
			give_detail(walk, &detail, RECORDING_IN_TRACE);
	}
	if (status == ERR_FORMAT)
		recording_each_refused(walk, "its coding is damaged", item->offset);
}

/* Open the very file that was loaded; another one under its name is not it. */
static enum status open_again(const struct recording_file *file, struct trace_reader *reader)
{
	enum status status = ERR_GONE;
	struct stat st;
	int fd;

	if (file->memory != NULL)
		return trace_open_memory(reader, file->memory, file->bytes, NULL);
	fd = file_open(AT_FDCWD, file->archive != NULL ? file->archive : file->path, true);
	if (fd == -1)
		return errno == ENOENT ? ERR_GONE : ERR_SYSTEM;
	if (fstat(fd, &st) == 0 && st.st_dev == file->device && st.st_ino == file->inode)
		status = file->archive != NULL
				 ? trace_open_part(reader, fd, file->start, file->bytes, NULL)
				 : trace_open_fd(reader, fd, NULL);
	close(fd);
	return status;
}

static enum status walk_file(struct walk *walk, const struct recording_file *file)
{
	struct trace_reader reader;
	struct trace_item item;
	enum status status = open_again(file, &reader);

	if (status != OK)
		return status;
	walk->floor = walk->last;
	walk->is_snapshot = file->is_snapshot;
	walk->live_after = file->is_snapshot ? file->live_after : UINT64_MAX;
	while (!walk->is_over && trace_next(&reader, &item) != TRACE_END) {
		walk->counts->damages += item.found == TRACE_DAMAGE;
		if (item.found != TRACE_BLOCK)
			continue;
		if (item.type == TRACE_OPS && walk->batch != NULL && !file->is_snapshot)
			recording_batch_block(walk, &item);
		else if (item.type == TRACE_OPS && walk->visit_op != NULL)
			walk_ops(walk, &item);
		else if (item.type == TRACE_DETAILS && walk->visit_detail != NULL)
			walk_details(walk, &item);
	}
	trace_close(&reader);
	return OK;
}

static enum status walk_ring(struct walk *walk)
{
	bool is_ops = walk->visit_op != NULL;
	uint64_t drained = walk->process->drained;
	struct region_ring ring;
	struct op_detail detail;
	struct op_record op;
	enum status status;

	if (walk->process->region == NULL)
		return OK;
	status = region_ring_open(&ring, walk->process->region,
				  is_ops ? REGION_RING : REGION_DETAILS, walk->last);
	while (status == OK && !walk->is_over) {
		status = is_ops ? region_ring_next_op(&ring, &op)
				: region_ring_next_detail(&ring, &detail);
		if (status != OK)
			break;
		if (!is_ops) {
			give_detail(walk, &detail, RECORDING_IN_RING);
			continue;
		}
		walk->counts->recovered += op.sequence <= drained && walk->process->file_count > 0;
		give_op(walk, &op, RECORDING_IN_RING);
	}
	walk->counts->overwritten += ring.overwritten;
	walk->counts->torn += ring.torn;
	walk->counts->refused += ring.refused;
	if (ring.problem != NULL)
		walk->counts->problem = ring.problem;
	region_ring_close(&ring);
	return status == ERR_GONE ? OK : status;
}

static void walk_live(struct walk *walk)
{
	for (size_t i = 0; i < walk->process->flight_count && !walk->is_over; i++) {
		struct op_record op = walk->process->flights[i].op;

		if (walk->seen[i])
			walk->counts->repeated++;
		else
			give_op(walk, &op, RECORDING_IN_LIVE);
	}
}

enum status recording_each_walk(struct walk *walk, struct recording_walk *counts)
{
	struct recording_walk unwanted;
	enum status status = OK;

	walk->counts = counts != NULL ? counts : &unwanted;
	*walk->counts = (struct recording_walk){ 0 };
	walk->seen = calloc(walk->process->flight_count + 1, sizeof(*walk->seen));
	if (walk->seen == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < walk->process->file_count && status == OK && !walk->is_over; i++)
		status = walk_file(walk, &walk->process->files[i]);
	if (status == OK && !walk->is_over)
		status = walk_ring(walk);
	if (status == OK && !walk->is_over && walk->visit_op != NULL)
		walk_live(walk);
	free(walk->seen);
	return status;
}

enum status recording_each_op(const struct recording_process *process, recording_visit_op *visit,
			      void *context, struct recording_walk *walk)
{
	struct walk state = { .process = process, .visit_op = visit, .context = context };

	if (process->foreign != NULL)
		return recording_foreign_each(process, visit, NULL, context, walk);
	return recording_each_walk(&state, walk);
}

enum status recording_each_detail(const struct recording_process *process,
				  recording_visit_detail *visit, void *context,
				  struct recording_walk *walk)
{
	struct walk state = { .process = process, .visit_detail = visit, .context = context };

	if (process->foreign != NULL)
		return recording_foreign_each(process, NULL, visit, context, walk);
	return recording_each_walk(&state, walk);
}
