#include "programs/cli/ps_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "op/comm_layout.h"
#include "view/units.h"

const char *ps_words_operation(const struct ps_entry *entry, char words[static PS_WORDS])
{
	const struct op_record *op = &entry->flight->op;
	const char *name = recording_name(entry->process, OP_NAMES_FUNCTION, op->function);

	if (op->function == OP_SEND && op->peer != OP_NOBODY)
		text_format(words, PS_WORDS, "%s to %d", name, op->peer);
	else if (op->function == OP_RECV && op->peer != OP_NOBODY)
		text_format(words, PS_WORDS, "%s from %d", name, op->peer);
	else if (op->function == OP_BROADCAST && op->root != OP_NOBODY)
		text_format(words, PS_WORDS, "%s from %d", name, op->root);
	else if (op->function == OP_REDUCE && op->root != OP_NOBODY)
		text_format(words, PS_WORDS, "%s to %d", name, op->root);
	else
		text_format(words, PS_WORDS, "%s%s", name,
			    op->flags & OP_FLAG_REPLAY ? " (graph)" : "");
	return words;
}

static unsigned int bits_set(const uint64_t bits[4])
{
	unsigned int count = 0;

	for (int i = 0; i < 4; i++)
		count += (unsigned int)__builtin_popcountll(bits[i]);
	return count;
}

static unsigned int most(unsigned int a, unsigned int b)
{
	return a > b ? a : b;
}

const char *ps_words_kernel(const struct ps_entry *entry, char words[static PS_WORDS])
{
	const struct recording_flight *flight = entry->flight;
	const struct recording_comm *comm = recording_comm(entry->process, flight->op.comm);
	/* A trace has the numbers and not which channels. */
	unsigned int started = most(bits_set(flight->started), flight->op.kernels_started);
	unsigned int stopped = most(bits_set(flight->stopped), flight->op.kernels_stopped);

	words[0] = '\0';
	if (entry->kind == FLIGHT_UNSEEN)
		text_copy(words, PS_WORDS, "NCCL does not show its end here");
	else if (flight->op.state == OP_ISSUED)
		text_copy(words, PS_WORDS, "NCCL has not launched it");
	else if (started > 0 && flight->op.channels >= started)
		text_format(words, PS_WORDS, "kernel: %u of %u channels started, %u stopped",
			    started, flight->op.channels, stopped);
	else if (started > 0)
		text_format(words, PS_WORDS, "kernel: %u channels started, %u stopped", started,
			    stopped);
	else if (flight->op.state == OP_LAUNCHED && comm &&
		 comm->info.flags & COMM_FLAG_SEES_KERNELS)
		text_copy(words, PS_WORDS, "kernel: the GPU has not reached it");
	return words;
}

/* "channel 3", "channels 0-3,7" */
static void channel_words(const uint64_t bits[4], char *words, size_t size)
{
	size_t used = 0;

	text_format(words, size, "channel%s ", bits_set(bits) == 1 ? "" : "s");
	used = strlen(words);
	for (unsigned int from = 0, to; from < 256; from = to + 1) {
		to = from;
		if (!(bits[from / 64] >> (from % 64) & 1))
			continue;
		while (to + 1 < 256 && bits[(to + 1) / 64] >> ((to + 1) % 64) & 1)
			to++;
		text_format(words + used, size - used, to > from ? "%u-%u," : "%u,", from, to);
		used = strlen(words);
	}
	words[used - 1] = '\0';
}

uint64_t ps_words_waiting_ns(const struct flight_wait *wait, uint64_t now_ns)
{
	return now_ns > wait->since_ns ? now_ns - wait->since_ns : 0;
}

const char *ps_words_wait(const struct flight_wait *wait, uint64_t now_ns,
			  char words[static PS_WORDS])
{
	char channels[160], time[UNITS_TEXT], what[128], steps[64] = "";

	channel_words(wait->channels, channels, sizeof(channels));
	/* The sentences are our own, see flight_reason_text(); each has one %d. */
	text_format(what, sizeof(what), flight_reason_text(wait->reason), wait->peer);
	if (wait->steps > 0)
		text_format(steps, sizeof(steps), ", %" PRIu64 " of %" PRIu64 " transfers done",
			    wait->steps_done, wait->steps);
	text_format(words, PS_WORDS, "%s on %s for %s%s", what, channels,
		    units_duration(time, ps_words_waiting_ns(wait, now_ns)), steps);
	return words;
}
