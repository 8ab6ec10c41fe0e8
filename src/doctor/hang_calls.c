/*
 * All collective calls of two seats, compared by number: where did they part? Goes through what was
 * recorded, once each, and once more for what was called there. Bounded: of very long recordings the last
 * calls are kept.
 */
#include <stdlib.h>

#include "common/op.h"
#include "doctor/hang_chain.h"

enum { KEPT_MAX = 1 << 20 };

/* A ring of the last calls of one seat. */
struct kept {
	uint32_t comm;
	struct {
		uint64_t match, signature;
	} * list;
	size_t room;
	size_t next; /* how many came */
};

static bool is_call(const struct op_batch *batch, uint32_t row, uint32_t comm)
{
	uint64_t kind = batch->column[OP_WORD_KIND][row];

	return op_kind_comm(kind) == comm && op_is_collective((uint8_t)op_kind_names(kind)) &&
	       !(op_state_flags(batch->column[OP_WORD_STATE][row]) & OP_FLAG_REPLAY) &&
	       batch->column[OP_WORD_MATCH][row] != 0 && batch->column[OP_WORD_SIGNATURE][row] != 0;
}

enum {
	WORDS = OP_WORD_BIT(OP_WORD_KIND) | OP_WORD_BIT(OP_WORD_STATE) |
		OP_WORD_BIT(OP_WORD_MATCH) | OP_WORD_BIT(OP_WORD_SIGNATURE),
};

static bool keep(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct kept *kept = context;

	(void)place;
	for (uint32_t row = 0; row < batch->rows; row++) {
		size_t at;

		if (!is_call(batch, row, kept->comm))
			continue;
		if (kept->next == kept->room && kept->room < KEPT_MAX) {
			size_t room = kept->room ? 2 * kept->room : 4096;
			void *list = realloc(kept->list, room * sizeof(*kept->list));

			if (list == NULL)
				return false;
			kept->list = list;
			kept->room = room;
		}
		at = kept->next++ % kept->room;
		kept->list[at].match = batch->column[OP_WORD_MATCH][row];
		kept->list[at].signature = batch->column[OP_WORD_SIGNATURE][row];
	}
	return true;
}

static int by_match(const void *one, const void *other)
{
	const uint64_t *a = one, *b = other;

	return *a < *b ? -1 : *a > *b;
}

static uint64_t signature_of(const struct kept *kept, uint64_t match)
{
	size_t from = 0, to = kept->next;

	/* Numbers without a gap, as they nearly always are. */
	if (kept->next > 0 && match >= kept->list[0].match &&
	    match - kept->list[0].match < kept->next &&
	    kept->list[match - kept->list[0].match].match == match)
		return kept->list[match - kept->list[0].match].signature;
	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (kept->list[middle].match < match)
			from = middle + 1;
		else
			to = middle;
	}
	return from < kept->next && kept->list[from].match == match ? kept->list[from].signature
								    : 0;
}

/* The other seat against what was kept of the first. */
struct compared {
	const struct kept *kept;
	uint32_t comm;
	uint64_t first;	 /* the first that differs, 0 none */
	uint64_t agreed; /* one before was the same */
};

static bool compare(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct compared *compared = context;

	(void)place;
	for (uint32_t row = 0; row < batch->rows; row++) {
		uint64_t match, signature;

		if (!is_call(batch, row, compared->comm))
			continue;
		match = batch->column[OP_WORD_MATCH][row];
		signature = signature_of(compared->kept, match);
		if (signature == 0)
			continue;
		if (signature == batch->column[OP_WORD_SIGNATURE][row])
			compared->agreed = match > compared->agreed ? match : compared->agreed;
		else if (compared->first == 0 || match < compared->first)
			compared->first = match;
	}
	return true;
}

struct wanted {
	uint32_t comm;
	uint64_t match;
	struct hang_call call;
};

static bool take_wanted(const struct op_record *op, enum recording_place place, void *context)
{
	struct wanted *wanted = context;

	(void)place;
	if (op->comm != wanted->comm || op->match != wanted->match ||
	    !op_is_collective(op->function) || op->flags & OP_FLAG_REPLAY)
		return true;
	wanted->call = (struct hang_call){ op->match,	 op->signature, op->count, op->root,
					   op->function, op->datatype,	true };
	return false;
}

static bool load_call(const struct hang_scene *scene, uint32_t seat, uint64_t match,
		      struct hang_call *call)
{
	struct wanted wanted = { scene->job->seats[seat].comm_id, match, { .match = 0 } };

	recording_each_op(hang_process(scene, seat), take_wanted, &wanted, NULL);
	*call = wanted.call;
	return wanted.call.is_known;
}

bool hang_calls_differ(const struct hang_scene *scene, uint32_t one, uint32_t other,
		       struct hang_call calls[2])
{
	struct kept kept = { .comm = scene->job->seats[one].comm_id };
	struct compared compared = { .kept = &kept, .comm = scene->job->seats[other].comm_id };
	enum status status;

	status = recording_each_batch(hang_process(scene, one), WORDS, keep, &kept, NULL);
	if (kept.next > kept.room)
		kept.next = kept.room;
	if (kept.next > 1)
		qsort(kept.list, kept.next, sizeof(*kept.list), by_match);
	if (status == OK && kept.next > 0)
		status = recording_each_batch(hang_process(scene, other), WORDS, compare, &compared,
					      NULL);
	free(kept.list);
	/* Only a number that follows on one where they agreed is known to be the first. */
	if (status != OK || compared.first == 0 ||
	    (compared.first > 1 && compared.agreed + 1 != compared.first))
		return false;
	return load_call(scene, one, compared.first, &calls[0]) &&
	       load_call(scene, other, compared.first, &calls[1]);
}
