/* Hangs that calls alone reveal: ranks that made different calls, or the same ones in a different order. */
#include "doctor/hang_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/op.h"

/*
 * Compares all collective calls of two seats by number to find where they diverged. Reads each recording
 * once, and once more for the calls at that point. Bounded: of very long recordings only the last calls are
 * kept.
 */
enum { KEPT_MAX = 1 << 20 };

/* A ring of the last calls of one seat. */
struct kept {
	uint32_t comm;
	struct kept_call {
		uint64_t match, signature;
	} * list;
	size_t room;
	size_t next; /* number of calls added */
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

static bool calls_keep(const struct op_batch *batch, enum recording_place place, void *context)
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

	return ORDER(*a, *b);
}

static uint64_t signature_of(const struct kept *kept, uint64_t match)
{
	const struct kept_call *found;

	/* Consecutive numbers, as is nearly always the case. */
	if (kept->next > 0 && match >= kept->list[0].match &&
	    match - kept->list[0].match < kept->next &&
	    kept->list[match - kept->list[0].match].match == match)
		return kept->list[match - kept->list[0].match].signature;
	found = bsearch(&match, kept->list, kept->next, sizeof(*kept->list), by_match);
	return found != NULL ? found->signature : 0;
}

/* Compares the other seat with what was kept of the first. */
struct compared {
	const struct kept *kept;
	uint32_t comm;
	uint64_t first;	 /* the first difference, 0 none */
	uint64_t agreed; /* an earlier one was the same */
};

static bool calls_compare(const struct op_batch *batch, enum recording_place place, void *context)
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

/* The first number at which two seats differ, from everything recorded of them; false: they do not, or it
 * cannot be found. calls[] is what each called there. */
static bool hang_calls_differ(const struct hang_scene *scene, uint32_t one, uint32_t other,
			      struct hang_call calls[2])
{
	struct kept kept = { .comm = scene->job->seats[one].comm_id };
	struct compared compared = { .kept = &kept, .comm = scene->job->seats[other].comm_id };
	enum status status;

	status = recording_each_batch(hang_process(scene, one), WORDS, calls_keep, &kept, NULL);
	if (kept.next > kept.room)
		kept.next = kept.room;
	if (kept.next > 1)
		qsort(kept.list, kept.next, sizeof(*kept.list), by_match);
	if (status == OK && kept.next > 0)
		status = recording_each_batch(hang_process(scene, other), WORDS, calls_compare,
					      &compared, NULL);
	free(kept.list);
	/* Only a difference right after a number where they agreed is known to be the first. */
	if (status != OK || compared.first == 0 ||
	    (compared.first > 1 && compared.agreed + 1 != compared.first))
		return false;
	return load_call(scene, one, compared.first, &calls[0]) &&
	       load_call(scene, other, compared.first, &calls[1]);
}

/*
 * Ranks that made different calls. Every collective call has a number and a hash of all calls so far: if
 * two ranks have the same number and different hashes, they have diverged there or before. Live slots keep
 * the last calls, including finished ones, and the counters have the last one.
 *
 * With half the count a rank may be done with its call and be in the next one, where the others seem to be
 * missing. So this check comes before all others.
 */

/* Counters that have not changed for this long were read consistently. */
#define SETTLED_NS (SECOND_NS / 10)

/* Ranks make a call within a moment of each other, also on a busy host. A rank that has done nothing for
 * this long is held up, and when it will continue is unknown. */
#define COMING_NS SECOND_NS

/* Reading the recordings of two processes takes time: at most this many communicators. */
enum { WALKS_MAX = 8, LATER_MAX = 8 };

/* The calls of one seat that are still recorded, by number. */
struct calls {
	const struct recording_flight *at, *end;
	bool has_last; /* from the counters, unless they may be changing */
	uint64_t last, signature;
};

static struct calls calls_of(const struct hang_scene *scene, uint32_t s)
{
	const struct hang_seat *seat = &scene->seats[s];
	const struct recording_process *process = hang_process(scene, s);
	const uint64_t *still_ns = scene->options ? scene->options->still_ns : NULL;
	struct calls calls = { .at = hang_flights(scene, s) };

	calls.end = calls.at ? calls.at + seat->flight_count : NULL;
	calls.has_last = seat->comm->has_counts && seat->comm->counts.signature != 0 &&
			 seat->comm->counts.collectives != 0 &&
			 (still_ns ? still_ns[s] >= SETTLED_NS : !process->is_moving);
	calls.last = seat->comm->counts.collectives;
	calls.signature = seat->comm->counts.signature;
	return calls;
}

/* The next call; false after the last. */
static bool next_call(struct calls *calls, struct hang_call *call)
{
	for (; calls->at < calls->end; calls->at++) {
		const struct op_record *op = &calls->at->op;

		if (!op_is_collective(op->function) || op->flags & OP_FLAG_REPLAY ||
		    op->match == 0 || op->signature == 0)
			continue;
		*call = (struct hang_call){ op->match,	  op->signature, op->count, op->root,
					    op->function, op->datatype,	 true };
		if (op->match == calls->last)
			calls->has_last = false;
		calls->at++;
		return true;
	}
	*call = (struct hang_call){ .match = calls->last, .signature = calls->signature };
	if (!calls->has_last)
		return false;
	calls->has_last = false;
	return true;
}

static bool call_at(const struct hang_scene *scene, uint32_t s, uint64_t match,
		    struct hang_call *call)
{
	struct calls calls = calls_of(scene, s);

	while (next_call(&calls, call))
		if (call->match == match)
			return true;
	return false;
}

/* Different releases hash different fields. */
static bool is_comparable(const struct hang_scene *scene, const struct job_comm *comm, uint32_t i)
{
	return scene->seats[comm->seats[i]].comm->info.interface ==
	       scene->seats[comm->seats[0]].comm->info.interface;
}

/* ---- the first difference -------------------------------------------------------------------- */

/* All calls of one communicator by number: open addressing, cleared for the next one. */
struct table {
	struct {
		uint64_t match, signature;
	} * slots;
	size_t room; /* a power of two */
};

static size_t count_calls(const struct hang_scene *scene, const struct job_comm *comm)
{
	size_t count = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++)
		count += scene->seats[comm->seats[i]].flight_count + 1;
	return count;
}

/* Numbers of different ranks are nearly the same: there are far fewer of them than calls. */
static bool table_clear(struct hang_graph *graph, struct table *table, size_t calls)
{
	size_t room = 64;

	while (room < 2 * calls)
		room *= 2;
	if (room > table->room) {
		free(table->slots);
		table->slots = malloc(room * sizeof(*table->slots));
		table->room = table->slots ? room : 0;
	}
	if (table->slots == NULL) {
		graph->status = ERR_NO_SPACE;
		return false;
	}
	memset(table->slots, 0, room * sizeof(*table->slots));
	table->room = room;
	return true;
}

/* False if this number already has a different signature. */
static bool table_agrees(struct table *table, const struct hang_call *call)
{
	size_t at = (size_t)hash_word(1, call->match) & (table->room - 1);

	while (table->slots[at].match != 0 && table->slots[at].match != call->match)
		at = (at + 1) & (table->room - 1);
	if (table->slots[at].match == 0) {
		table->slots[at].match = call->match;
		table->slots[at].signature = call->signature;
	}
	return table->slots[at].signature == call->signature;
}

/* Fast and usually enough: all ranks are at the same last call with the same hash. */
static bool is_all_the_same(const struct hang_scene *scene, const struct job_comm *comm)
{
	const struct comm_counts *first = &scene->seats[comm->seats[0]].comm->counts;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct recording_comm *of = scene->seats[comm->seats[i]].comm;

		if (!of->has_counts || of->counts.collectives != first->collectives ||
		    of->counts.signature != first->signature || of->counts.signature == 0)
			return false;
	}
	return true;
}

static uint64_t first_difference(struct hang_graph *graph, struct table *table,
				 const struct job_comm *comm)
{
	const struct hang_scene *scene = graph->scene;
	uint64_t first = 0;

	if (!table_clear(graph, table, count_calls(scene, comm)))
		return 0;
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		struct calls calls = calls_of(scene, comm->seats[i]);
		struct hang_call call;

		while (is_comparable(scene, comm, i) && next_call(&calls, &call))
			if (!table_agrees(table, &call) && (first == 0 || call.match < first))
				first = call.match;
	}
	return first;
}

/* ---- sides --------------------------------------------------------------------------------------- */

static void take_side(struct hang_split *split, const struct hang_call *call, uint32_t seat)
{
	split->asked++;
	for (uint32_t i = 0; i < split->side_count; i++) {
		struct hang_side_of_split *side = &split->sides[i];

		if (side->call.signature != call->signature)
			continue;
		side->count++;
		if (!side->call.is_known && call->is_known)
			side->call = *call;
		return;
	}
	if (split->side_count < HANG_SIDES_MAX)
		split->sides[split->side_count++] = (struct hang_side_of_split){ *call, seat, 1 };
}

static int most_first(const void *one, const void *other)
{
	const struct hang_side_of_split *a = one, *b = other;

	return ORDER(b->count, a->count) ?: ORDER(a->first, b->first);
}

static void take_sides(const struct hang_scene *scene, struct hang_split *split)
{
	const struct job_comm *comm = &scene->job->comms[split->comm];
	struct hang_call call;

	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (is_comparable(scene, comm, i) &&
		    call_at(scene, comm->seats[i], split->number, &call))
			take_side(split, &call, comm->seats[i]);
	qsort(split->sides, split->side_count, sizeof(split->sides[0]), most_first);
}

/*
 * Is a rank about to make this call? Sides reported before it has called might change at the next scan,
 * with another culprit. So repeated scans wait for ranks that make progress, but no longer than for a hang:
 * Sends and Recvs may continue forever on a communicator.
 */
static bool is_too_early(const struct hang_scene *scene, const struct job_comm *comm,
			 uint64_t number)
{
	bool is_any_coming = false;
	struct hang_call call;

	if (scene->options == NULL || scene->options->still_ns == NULL)
		return false;
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct hang_seat *seat = &scene->seats[comm->seats[i]];

		if (seat->is_over || !is_comparable(scene, comm, i))
			continue;
		if (call_at(scene, comm->seats[i], number, &call)) {
			if (seat->still_ns >= scene->hang_ns)
				return false;
		} else if (seat->comm->has_counts && seat->comm->counts.collectives <= number &&
			   seat->still_ns < COMING_NS) {
			is_any_coming = true;
		}
	}
	return is_any_coming;
}

/* ---- kind of difference ---------------------------------------------------------------------- */

static bool is_same_call(const struct hang_call *a, const struct hang_call *b)
{
	return a->function == b->function && a->count == b->count && a->datatype == b->datatype &&
	       a->root == b->root;
}

/* Does this seat make that call soon after? */
static bool calls_later(const struct hang_scene *scene, uint32_t seat, uint64_t number,
			const struct hang_call *wanted)
{
	struct calls calls = calls_of(scene, seat);
	struct hang_call call;

	while (next_call(&calls, &call))
		if (call.is_known && call.match > number && call.match <= number + LATER_MAX &&
		    is_same_call(&call, wanted))
			return true;
	return false;
}

static const char *rule_of(const struct hang_scene *scene, const struct hang_split *split)
{
	const struct hang_side_of_split *a = &split->sides[0];
	const struct hang_side_of_split *b = &split->sides[split->side_count - 1];

	if (!a->call.is_known || !b->call.is_known || is_same_call(&a->call, &b->call))
		return "";
	if (calls_later(scene, a->first, split->number, &b->call) &&
	    calls_later(scene, b->first, split->number, &a->call))
		return "order";
	if (a->call.function != b->call.function)
		return "function";
	if (a->call.datatype != b->call.datatype)
		return "datatype";
	return a->call.count != b->call.count ? "count" : "root";
}

/* Did the two sides agree at the previous number? */
static bool is_known_first(const struct hang_scene *scene, const struct hang_split *split)
{
	const struct hang_side_of_split *usual = &split->sides[0];
	const struct hang_side_of_split *odd = &split->sides[split->side_count - 1];
	struct hang_call a, b;

	if (split->number == 1)
		return true;
	return call_at(scene, usual->first, split->number - 1, &a) &&
	       call_at(scene, odd->first, split->number - 1, &b) && a.signature == b.signature;
}

/* It was before what live slots hold: search everything the two have recorded. */
static void look_back(const struct hang_scene *scene, struct hang_split *split)
{
	struct hang_side_of_split *usual = &split->sides[0];
	struct hang_side_of_split *odd = &split->sides[split->side_count - 1];
	struct hang_call calls[2];

	if (!hang_calls_differ(scene, usual->first, odd->first, calls))
		return;
	split->number = calls[0].match;
	usual->call = calls[0];
	odd->call = calls[1];
	split->is_first = true;
}

static void add_split(struct hang_graph *graph, uint32_t c, uint64_t number, bool may_walk)
{
	const struct hang_scene *scene = graph->scene;
	struct hang_split *split;
	struct hang_end *end;
	uint32_t last;

	if (!hang_grow(graph, &graph->splits, graph->split_count, sizeof(*split)))
		return;
	split = &graph->splits[graph->split_count++];
	*split = (struct hang_split){ .comm = c, .number = number, .rule = "" };
	take_sides(scene, split);
	if (split->side_count < 2) {
		graph->split_count--;
		return;
	}
	last = split->side_count - 1;
	split->is_first = is_known_first(scene, split);
	if (!split->is_first && may_walk && !(scene->options && scene->options->is_quick))
		look_back(scene, split);
	split->rule = rule_of(scene, split);
	end = hang_end_add(graph, VERDICT_MISMATCH, c, c, HANG_NOBODY);
	if (split->sides[last].count < split->sides[0].count)
		end->seat = split->sides[last].first;
	end->split = (uint32_t)graph->split_count - 1;
	if (end->witness == HANG_NOBODY)
		end->witness = split->sides[0].first;
	end->confidence = 0.98;
	graph->is_split[c] = true;
}

void hang_mismatches(struct hang_graph *graph)
{
	const struct job *job = graph->scene->job;
	struct table table = { NULL, 0 };
	unsigned int walks = 0;

	graph->is_split = calloc(job->comm_count + 1, sizeof(*graph->is_split));
	if (graph->is_split == NULL)
		graph->status = ERR_NO_SPACE;
	for (uint32_t c = 0; c < job->comm_count && graph->status == OK; c++) {
		const struct job_comm *comm = &job->comms[c];
		uint64_t number;

		if (comm->hash == 0 || comm->seat_count < 2 || hang_is_past(graph->scene, comm) ||
		    is_all_the_same(graph->scene, comm))
			continue;
		number = first_difference(graph, &table, comm);
		if (number == 0)
			continue;
		if (is_too_early(graph->scene, comm, number))
			graph->is_split[c] = true; /* nothing else is concluded meanwhile */
		else
			add_split(graph, c, number, walks++ < WALKS_MAX);
	}
	free(table.slots);
}

/*
 * Ranks that made the same calls in a different order on two communicators. Each GPU runs what was called
 * first and waits there for the others, which wait in what they called first: a deadlock in which every
 * rank has called everything. Kernel events would show which GPU is in what; without them the order of the
 * calls does.
 *
 *	rank 0 called   AllReduce #44 of world, then AllGather #72 of ep
 *	rank 1 called   AllGather #72 of ep, then AllReduce #44 of world
 *
 * A different order alone is harmless: streams may run in parallel. So this is checked only if all that
 * these ranks called last is stuck and nothing shows whether it has ended.
 */

enum {
	CALLS = 16,		/* the last ones that two ranks share */
	COMPARISONS_MAX = 4096, /* pairs of ranks: a large job that hangs looks the same
				   everywhere */
};

/* A call that both ranks made, with its times. On neither is it known to be over. */
struct shared_call {
	const struct recording_flight *one, *other;
	bool is_unsure_on_one, is_unsure_on_other; /* nothing shows that the GPU has started it */
	bool is_second;				   /* of the second communicator */
};

/* Two ranks on two communicators. */
struct shared_seats {
	uint32_t one[2], other[2]; /* seats of each rank, per communicator */
};

/* All ranks called the stuck operation, and kernel events do not show which of them are in it. */
static bool is_stuck_by_calls(const struct hang_scene *scene, uint32_t c)
{
	const struct hang_match *match = &scene->matches[c];

	if (match->level != HANG_HANGS || match->unjudged == HANG_ALL_CALLED)
		return match->level == HANG_HANGS;
	return match->unjudged == HANG_JUDGED && match->is_collective &&
	       !hang_sees_kernels(scene, match->first, &scene->seats[match->first].front->op);
}

static bool is_called_by_all(const struct hang_scene *scene, uint32_t c)
{
	const struct job_comm *comm = &scene->job->comms[c];

	if (scene->matches[c].unjudged == HANG_ALL_CALLED)
		return true;
	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (!hang_has_issued(scene, comm->seats[i], &scene->matches[c]))
			return false;
	return scene->matches[c].is_collective;
}

static enum flight_kind kind_of(const struct hang_scene *scene, uint32_t seat,
				const struct recording_flight *flight)
{
	return hang_flight_kind(scene, seat, (size_t)(flight - hang_flights(scene, seat)));
}

static bool is_over(const struct hang_scene *scene, uint32_t seat,
		    const struct recording_flight *flight)
{
	enum flight_kind kind = kind_of(scene, seat, flight);

	return kind != FLIGHT_UNSEEN && kind != FLIGHT_OPEN;
}

/* Does nothing show that a GPU has started this one? */
static bool is_unsure(const struct hang_scene *scene, uint32_t seat,
		      const struct recording_flight *flight)
{
	return kind_of(scene, seat, flight) == FLIGHT_UNSEEN ||
	       (!hang_has_worked(flight) && !hang_sees_kernels(scene, seat, &flight->op));
}

/* The same call on the other rank; for a Send, its Recv. */
static const struct recording_flight *same_call(const struct hang_scene *scene, uint32_t seat,
						uint32_t other, const struct op_record *op)
{
	const struct recording_flight *flights = hang_flights(scene, other);
	uint8_t function = op->function == OP_SEND ? OP_RECV : OP_SEND;

	for (size_t i = scene->seats[other].flight_count; i-- > 0;) {
		const struct op_record *found = &flights[i].op;

		if (found->match != op->match || found->flags & OP_FLAG_REPLAY)
			continue;
		if (op_is_collective(op->function)) {
			if (found->function == op->function)
				return &flights[i];
		} else if (found->function == function &&
			   op->peer == scene->job->seats[other].comm_rank &&
			   found->peer == scene->job->seats[seat].comm_rank) {
			return &flights[i];
		}
	}
	return NULL;
}

/* Is it a Send or a Recv of a third rank? An exchange between all has very many of these. */
static bool is_of_others(const struct hang_scene *scene, uint32_t other, const struct op_record *op)
{
	return !op_is_collective(op->function) && op->peer != scene->job->seats[other].comm_rank;
}

static size_t take_calls(const struct hang_scene *scene, const struct shared_seats *seats,
			 unsigned int which, struct shared_call *calls)
{
	uint32_t s = seats->one[which];
	const struct recording_flight *flights = hang_flights(scene, s);
	size_t taken = 0;

	for (size_t i = scene->seats[s].flight_count; i-- > 0 && taken < CALLS;) {
		const struct op_record *op = &flights[i].op;
		const struct recording_flight *other;

		if (op->match == 0 || op->flags & (OP_FLAG_REPLAY | OP_FLAG_SELF) ||
		    is_of_others(scene, seats->other[which], op) || is_over(scene, s, &flights[i]))
			continue;
		other = same_call(scene, s, seats->other[which], op);
		if (other == NULL || is_over(scene, seats->other[which], other))
			continue;
		calls[taken++] =
			(struct shared_call){ &flights[i], other, is_unsure(scene, s, &flights[i]),
					      is_unsure(scene, seats->other[which], other),
					      which == 1 };
	}
	return taken;
}

/* Two calls on different communicators whose order differs, and which keep each rank from the other's; false:
 * there are none. */
static bool find_crossing(const struct shared_call *calls, size_t count,
			  const struct shared_call **first, const struct shared_call **second)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++)
			if (!calls[i].is_second && calls[j].is_second &&
			    calls[i].is_unsure_on_other && calls[j].is_unsure_on_one &&
			    hang_is_called_before(calls[i].one, calls[j].one) &&
			    hang_is_called_before(calls[j].other, calls[i].other)) {
				*first = &calls[i];
				*second = &calls[j];
				return true;
			}
	return false;
}

/* One rank of `seats` called the first before the second, the other one vice versa. */
static void add_crossing(struct hang_graph *graph, const struct shared_seats *seats,
			 const struct shared_call *first, const struct shared_call *second)
{
	const struct hang_scene *scene = graph->scene;
	uint32_t comm = scene->job->seats[seats->one[0]].comm;
	uint32_t there = hang_node_of_front(scene, seats->other[1]);

	hang_edge_add(graph, (struct hang_edge){ .from = comm,
						 .to = there,
						 .seat = seats->other[0],
						 .held_by = seats->other[1],
						 .kind = HANG_EDGE_CALLED_BEFORE,
						 .before = second->other,
						 .after = first->other });
	hang_edge_add(graph, (struct hang_edge){ .from = there,
						 .to = comm,
						 .seat = seats->one[1],
						 .held_by = seats->one[0],
						 .kind = HANG_EDGE_CALLED_BEFORE,
						 .before = first->one,
						 .after = second->one });
}

/* False if their orders do not differ. */
static bool compare_orders(struct hang_graph *graph, const struct shared_seats *seats)
{
	struct shared_seats turned = { { seats->other[0], seats->other[1] },
				       { seats->one[0], seats->one[1] } };
	const struct shared_call *first, *second;
	struct shared_call calls[2 * CALLS];
	size_t count;

	for (int turn = 0; turn < 2; turn++) {
		const struct shared_seats *now = turn ? &turned : seats;

		count = take_calls(graph->scene, now, 0, calls);
		count += take_calls(graph->scene, now, 1, calls + count);
		if (find_crossing(calls, count, &first, &second)) {
			add_crossing(graph, now, first, second);
			return true;
		}
	}
	return false;
}

/* The seat of the same rank on another communicator; HANG_NOBODY: none. */
static uint32_t seat_on(const struct job *job, uint32_t seat, uint32_t comm)
{
	const struct job_seat *of = &job->seats[seat];

	for (uint32_t s = job->first_seat[of->process]; s < job->first_seat[of->process + 1]; s++)
		if (job->seats[s].rank == of->rank && job->seats[s].comm == comm)
			return s;
	return HANG_NOBODY;
}

/* Compares all ranks that are on both with this one, or if it is nobody with the first of them. `odd`: the first whose
 * order differs from it. */
static void compare_with(struct hang_graph *graph, const uint32_t comms[2], uint32_t one[2],
			 uint32_t odd[2], uint32_t *budget)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[comms[1]];

	odd[0] = HANG_NOBODY;
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i], there = seat_on(scene->job, seat, comms[0]);
		struct shared_seats seats = { { one[0], one[1] }, { there, seat } };

		if (there == HANG_NOBODY || there == one[0] || scene->seats[there].front == NULL ||
		    scene->seats[seat].front == NULL)
			continue;
		if (one[0] == HANG_NOBODY) {
			one[0] = there;
			one[1] = seat;
			continue;
		}
		if (*budget == 0)
			return;
		(*budget)--;
		if (compare_orders(graph, &seats) && odd[0] == HANG_NOBODY) {
			odd[0] = there;
			odd[1] = seat;
		}
	}
}

/* With the first rank, and if another one differs from it, with that one, too: then all of both sides are known. */
static void compare_comms(struct hang_graph *graph, uint32_t c, uint32_t d, uint32_t *budget)
{
	const uint32_t comms[2] = { c, d };
	uint32_t one[2] = { HANG_NOBODY, HANG_NOBODY }, odd[2], ignored[2];

	compare_with(graph, comms, one, odd, budget);
	if (odd[0] != HANG_NOBODY)
		compare_with(graph, comms, odd, ignored, budget);
}

void hang_orders(struct hang_graph *graph)
{
	const struct hang_scene *scene = graph->scene;
	const struct job *job = scene->job;
	uint32_t budget = COMPARISONS_MAX;

	for (uint32_t d = 0; d < job->comm_count && budget > 0; d++) {
		uint32_t seat;

		if (!is_stuck_by_calls(scene, d) || job->comms[d].seat_count < 2)
			continue;
		seat = job->comms[d].seats[0];
		for (uint32_t s = job->first_seat[job->seats[seat].process];
		     s < job->first_seat[job->seats[seat].process + 1]; s++) {
			uint32_t c = job->seats[s].comm;

			/* If not all ranks have called either, the missing rank is the cause. */
			if (c >= d || !is_stuck_by_calls(scene, c) ||
			    !(is_called_by_all(scene, c) || is_called_by_all(scene, d)))
				continue;
			/* The first one needs a node of its own. */
			if (scene->matches[c].is_collective)
				compare_comms(graph, c, d, &budget);
			else if (scene->matches[d].is_collective)
				compare_comms(graph, d, c, &budget);
		}
	}
}
