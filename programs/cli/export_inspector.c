#include "programs/cli/export_inspector.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "format/inspector_write.h"

struct inspector_export {
	struct sink *sink;
	const struct recording_process *process;
	uint64_t *p2p; /* by place in process->comms: Sends and Recvs so far */
	size_t room;
	enum status status;
};

static void *begin(struct sink *sink, uint64_t columns)
{
	struct inspector_export *export = calloc(1, sizeof(*export));

	(void)columns;
	if (export != NULL)
		export->sink = sink;
	return export;
}

static void process(void *writer, const struct recording_process *of)
{
	struct inspector_export *export = writer;
	uint64_t *p2p = calloc(of->comm_count + 1, sizeof(*p2p));

	if (p2p == NULL)
		export->status = ERR_NO_SPACE;
	free(export->p2p);
	export->p2p = p2p;
	export->process = of;
}

/* What a line needs of a record. */
static void record_of(const struct op_batch *batch, uint32_t row, struct op_record *op)
{
	static const uint8_t wanted[] = {
		OP_WORD_KIND,	   OP_WORD_BYTES,    OP_WORD_NCCL_SEQUENCE, OP_WORD_ENDS,
		OP_WORD_STATE,	   OP_WORD_ISSUE,    OP_WORD_ACTIVE,	    OP_WORD_DONE,
		OP_WORD_GPU_START, OP_WORD_GPU_STOP,
	};
	uint64_t words[OP_RECORD_WORDS] = { 0 };

	for (size_t i = 0; i < sizeof(wanted); i++)
		words[wanted[i]] = batch->column[wanted[i]][row];
	memcpy(op, words, sizeof(*op));
}

static void put_op(struct inspector_export *export, const struct op_record *op)
{
	const struct recording_process *of = export->process;
	const struct recording_comm *comm = recording_comm(of, op->comm);
	static const struct inspector_filter timed = { .is_without_bounds = true };
	struct inspector_speaker speaker = { .host = of->host, .pid = of->pid };
	char line[INSPECTOR_LINE_BYTES];
	uint64_t *p2p;

	if (comm == NULL)
		return;
	p2p = &export->p2p[comm - of->comms];
	*p2p += op->function == OP_SEND || op->function == OP_RECV;
	if (inspector_fate(op, &comm->info, &timed) != INSPECTOR_WRITTEN)
		return;
	if (op->done_ns == 0 || !recording_wall_ns(of, op->done_ns, &speaker.wall_ns))
		speaker.wall_ns = 0;
	sink_write(export->sink, line,
		   inspector_line(line, sizeof(line), &speaker, &comm->info, op, *p2p, NULL));
}

static enum status batch(void *writer, const struct op_batch *from)
{
	struct inspector_export *export = writer;
	struct op_record op;

	for (uint32_t i = 0; i < from->rows && export->status == OK; i++) {
		record_of(from, i, &op);
		put_op(export, &op);
	}
	return export->status != OK ? export->status : export->sink->status;
}

/* There is no place for it. */
static void fact(void *writer, const char *key, const char *value)
{
	(void)writer, (void)key, (void)value;
}

static enum status end(void *writer)
{
	struct inspector_export *export = writer;
	enum status status = export->status != OK ? export->status : export->sink->status;

	free(export->p2p);
	free(export);
	return status;
}

static void file_name(char *name, size_t size, const struct recording_process *of)
{
	char own[INSPECTOR_NAME_BYTES];

	inspector_file_name(own, of->host, of->pid);
	text_copy(name, size, own);
}

const struct export_format export_inspector = {
	.name = "inspector",
	.suffix = ".log",
	.file_name = file_name,
	.begin = begin,
	.process = process,
	.batch = batch,
	.fact = fact,
	.end = end,
};
