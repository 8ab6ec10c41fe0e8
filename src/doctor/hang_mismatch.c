/*
 * Members that called different things. Every collective call has its number and a hash of all calls so
 * far: where two members have the same number and another hash they have diverged, there or before. Live
 * slots keep the last calls, also those that are over, and the counters know the last one.
 *
 * With half the count a rank may be through with its call and be in the next one, where the others seem to
 * be missing. So this comes before everything else.
 */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/op.h"
#include "doctor/hang_chain.h"

/* Counters that have not changed for so long were read as a whole. */
#define SETTLED_NS (HANG_SECOND_NS / 10)

/* Ranks make a call within a moment of each other, also on a busy machine. Who has done nothing for so long
 * is held up, and nobody knows when it will come. */
#define COMING_NS HANG_SECOND_NS

/* Walking through what two processes recorded takes time: for so many communicators at most. */
enum { WALKS_MAX = 8, LATER_MAX = 8 };

/* The calls of one seat that can still be seen, by number. */
struct calls {
	const struct recording_flight *at, *end;
	bool has_last; /* the counters', if they are not just changing */
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

/* Releases hash different fields. */
static bool is_comparable(const struct hang_scene *scene, const struct job_comm *comm, uint32_t i)
{
	return scene->seats[comm->seats[i]].comm->info.interface ==
	       scene->seats[comm->seats[0]].comm->info.interface;
}

/* ---- the first number that differs --------------------------------------------------------------- */

/* All calls of one communicator by number: open addressing, emptied for the next one. */
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

/* Numbers of different members are nearly the same: there are far fewer of them than calls. */
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

/* False when another signature is known for this number. */
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

/* Quick and nearly always enough: everybody is at the same last call with the same hash. */
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

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
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
 * Is a member about to make this call? Sides that are told before it has chosen would be others at the next
 * look, with another culprit. So who looks again waits for those that move, but no longer than for a hang:
 * Sends and Recvs may go on for ever on a communicator.
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

/* ---- what kind ----------------------------------------------------------------------------------- */

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

/* Did the two sides agree at the number before? */
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

/* It was before what live slots hold: look through all that the two have recorded. */
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

	if (!hang_grow(graph, &graph->splits, graph->split_count, &graph->split_room,
		       sizeof(*split)))
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
