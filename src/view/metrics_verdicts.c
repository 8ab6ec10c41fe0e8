/* Who is stuck, as the doctor sees it: one series a verdict, and how many there were. */
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "view/metrics_writer.h"

enum { SHOWN_MAX = 64 };

static const struct job_comm *comm_of(const struct job *job, const struct verdict *verdict)
{
	for (size_t i = 0; verdict->comm[0] != '\0' && i < job->comm_count; i++)
		if (strcmp(job->comms[i].label, verdict->comm) == 0)
			return &job->comms[i];
	return NULL;
}

/* The culprit's seat when it is here, else the first of its communicator. */
static uint32_t seat_of(const struct job *job, const struct verdict *verdict)
{
	const struct job_comm *comm = comm_of(job, verdict);
	uint32_t found = METRICS_NOBODY;

	for (uint32_t i = 0; comm && i < comm->seat_count; i++)
		if (found == METRICS_NOBODY ||
		    job->seats[comm->seats[i]].comm_rank == verdict->comm_rank)
			found = comm->seats[i];
	return found;
}

static void label_known(struct metrics_out *out, const char *name, int64_t number)
{
	if (number >= 0)
		metrics_label_number(out, name, number);
}

static void label_verdict(struct metrics_writer *writer, const struct verdict *verdict,
			  uint32_t seat)
{
	struct metrics_out *out = &writer->out;
	char comm[METRICS_COMM_TEXT] = "";

	if (seat != METRICS_NOBODY)
		metrics_comm_text(&writer->model, seat, comm);
	else if (verdict->comm_hash != 0)
		text_format(comm, sizeof(comm), "%016" PRIx64, verdict->comm_hash);
	metrics_label(out, "nccl_job", verdict->job);
	metrics_label(out, "class", verdict_class_name(verdict->class));
	metrics_label(out, "comm", comm);
	label_known(out, "rank", verdict->comm_rank);
	label_known(out, "global_rank", verdict->rank);
	label_known(out, "peer_global_rank", verdict->peer);
	metrics_label(out, "host", verdict->host);
	metrics_label(out, "confidence", verdict_confidence_word(verdict->confidence));
}

/* In a textfile: that of the culprit, of a member, of the first process. */
static bool is_here(const struct metrics_writer *writer, uint32_t seat)
{
	uint32_t process = seat == METRICS_NOBODY ? 0 : writer->model.job->seats[seat].process;

	return metrics_is_in_file(writer, process);
}

void metrics_write_verdicts(struct metrics_writer *writer)
{
	const struct verdicts *verdicts = &writer->model.live->verdicts;
	struct metrics_labels labels[SHOWN_MAX];
	struct metrics_out *out = &writer->out;
	size_t count = 0;

	metrics_family(out, METRICS_VERDICT_INFO);
	for (size_t i = 0; i < verdicts->count && count < SHOWN_MAX; i++) {
		uint32_t seat = seat_of(writer->model.job, &verdicts->list[i]);
		bool is_new = true;

		metrics_labels_begin(out, &labels[count]);
		label_verdict(writer, &verdicts->list[i], seat);
		metrics_labels_end(out, &labels[count]);
		for (size_t j = 0; j < count; j++)
			is_new = is_new && !metrics_labels_equal(out, labels[j], labels[count]);
		if (is_new && is_here(writer, seat))
			metrics_put_unsigned(out, labels[count], 1);
		count += is_new;
	}
}

void metrics_write_verdict_counts(struct metrics_writer *writer, const uint64_t *counts)
{
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_AGENT_VERDICTS);
	for (unsigned int i = 0; counts && i < VERDICT_CLASSES; i++) {
		struct metrics_labels labels;

		/* The agent looks for hangs alone. */
		if (!verdict_is_hang(i))
			continue;
		metrics_labels_begin(out, &labels);
		metrics_label(out, "class", verdict_class_name(i));
		metrics_labels_end(out, &labels);
		metrics_put_unsigned(out, labels, counts[i]);
	}
}
