#include "view/flight_words.h"

#include <string.h>

#include "common/op_layout.h"
#include "common/text.h"

const char *flight_words_operation(const struct recording_process *process,
				   const struct recording_flight *flight,
				   char words[static FLIGHT_WORDS])
{
	const struct op_record *op = &flight->op;
	const char *name = recording_name(process, OP_NAMES_FUNCTION, op->function);

	if (op->function == OP_SEND && op->peer != OP_NOBODY)
		text_format(words, FLIGHT_WORDS, "%s to %d", name, op->peer);
	else if (op->function == OP_RECV && op->peer != OP_NOBODY)
		text_format(words, FLIGHT_WORDS, "%s from %d", name, op->peer);
	else if (op->function == OP_BROADCAST && op->root != OP_NOBODY)
		text_format(words, FLIGHT_WORDS, "%s from %d", name, op->root);
	else if (op->function == OP_REDUCE && op->root != OP_NOBODY)
		text_format(words, FLIGHT_WORDS, "%s to %d", name, op->root);
	else
		text_format(words, FLIGHT_WORDS, "%s%s", name,
			    op->flags & OP_FLAG_REPLAY ? " (graph)" : "");
	return words;
}

static unsigned int bits_set(const uint64_t bits[static 4])
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

const char *flight_words_kernel(const struct recording_process *process,
				const struct recording_flight *flight,
				char words[static FLIGHT_WORDS])
{
	const struct recording_comm *comm = recording_comm(process, flight->op.comm);
	/* A trace has the numbers and not which channels. */
	unsigned int started = most(bits_set(flight->started), flight->op.kernels_started);
	unsigned int stopped = most(bits_set(flight->stopped), flight->op.kernels_stopped);

	words[0] = '\0';
	if (flight->op.state == OP_ISSUED)
		text_copy(words, FLIGHT_WORDS, "NCCL has not launched it");
	else if (started > 0 && flight->op.channels >= started)
		text_format(words, FLIGHT_WORDS, "kernel: %u of %u channels started, %u stopped",
			    started, flight->op.channels, stopped);
	else if (started > 0)
		text_format(words, FLIGHT_WORDS, "kernel: %u channels started, %u stopped", started,
			    stopped);
	else if (flight->op.state == OP_LAUNCHED && comm &&
		 comm->info.flags & COMM_FLAG_SEES_KERNELS)
		text_copy(words, FLIGHT_WORDS, "kernel: the GPU has not reached it");
	return words;
}

const char *flight_words_channels(const uint64_t bits[static 4],
				  char words[static FLIGHT_CHANNELS_TEXT])
{
	size_t used = 0;

	words[0] = '\0';
	for (unsigned int from = 0, to; from < 256; from = to + 1) {
		to = from;
		if (!(bits[from / 64] >> (from % 64) & 1))
			continue;
		while (to + 1 < 256 && bits[(to + 1) / 64] >> ((to + 1) % 64) & 1)
			to++;
		text_format(words + used, FLIGHT_CHANNELS_TEXT - used,
			    to > from ? "%s%u-%u" : "%s%u", used ? "," : "", from, to);
		used = strlen(words);
	}
	return words;
}

const char *flight_words_wait(const struct flight_wait *wait, char words[static FLIGHT_WORDS])
{
	char channels[FLIGHT_CHANNELS_TEXT], what[FLIGHT_WORDS - FLIGHT_CHANNELS_TEXT];
	unsigned int count = bits_set(wait->channels);

	/* The sentences are our own, see flight_reason_text(); each has one %d. */
	text_format(what, sizeof(what), flight_reason_text(wait->reason), wait->peer);
	flight_words_channels(wait->channels, channels);
	text_format(words, FLIGHT_WORDS, "%s%s%s", what,
		    count == 0	 ? ""
		    : count == 1 ? " on channel "
				 : " on channels ",
		    channels);
	return words;
}
