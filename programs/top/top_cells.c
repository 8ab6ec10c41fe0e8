#include "programs/top/top_cells.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/op.h"
#include "common/text.h"
#include "output/recorded.h"
#include "programs/top/top_bars.h"
#include "programs/top/top_text.h"

#define LATE_NS UINT64_C(1000000000)
#define PUT(text, ...) text_format(text, TOP_CELL_TEXT, __VA_ARGS__)

/* ---- communicators --------------------------------------------------------------------------- */

static void ranks(char *text, const struct job_comm *comm)
{
	if (comm->nranks > 0)
		PUT(text, "%u/%d", comm->seat_count, comm->nranks);
	else
		PUT(text, "%u", comm->seat_count);
}

/* Of the operations that finished since the process started. */
static float timed_share(const struct live_sums *sums)
{
	return sums->operations > 0 ? (float)((double)sums->timed / (double)sums->operations) : NAN;
}

static void comm_text(const struct top_cell_of *cell, char *text)
{
	const struct live *live = cell->live;
	const struct job_comm *comm = &live->job.comms[cell->index];
	const struct live_history *history = &live->comms[cell->index].history;
	const struct live_point *point = top_model_point(live, history);

	switch (cell->column) {
	case TOP_COLUMN_COMM:
		PUT(text, "%s", comm->label);
		break;
	case TOP_COLUMN_JOB:
		PUT(text, "%s", live->job.groups[comm->group].name);
		break;
	case TOP_COLUMN_KIND:
		PUT(text, "%s", job_comm_kind_name(comm->kind));
		break;
	case TOP_COLUMN_RANKS:
		ranks(text, comm);
		break;
	case TOP_COLUMN_RATE:
		top_text_rate(text, point ? point->operations_per_s : NAN);
		break;
	case TOP_COLUMN_TIMED:
		top_text_share(text, timed_share(&live->comms[cell->index].sums));
		break;
	case TOP_COLUMN_BUSBW:
		top_text_bandwidth(text, point ? point->busbw : NAN);
		break;
	case TOP_COLUMN_WAIT:
		top_text_share(text, point ? point->wait_share : NAN);
		break;
	case TOP_COLUMN_OLDEST:
		top_text_age(text, top_model_oldest_ns(live, comm));
		break;
	case TOP_COLUMN_MINUTE:
		top_bars_minute(text, history, live->wall_ns, cell->width, cell->is_utf8);
		break;
	default:
		break;
	}
}

/* ---- members --------------------------------------------------------------------------------- */

/* Somebody is always the last: only who keeps the others waiting is worth a word. */
static bool is_late(const struct live *live, uint32_t index)
{
	const struct job_comm *comm = &live->job.comms[live->job.seats[index].comm];

	return live->seats[index].is_behind && top_model_oldest_ns(live, comm) >= LATE_NS;
}

static const char *state_of(const struct live *live, uint32_t index)
{
	const struct job_seat *at = &live->job.seats[index];
	const struct live_seat *seat = &live->seats[index];
	enum recording_life life = live->job.recording->processes[at->process]->life;

	if (life != RECORDING_ALIVE)
		return recording_life_name(life);
	if (seat->is_over)
		return "finalized";
	if (is_late(live, index))
		return "behind";
	if (live->comms[at->comm].straggler == index)
		return "others wait";
	return seat->wait_count > 0 ? "waits" : "";
}

static void seat_point_text(const struct top_cell_of *cell, char *text)
{
	const struct live *live = cell->live;
	const struct live_point *point = top_model_point(live, &live->seats[cell->index].history);

	switch (cell->column) {
	case TOP_COLUMN_RATE:
		top_text_rate(text, point ? point->operations_per_s : NAN);
		break;
	case TOP_COLUMN_BUSBW:
		top_text_bandwidth(text, point ? point->busbw : NAN);
		break;
	case TOP_COLUMN_WAIT:
		top_text_share(text, point ? point->wait_share : NAN);
		break;
	default:
		top_bars_share(text, point ? point->wait_share : NAN, cell->width, cell->is_utf8);
		break;
	}
}

static void seat_text(const struct top_cell_of *cell, char *text)
{
	const struct live *live = cell->live;
	const struct job_seat *at = &live->job.seats[cell->index];
	const struct live_seat *seat = &live->seats[cell->index];
	const struct job_rank *rank = &live->job.ranks[at->rank];
	const struct recording_process *process = live->job.recording->processes[at->process];

	switch (cell->column) {
	case TOP_COLUMN_RANK:
		PUT(text, "%s", rank->label);
		break;
	case TOP_COLUMN_MEMBER:
		PUT(text, at->comm_rank < 0 ? "?" : "%d", at->comm_rank);
		break;
	case TOP_COLUMN_HOST:
		PUT(text, "%s", process->host);
		break;
	case TOP_COLUMN_PID:
		PUT(text, "%" PRId64, process->pid_here > 0 ? process->pid_here : process->pid);
		break;
	case TOP_COLUMN_GPU:
		PUT(text, rank->gpu < 0 ? "?" : "%d", rank->gpu);
		break;
	case TOP_COLUMN_TIMED:
		top_text_share(text, timed_share(&seat->sums));
		break;
	case TOP_COLUMN_FLIGHTS:
		PUT(text, seat->in_flight == 0 ? "-" : "%u", seat->in_flight);
		break;
	case TOP_COLUMN_OLDEST:
		top_text_age(text, seat->is_over ? 0 : seat->oldest_age_ns);
		break;
	case TOP_COLUMN_STATE:
		PUT(text, "%s", state_of(live, cell->index));
		break;
	default:
		seat_point_text(cell, text);
		break;
	}
}

/* ---- operations in flight -------------------------------------------------------------------- */

/* As notices number them: collectives as all ranks do. */
static void operation(const struct recording_process *process,
		      const struct recording_flight *flight, char *text)
{
	char words[FLIGHT_WORDS];

	PUT(text, "%s %" PRIu64, flight_words_operation(process, flight, words),
	    flight->op.match > 0 ? flight->op.match : flight->op.number);
}

static bool is_killed(const struct live *live, uint32_t index)
{
	const struct recording *recording = live->job.recording;

	return recording->processes[live->job.seats[index].process]->life == RECORDING_KILLED;
}

/* A member that died, or has not issued the collective which this one is in: whatever the network
 * shows, it is this that is waited for. UINT32_MAX none. */
static uint32_t absent_member(const struct live *live, uint32_t index)
{
	const struct job_comm *comm = &live->job.comms[live->job.seats[index].comm];
	uint32_t found = UINT32_MAX;

	if (live->seats[index].oldest->op.match == 0 || live->seats[index].is_over)
		return UINT32_MAX;
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t other = comm->seats[i];

		if (is_killed(live, other))
			return other;
		if (found == UINT32_MAX && other != index && live->seats[other].is_behind)
			found = other;
	}
	return found;
}

static void waits_for(const struct live *live, uint32_t index, char *text)
{
	static const char heading[] = "waits for ";
	uint32_t absent;
	const struct live_seat *seat = &live->seats[index];
	char words[FLIGHT_WORDS];

	absent = absent_member(live, index);
	if (absent != UINT32_MAX) {
		PUT(text, "rank %s, which %s", live->job.ranks[live->job.seats[absent].rank].label,
		    is_killed(live, absent) ? "died" : "has not issued it");
		return;
	}
	if (seat->wait_count == 0) {
		top_cells_detail(live, index, 0, text);
		return;
	}
	/* The column says so already. */
	flight_words_wait(&seat->waits[0], words);
	PUT(text, "%s%s",
	    strncmp(words, heading, strlen(heading)) == 0 ? words + strlen(heading) : words,
	    seat->wait_count > 1 ? ", and more" : "");
}

static void flight_text(const struct top_cell_of *cell, char *text)
{
	const struct live *live = cell->live;
	const struct job_seat *at = &live->job.seats[cell->index];
	const struct live_seat *seat = &live->seats[cell->index];
	const struct recording_process *process = live->job.recording->processes[at->process];
	char number[UNITS_TEXT];

	switch (cell->column) {
	case TOP_COLUMN_AGE:
		top_text_age(text, seat->oldest_age_ns);
		break;
	case TOP_COLUMN_COMM:
		PUT(text, "%s", live->job.comms[at->comm].label);
		break;
	case TOP_COLUMN_RANK:
		PUT(text, "%s", live->job.ranks[at->rank].label);
		break;
	case TOP_COLUMN_OPERATION:
		operation(process, seat->oldest, text);
		break;
	case TOP_COLUMN_SIZE:
		PUT(text, "%s",
		    seat->oldest->op.bytes == OP_BYTES_UNKNOWN
			    ? "?"
			    : units_bytes(number, seat->oldest->op.bytes));
		break;
	case TOP_COLUMN_OP_STATE:
		PUT(text, "%s",
		    seat->is_over ? state_of(live, cell->index)
				  : op_state_name(seat->oldest->op.state));
		break;
	case TOP_COLUMN_WAITS_FOR:
		waits_for(live, cell->index, text);
		break;
	default:
		break;
	}
}

const char *top_cells_detail(const struct live *live, uint32_t index, unsigned int line,
			     char text[static TOP_CELL_TEXT])
{
	const struct job_seat *at = &live->job.seats[index];
	const struct live_seat *seat = &live->seats[index];
	const struct recording_process *process = live->job.recording->processes[at->process];
	char words[FLIGHT_WORDS], age[TOP_TEXT_NUMBER];
	const struct flight_wait *wait;
	uint64_t now_ns;

	text[0] = '\0';
	if (seat->oldest == NULL || line > seat->wait_count || line > LIVE_WAITS_MAX)
		return NULL;
	if (line == 0) {
		PUT(text, "%s", flight_words_kernel(process, seat->oldest, words));
		return text;
	}
	wait = &seat->waits[line - 1];
	now_ns = flight_since_ns(seat->oldest) + seat->oldest_age_ns;
	PUT(text, "%s", flight_words_wait(wait, words));
	if (now_ns > wait->since_ns)
		PUT(text, "%s for %s", words, top_text_age(age, now_ns - wait->since_ns));
	return text;
}

const char *top_cells_summary(const struct live *live, uint32_t index,
			      char text[static TOP_CELL_TEXT])
{
	const struct job_seat *at = &live->job.seats[index];
	char what[TOP_CELL_TEXT], waits[TOP_CELL_TEXT];

	operation(live->job.recording->processes[at->process], live->seats[index].oldest, what);
	waits_for(live, index, waits);
	PUT(text, "%s of %s%s%s", what, live->job.comms[at->comm].label,
	    waits[0] ? ", waits for: " : "", waits);
	return text;
}

/* --------------------------------------------------------------------------------------------- */

const char *top_cells_text(const struct top_cell_of *cell, char text[static TOP_CELL_TEXT])
{
	text[0] = '\0';
	if (cell->pane == TOP_COMMS)
		comm_text(cell, text);
	else if (cell->pane == TOP_SEATS)
		seat_text(cell, text);
	else if (cell->pane == TOP_FLIGHTS)
		flight_text(cell, text);
	return text;
}

static enum top_style age_style(const struct live *live, uint64_t age_ns)
{
	if (age_ns >= live->limits.hang_ns)
		return TOP_BAD;
	return age_ns >= live->limits.lag_ns ? TOP_WARNING : TOP_PLAIN;
}

static enum top_style seat_style(const struct top_cell_of *cell)
{
	const struct live *live = cell->live;
	const struct live_seat *seat = &live->seats[cell->index];
	const struct job_seat *at = &live->job.seats[cell->index];

	if (is_killed(live, cell->index))
		return cell->column == TOP_COLUMN_STATE ? TOP_BAD : TOP_FAINT;
	if (seat->is_over || cell->column == TOP_COLUMN_WAIT_BAR)
		return TOP_FAINT;
	if (cell->column == TOP_COLUMN_STATE)
		return is_late(live, cell->index) || live->comms[at->comm].straggler == cell->index
			       ? TOP_WARNING
			       : TOP_PLAIN;
	if (cell->column == TOP_COLUMN_OLDEST || cell->column == TOP_COLUMN_AGE)
		return age_style(live, seat->oldest_age_ns);
	return TOP_PLAIN;
}

enum top_style top_cells_style(const struct top_cell_of *cell)
{
	if (cell->pane == TOP_SEATS || cell->pane == TOP_FLIGHTS)
		return seat_style(cell);
	if (cell->pane == TOP_COMMS && cell->column == TOP_COLUMN_OLDEST)
		return age_style(
			cell->live,
			top_model_oldest_ns(cell->live, &cell->live->job.comms[cell->index]));
	return TOP_PLAIN;
}
