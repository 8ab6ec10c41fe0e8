#include "doctor/hang_words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "timeline/meet.h"

enum { NAMED = 12 }; /* ranks, or stretches of them, that a sentence names */

void hang_capital(char *text)
{
	if (text[0] >= 'a' && text[0] <= 'z')
		text[0] = (char)(text[0] - 'a' + 'A');
}

void hang_say_rank(char *text, size_t size, const struct hang_scene *scene, uint32_t seat)
{
	const struct job_rank *rank = hang_rank(scene, seat);

	text_append(text, size, rank->rank < 0 ? "process %.48s" : "rank %.48s", rank->label);
}

void hang_say_whole_rank(char *text, size_t size, const struct hang_scene *scene, uint32_t seat)
{
	const struct recording_process *process = hang_process(scene, seat);
	const struct job_rank *rank = hang_rank(scene, seat);

	hang_say_rank(text, size, scene, seat);
	text_append(text, size, " (%.60s, pid %" PRId64,
		    process->host[0] ? process->host : "host unknown",
		    process->pid_here > 0 ? process->pid_here : process->pid);
	if (rank->gpu >= 0)
		text_append(text, size, ", GPU %d", rank->gpu);
	text_append(text, size, ")");
}

void hang_say_operation(char *text, size_t size, const struct hang_scene *scene, uint32_t seat,
			const struct op_record *op)
{
	const struct job_comm *comm = hang_comm(scene, seat);
	uint32_t peer;

	text_append(text, size, "%.24s %" PRIu64,
		    recording_name(hang_process(scene, seat), OP_NAMES_FUNCTION, op->function),
		    op->match != 0 ? op->match : op->number);
	if (op->flags & OP_FLAG_REPLAY)
		text_append(text, size, " (a graph's replay)");
	if (op->peer < 0 || (op->function != OP_SEND && op->function != OP_RECV))
		return;
	text_append(text, size, op->function == OP_SEND ? " to " : " from ");
	peer = hang_member(comm, scene->job, op->peer);
	if (peer == HANG_NOBODY)
		text_append(text, size, "its rank %d", op->peer);
	else
		hang_say_rank(text, size, scene, peer);
}

void hang_say_held(char *text, size_t size, const struct hang_scene *scene, uint32_t seat)
{
	const struct hang_seat *of = &scene->seats[seat];
	const struct recording_flight *flight = of->front;

	if (flight == NULL && of->flight_count > 0)
		flight = &hang_flights(scene, seat)[of->flight_count - 1];
	if (flight != NULL)
		hang_say_operation(text, size, scene, seat, &flight->op);
	else
		text_append(text, size, "something");
	text_append(text, size, " of %.60s", hang_comm(scene, seat)->label);
}

void hang_say_call(char *text, size_t size, const struct recording_process *process,
		   const struct hang_call *call)
{
	text_append(text, size, "%.24s of %" PRIu64 " %.24s",
		    recording_name(process, OP_NAMES_FUNCTION, call->function), call->count,
		    recording_name(process, OP_NAMES_DATATYPE, call->datatype));
	if (call->root >= 0 && !meet_is_synchronising(call->function))
		text_append(text, size, " with root %d", call->root);
}

void hang_say_wait(char *text, size_t size, const struct hang_scene *scene, uint32_t seat,
		   const struct flight_wait *wait)
{
	/* The sentence says "rank %d" once, for the peer. */
	const char *sentence = flight_reason_text(wait->reason);
	const char *place = strstr(sentence, "rank %d");
	uint32_t peer = hang_member(hang_comm(scene, seat), scene->job, wait->peer);
	bool is_one;

	hang_say_rank(text, size, scene, seat);
	text_append(text, size, " %.*s", place ? (int)(place - sentence) : 80, sentence);
	if (place != NULL && peer != HANG_NOBODY)
		hang_say_rank(text, size, scene, peer);
	else if (place != NULL)
		text_append(text, size, "its rank %d", wait->peer);
	if (place != NULL)
		text_append(text, size, "%s", place + strlen("rank %d"));
	is_one = !(wait->channels[0] & (wait->channels[0] - 1)) && !wait->channels[1] &&
		 !wait->channels[2] && !wait->channels[3];
	text_append(text, size, is_one ? " on channel " : " on channels ");
	hang_say_channels(text, size, wait->channels);
	hang_say_for(text, size, scene, " for ",
		     hang_ago(scene, scene->job->seats[seat].process, wait->since_ns), "");
}

void hang_say_for(char *text, size_t size, const struct hang_scene *scene, const char *before,
		  uint64_t ns, const char *after)
{
	char time[UNITS_TEXT];

	if (!scene->is_guess)
		text_append(text, size, "%s%s%s", before, units_duration(time, ns), after);
}

void hang_say_wall(char *text, size_t size, uint64_t wall_ns)
{
	char time[UNITS_TEXT];

	if (wall_ns != 0)
		text_append(text, size, "%s UTC", units_date(time, wall_ns));
}

static bool has_channel(const uint64_t channels[4], int channel)
{
	return channel < 256 && channels[channel / 64] >> (channel % 64) & 1;
}

void hang_say_channels(char *text, size_t size, const uint64_t channels[4])
{
	bool is_first = true;

	for (int c = 0; c < 256; c++) {
		int last = c;

		if (!has_channel(channels, c))
			continue;
		while (has_channel(channels, last + 1))
			last++;
		text_append(text, size, last > c ? "%s%d-%d" : "%s%d", is_first ? "" : ",", c,
			    last);
		is_first = false;
		c = last;
	}
}

static int ascending(const void *one, const void *other)
{
	const uint32_t *a = one, *b = other;

	return *a < *b ? -1 : *a > *b;
}

/* Do both have a plain number, and follow each other? */
static bool is_next(const struct job *job, uint32_t a, uint32_t b)
{
	return job->ranks[a].rank >= 0 && job->ranks[a].attempt == 0 &&
	       job->ranks[b].attempt == 0 && job->ranks[a].group == job->ranks[b].group &&
	       job->ranks[b].rank == job->ranks[a].rank + 1;
}

/* Ranks are sorted by group and number, so their indices are, too. */
void hang_say_ranks(char *text, size_t size, const struct job *job, uint32_t *ranks, size_t count)
{
	size_t at = 0;

	qsort(ranks, count, sizeof(*ranks), ascending);
	for (size_t named = 0; at < count && named < NAMED; named++) {
		size_t last = at;

		while (last + 1 < count && is_next(job, ranks[last], ranks[last + 1]))
			last++;
		text_append(text, size, "%s%.24s", named > 0 ? ", " : "",
			    job->ranks[ranks[at]].label);
		if (last > at)
			text_append(text, size, "%s%.24s", last > at + 1 ? "-" : ", ",
				    job->ranks[ranks[last]].label);
		at = last + 1;
	}
	if (at < count)
		text_append(text, size, " and %zu more", count - at);
}
