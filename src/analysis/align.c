/*
 * Processes are the nodes of a graph, pairs with shared collectives its edges, the spread of their
 * differences an edge's length. Starting at the process with the most neighbours, shortest paths to all
 * reachable ones (Dijkstra) make an island. The rest makes further islands, each placed by the wall clock
 * of its first process; a process without shared collectives is an island of its own, unless it shares the
 * host, and so the clock, with an aligned one.
 */
#include "analysis/align.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/align_fit.h"
#include "common/op.h"

/* Even equal clocks are read at different moments. */
enum { HOP_NS = 100, ANCHORS_MAX = 256 };

struct way {
	uint32_t to;
	uint32_t edge;
	bool is_back; /* from edge->other to edge->process */
};

struct graph {
	const struct job *job;
	const struct match_edge *edges;
	struct align *align;
	struct way *ways;
	uint32_t *first; /* per process, plus one */
	double *length;	 /* from the island's first process; INFINITY: not reached */
	bool *is_done;
	uint32_t *heap;
	uint32_t heap_count;
	uint32_t *heap_place; /* per process: place in heap + 1, 0 not there */
};

/* ---- a heap of processes by length ----------------------------------------------------------- */

static void heap_set(struct graph *graph, uint32_t place, uint32_t process)
{
	graph->heap[place] = process;
	graph->heap_place[process] = place + 1;
}

static void heap_up(struct graph *graph, uint32_t place)
{
	uint32_t process = graph->heap[place];

	while (place > 0) {
		uint32_t above = (place - 1) / 2;

		if (graph->length[graph->heap[above]] <= graph->length[process])
			break;
		heap_set(graph, place, graph->heap[above]);
		place = above;
	}
	heap_set(graph, place, process);
}

static uint32_t heap_pop(struct graph *graph)
{
	uint32_t top = graph->heap[0], last = graph->heap[--graph->heap_count], place = 0;

	graph->heap_place[top] = 0;
	while (graph->heap_count > 0) {
		uint32_t below = 2 * place + 1;

		if (below + 1 < graph->heap_count &&
		    graph->length[graph->heap[below + 1]] < graph->length[graph->heap[below]])
			below++;
		if (below >= graph->heap_count ||
		    graph->length[graph->heap[below]] >= graph->length[last])
			break;
		heap_set(graph, place, graph->heap[below]);
		place = below;
	}
	if (graph->heap_count > 0)
		heap_set(graph, place, last);
	return top;
}

static void heap_offer(struct graph *graph, uint32_t process)
{
	if (graph->heap_place[process] == 0)
		heap_set(graph, graph->heap_count++, process);
	heap_up(graph, graph->heap_place[process] - 1);
}

/* ---- one process after the other ------------------------------------------------------------- */

/* Puts `to` into common time, through `from`, which already is. */
static void chain(struct align *align, uint32_t from, uint32_t to, const struct match_edge *edge,
		  bool is_back)
{
	const struct align_process *known = &align->processes[from];
	struct align_process *own = &align->processes[to];
	/* The edge, as seen from `to`: to's clock + offset = from's clock. */
	uint64_t middle = is_back ? edge->middle_ns + (uint64_t)edge->offset_ns : edge->middle_ns;
	int64_t offset = is_back ? -edge->offset_ns : edge->offset_ns;
	double drift = is_back ? -edge->drift / (1 + edge->drift) : edge->drift;
	uint64_t there = middle + (uint64_t)offset;

	own->middle_ns = middle;
	own->offset_ns = (int64_t)(align_ns(align, from, there) - middle);
	own->drift = drift + known->drift + drift * known->drift;
	own->samples = edge->samples;
	own->via = from;
	own->hops = known->hops + 1;
	own->source = own->hops == 1 ? ALIGN_DIRECT : ALIGN_CHAIN;
	own->uncertainty_ns = known->uncertainty_ns + (uint64_t)edge->spread_ns;
	own->island = known->island;
	own->is_uncertain = known->is_uncertain;
}

/* Through the first anchor and the reader's fresh one. If the wall clock was set between them, the one
 * closer to the process's last activity counts. */
static bool is_freshly_placed(const struct recording_process *process, struct align_process *own)
{
	const struct clock_anchor *fresh = &process->fresh_anchor, *first = process->anchors;
	bool is_steady;

	/* A recorder with a thread takes them continuously. */
	if (fresh->wall_ns == 0 || process->anchor_count == 0 || process->anchor_count > 2)
		return false;
	is_steady = clock_anchors_are_steady(first, fresh);
	if (!is_steady &&
	    recording_last_ns(process) < first->clock_ns + (fresh->clock_ns - first->clock_ns) / 2)
		return false;
	own->source = ALIGN_ANCHOR;
	own->offset_ns = (int64_t)(fresh->wall_ns - fresh->clock_ns);
	own->middle_ns = fresh->clock_ns;
	own->samples = (uint32_t)process->anchor_count + 1;
	if (is_steady)
		own->drift =
			(double)(own->offset_ns - (int64_t)(first->wall_ns - first->clock_ns)) /
			(double)(fresh->clock_ns - first->clock_ns);
	return true;
}

/* By its own wall clock. */
static void place_by_anchor(struct graph *graph, uint32_t p, uint32_t island)
{
	const struct recording_process *process = graph->job->recording->processes[p];
	struct align_process *own = &graph->align->processes[p];
	struct align_sample samples[ANCHORS_MAX];
	struct align_line line;
	size_t count = process->anchor_count, used = 0;

	*own = (struct align_process){ .via = p, .island = island, .is_uncertain = true };
	if (is_freshly_placed(process, own))
		return;
	for (size_t i = 0; i < count && used < ANCHORS_MAX; i++) {
		const struct clock_anchor *anchor =
			&process->anchors[count > ANCHORS_MAX ? i * count / ANCHORS_MAX : i];

		samples[used++] = (struct align_sample){ anchor->clock_ns, anchor->wall_ns };
	}
	if (!align_fit(samples, used, &line))
		return;
	own->source = ALIGN_ANCHOR;
	own->offset_ns = line.offset_ns;
	own->drift = line.drift;
	own->middle_ns = line.middle_ns;
	own->samples = (uint32_t)line.samples;
}

static void spread_from(struct graph *graph, uint32_t start)
{
	graph->length[start] = 0;
	heap_offer(graph, start);
	while (graph->heap_count > 0) {
		uint32_t from = heap_pop(graph);

		graph->is_done[from] = true;
		for (uint32_t w = graph->first[from]; w < graph->first[from + 1]; w++) {
			const struct way *way = &graph->ways[w];
			const struct match_edge *edge = &graph->edges[way->edge];
			double length = graph->length[from] + edge->spread_ns + HOP_NS;

			if (graph->is_done[way->to] || length >= graph->length[way->to])
				continue;
			graph->length[way->to] = length;
			chain(graph->align, from, way->to, edge, way->is_back);
			heap_offer(graph, way->to);
		}
	}
}

/* ---- islands ---------------------------------------------------------------------------------- */

static uint32_t most_met(const struct graph *graph)
{
	uint32_t best = UINT32_MAX, most = 0;

	for (uint32_t p = 0; p < graph->align->count; p++) {
		uint32_t ways = graph->first[p + 1] - graph->first[p];

		if (!graph->is_done[p] && (best == UINT32_MAX || ways > most)) {
			best = p;
			most = ways;
		}
	}
	return best;
}

static bool is_same_clock(const struct recording_process *a, const struct recording_process *b)
{
	return a->boot_id[0] != '\0' && strcmp(a->boot_id, b->boot_id) == 0 &&
	       strcmp(a->host, b->host) == 0;
}

/* A process without shared collectives, on a host with an aligned one. */
static bool share_clock(struct graph *graph, uint32_t p)
{
	struct recording_process **processes = graph->job->recording->processes;

	for (uint32_t q = 0; q < graph->align->count; q++) {
		struct align_process *own = &graph->align->processes[p];

		if (!graph->is_done[q] || q == p || !is_same_clock(processes[p], processes[q]))
			continue;
		*own = graph->align->processes[q];
		own->source = ALIGN_SAME_CLOCK;
		own->via = q;
		own->hops++;
		own->uncertainty_ns += HOP_NS;
		graph->is_done[p] = true;
		return true;
	}
	return false;
}

static void make_islands(struct graph *graph)
{
	struct align *align = graph->align;
	uint32_t start;

	while ((start = most_met(graph)) != UINT32_MAX) {
		bool is_alone = graph->first[start + 1] == graph->first[start];

		if (is_alone && share_clock(graph, start))
			continue;
		place_by_anchor(graph, start, align->island_count);
		if (align->island_count == 0) {
			struct align_process *reference = &align->processes[start];

			align->reference = start;
			reference->is_uncertain = false;
			if (reference->source == ALIGN_ANCHOR)
				reference->source = ALIGN_REFERENCE;
		}
		align->island_count++;
		spread_from(graph, start);
	}
	for (size_t p = 0; p < align->count; p++) {
		const struct align_process *own = &align->processes[p];

		align->unaligned += own->is_uncertain;
		if (!own->is_uncertain && own->uncertainty_ns > align->worst_uncertainty_ns)
			align->worst_uncertainty_ns = own->uncertainty_ns;
	}
}

static void list_ways(struct graph *graph, size_t edge_count)
{
	uint32_t *next = graph->heap; /* not yet used */

	for (size_t i = 0; i < edge_count; i++) {
		graph->first[graph->edges[i].process + 1]++;
		graph->first[graph->edges[i].other + 1]++;
	}
	for (size_t p = 0; p < graph->align->count; p++) {
		graph->first[p + 1] += graph->first[p];
		next[p] = graph->first[p];
	}
	for (size_t i = 0; i < edge_count; i++) {
		const struct match_edge *edge = &graph->edges[i];

		graph->ways[next[edge->process]++] =
			(struct way){ .to = edge->other, .edge = (uint32_t)i, .is_back = true };
		graph->ways[next[edge->other]++] =
			(struct way){ .to = edge->process, .edge = (uint32_t)i, .is_back = false };
	}
}

enum status align_solve(struct align *align, const struct job *job, const struct match_edge *edges,
			size_t edge_count)
{
	size_t count = job->recording->count;
	struct graph graph = { .job = job, .edges = edges, .align = align };
	enum status status = ERR_NO_SPACE;

	*align = (struct align){ .count = count };
	align->processes = calloc(count + 1, sizeof(*align->processes));
	graph.ways = calloc(2 * edge_count + 1, sizeof(*graph.ways));
	graph.first = calloc(count + 2, sizeof(*graph.first));
	graph.length = calloc(count + 1, sizeof(*graph.length));
	graph.is_done = calloc(count + 1, sizeof(*graph.is_done));
	graph.heap = calloc(count + 1, sizeof(*graph.heap));
	graph.heap_place = calloc(count + 1, sizeof(*graph.heap_place));
	if (align->processes && graph.ways && graph.first && graph.length && graph.is_done &&
	    graph.heap && graph.heap_place) {
		list_ways(&graph, edge_count);
		for (size_t p = 0; p < count; p++)
			graph.length[p] = INFINITY;
		make_islands(&graph);
		status = OK;
	}
	free(graph.ways);
	free(graph.first);
	free(graph.length);
	free(graph.is_done);
	free(graph.heap);
	free(graph.heap_place);
	if (status != OK)
		align_release(align);
	return status;
}

const char *align_source_name(enum align_source source)
{
	static const char *const names[] = { "nothing", "anchor", "reference",
					     "direct",	"chain",  "same_clock" };

	return (unsigned int)source <= ALIGN_SAME_CLOCK ? names[source] : "nothing";
}

void align_release(struct align *align)
{
	free(align->processes);
	*align = (struct align){ .count = 0 };
}

uint64_t align_clock_ns(const struct align *align, size_t process, uint64_t common_ns)
{
	const struct align_process *own = &align->processes[process];
	uint64_t about = common_ns - (uint64_t)own->offset_ns;
	double elapsed = (double)(int64_t)(about - own->middle_ns);

	if (common_ns == 0)
		return 0;
	return about - (uint64_t)(int64_t)(own->drift / (1 + own->drift) * elapsed);
}

uint64_t align_uncertainty_ns(const struct align *align, size_t process)
{
	return align->processes[process].uncertainty_ns;
}

/* ---- a separate pass, for callers that need nothing else ------------------------------------- */

enum {
	/* Ends of the first collectives of each communicator are enough, with those spread over the rest
	 * that the limit of match.h leaves. */
	CLOCK_LIMIT = 1 << 20,
	CURSORS = MATCH_SEQUENCES,
};

struct walk {
	const struct job *job;
	struct matches matches;
	struct job_gaps gaps;
	struct match_cursor **cursors;
	size_t process;
	timeline_progress *progress;
	void *context;
	uint64_t done;
	uint64_t expected;
	bool is_cancelled;
};

static struct match_cursor *cursor_of(struct walk *walk, uint32_t comm, uint8_t source,
				      bool is_replay)
{
	const struct job_seat *seat = job_seat(walk->job, walk->process, comm);
	struct match_cursor **cursor;

	if (seat == NULL || !match_can_compare(source))
		return NULL;
	cursor = &walk->cursors[((size_t)(seat - walk->job->seats) -
				 walk->job->first_seat[walk->process]) *
					CURSORS +
				match_sequence(source, is_replay)];
	if (*cursor == NULL)
		*cursor = match_cursor_new(&walk->matches, seat, source, is_replay);
	return *cursor;
}

static bool align_visit(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct walk *walk = context;
	struct op_batch copy;

	(void)place;
	batch = job_gaps_batch(&walk->gaps, walk->process, batch, &copy);
	for (uint32_t i = 0; i < batch->rows; i++) {
		uint64_t kind = batch->column[OP_WORD_KIND][i];
		uint64_t state = batch->column[OP_WORD_STATE][i];
		struct match_op op = { .match = batch->column[OP_WORD_MATCH][i],
				       .signature = batch->column[OP_WORD_SIGNATURE][i],
				       .end_ns = batch->column[OP_WORD_DONE][i] };
		struct match_cursor *cursor;

		if (!match_is_synchronising((uint8_t)op_kind_names(kind)) || op.match == 0 ||
		    op.end_ns == 0 || op_state_flags(state) & OP_FLAG_PLACE_ROUGH)
			continue;
		cursor = cursor_of(walk, op_kind_comm(kind),
				   op_shown_source(op_state_source(state), op_state_flags(state)),
				   op_state_flags(state) & OP_FLAG_REPLAY);
		if (cursor != NULL)
			match_add(cursor, &op);
	}
	walk->done += batch->rows;
	if (walk->progress != NULL)
		walk->is_cancelled = !walk->progress(
			walk->expected ? (double)walk->done / (double)walk->expected : 0.5,
			walk->context);
	return !walk->is_cancelled && walk->matches.status == OK;
}

static enum status walk_process(struct walk *walk, size_t process)
{
	const uint32_t words = OP_WORD_BIT(OP_WORD_KIND) | OP_WORD_BIT(OP_WORD_STATE) |
			       OP_WORD_BIT(OP_WORD_MATCH) | OP_WORD_BIT(OP_WORD_SIGNATURE) |
			       OP_WORD_BIT(OP_WORD_DONE) | job_gaps_words(&walk->gaps);
	size_t seats = walk->job->first_seat[process + 1] - walk->job->first_seat[process];
	enum status status;

	walk->process = process;
	walk->cursors = calloc(seats * CURSORS + 1, sizeof(*walk->cursors));
	if (walk->cursors == NULL)
		return ERR_NO_SPACE;
	status = recording_each_batch(walk->job->recording->processes[process], words, align_visit,
				      walk, NULL);
	for (size_t i = 0; i < seats * CURSORS; i++)
		match_cursor_free(walk->cursors[i]);
	free(walk->cursors);
	if (walk->is_cancelled)
		return ERR_GONE;
	return status == OK ? walk->matches.status : status;
}

enum status align_make(struct align *align, const struct job *job, timeline_progress *progress,
		       void *context)
{
	struct walk walk = { .job = job, .progress = progress, .context = context };
	enum status status = match_init(&walk.matches, job, CLOCK_LIMIT);

	if (status == OK)
		status = job_gaps_init(&walk.gaps, job);

	*align = (struct align){ .count = 0 };
	for (size_t p = 0; p < job->recording->count; p++)
		for (size_t i = 0; i < job->recording->processes[p]->file_count; i++)
			walk.expected += job->recording->processes[p]->files[i].records;
	for (size_t p = 0; p < job->recording->count && status == OK; p++)
		status = walk_process(&walk, p);
	if (status == OK)
		status = align_solve(align, job, walk.matches.edges, walk.matches.edge_count);
	match_release(&walk.matches);
	job_gaps_release(&walk.gaps);
	return status;
}
