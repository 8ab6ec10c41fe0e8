/* Who called what, side by side. */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
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

void hang_tell_split(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_split *split = &tale->graph->splits[tale->lead->split];
	bool has_odd = tale->lead->seat != HANG_NOBODY;
	struct verdict *verdict = tale->verdict;
	const struct hang_side_of_split *usual = &split->sides[0];
	char text[600] = "";

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
	} else {
		verdict->for_ns = 0;
		verdict_evidence(verdict,
				 "It does not stand still: NCCL does not notice, and data may "
				 "be mixed up.");
	}
}
