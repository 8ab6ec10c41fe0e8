/* Who called what, side by side. */
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "doctor/hang_tell.h"
#include "doctor/hang_words.h"

#define SAY text, sizeof(text)

static void say_side(char *text, size_t size, const struct hang_scene *scene,
		     const struct hang_side_of_split *side)
{
	hang_say_rank(text, size, scene, side->first);
	if (side->count > 1)
		text_append(text, size, " and %u other%s", side->count - 1,
			    side->count == 2 ? "" : "s");
	text_append(text, size, " called ");
	if (side->call.is_known)
		hang_say_call(text, size, hang_process(scene, side->first), &side->call);
	else
		text_append(text, size, "something that is not recorded any more");
}

static void say_title(const struct hang_scene *scene, const struct hang_split *split, bool has_odd,
		      char *text, size_t size)
{
	const struct hang_side_of_split *usual = &split->sides[0];
	const struct hang_side_of_split *odd = &split->sides[split->side_count - 1];
	const char *label = scene->job->comms[split->comm].label;

	if (!has_odd) {
		text_append(text, size,
			    "ranks of %.40s disagree on collective %" PRIu64 ", half against half",
			    label, split->number);
	} else {
		hang_say_rank(text, size, scene, odd->first);
		if (odd->count > 1)
			text_append(text, size, " and %u more disagree", odd->count - 1);
		else
			text_append(text, size, " disagrees");
		text_append(text, size, " with %u rank%s on collective %" PRIu64 " of %.40s",
			    usual->count, usual->count == 1 ? "" : "s", split->number, label);
	}
	if (split->rule[0] != '\0')
		text_append(text, size, ": %s", split->rule);
}

static void tell_rule(struct hang_tale *tale, const struct hang_split *split)
{
	if (strcmp(split->rule, "order") == 0)
		verdict_evidence(tale->verdict,
				 "Each side makes the other's call a little later: the "
				 "same calls in another order.");
	if (!split->is_first)
		verdict_missing(tale->verdict,
				"They differ at collective %" PRIu64
				" or before: earlier calls are not to be seen any more.",
				split->number);
}

/* For how long nobody there has called anything: a hang, as far as anybody can tell. */
static void tell_no_calls(struct hang_tale *tale, uint32_t c)
{
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	uint64_t still_ns = UINT64_MAX;
	char time[UNITS_TEXT];

	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (!scene->seats[comm->seats[i]].is_over &&
		    scene->seats[comm->seats[i]].still_ns < still_ns)
			still_ns = scene->seats[comm->seats[i]].still_ns;
	tale->verdict->for_ns = still_ns;
	verdict_evidence(tale->verdict, "No rank of %.60s has made a call for %s.", comm->label,
			 units_duration(time, still_ns));
}

/* For how long a member that goes on is in its operation; 0: nobody is in one. */
static uint64_t oldest_ns(const struct hang_scene *scene, uint32_t c)
{
	const struct job_comm *comm = &scene->job->comms[c];
	uint64_t longest_ns = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct hang_seat *seat = &scene->seats[comm->seats[i]];

		if (seat->front != NULL && !seat->is_over && seat->in_ns > longest_ns)
			longest_ns = seat->in_ns;
	}
	return longest_ns;
}

static bool is_any_unseen(const struct hang_scene *scene, uint32_t c)
{
	const struct job_comm *comm = &scene->job->comms[c];

	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (scene->seats[comm->seats[i]].is_blind)
			return true;
	return false;
}

void hang_tell_split(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_split *split = &tale->graph->splits[tale->lead->split];
	bool has_odd = tale->lead->seat != HANG_NOBODY;
	struct verdict *verdict = tale->verdict;
	const struct hang_side_of_split *usual = &split->sides[0];
	char text[600] = "", oldest[UNITS_TEXT], limit[UNITS_TEXT];

	say_title(scene, split, has_odd, SAY);
	verdict_title(verdict, "%s", text);
	text_copy(verdict->rule, sizeof(verdict->rule), split->rule);
	verdict->number = split->number;
	if (has_odd) {
		verdict->peer = hang_rank(scene, usual->first)->rank;
		text_copy(verdict->peer_label, sizeof(verdict->peer_label),
			  hang_rank(scene, usual->first)->label);
		text_copy(verdict->peer_host, sizeof(verdict->peer_host),
			  hang_process(scene, usual->first)->host);
	}
	for (uint32_t i = split->side_count; i-- > 0;) {
		text[0] = '\0';
		say_side(SAY, scene, &split->sides[i]);
		hang_capital(text);
		verdict_evidence(verdict, "%s.", text);
	}
	if (usual->call.is_known)
		text_copy(verdict->function, sizeof(verdict->function),
			  recording_name(hang_process(scene, usual->first), OP_NAMES_FUNCTION,
					 usual->call.function));
	tell_rule(tale, split);
	if (hang_node_hangs(scene, tale->lead->node)) {
		hang_tell_stalled(tale, split->number);
	} else if (hang_is_still(scene, split->comm)) {
		tell_no_calls(tale, split->comm);
	} else if (oldest_ns(scene, split->comm) > 0) {
		verdict->for_ns = 0;
		verdict_evidence(verdict,
				 "Operations of it are in flight for %s: a hang is told after %s.",
				 units_duration(oldest, oldest_ns(scene, split->comm)),
				 units_duration(limit, scene->hang_ns));
	} else if (is_any_unseen(scene, split->comm)) {
		verdict->for_ns = 0;
		verdict_missing(verdict,
				"Nothing is shown of the execution there: whether ranks hang in "
				"it, or data is mixed up, is not visible.");
	} else {
		verdict->for_ns = 0;
		verdict_evidence(
			verdict,
			"It does not hang: NCCL does not notice, and data may be mixed up.");
	}
}
