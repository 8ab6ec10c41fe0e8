#include "programs/cli/verify_show.h"

#include <string.h>

#include "common/nccl_interface.h"
#include "common/text.h"
#include "programs/cli/cli_process.h"
#include "view/table.h"

/* "2.24-2.26": the first release of the one and the last of the other. */
const char *verify_releases(unsigned int first, unsigned int last, char text[VERIFY_RELEASES])
{
	static const char *const from[] = { "?",    "2.23", "2.24", "2.26",
					    "2.27", "2.28", "2.29", "2.31" };
	static const char *const to[] = { "?",	  "2.23", "2.25", "2.26",
					  "2.27", "2.28", "2.30", "later" };

	if (first > OP_INTERFACES || last > OP_INTERFACES)
		text_copy(text, VERIFY_RELEASES, "?");
	else if (last == OP_INTERFACES)
		text_format(text, VERIFY_RELEASES, "%s and later", from[first]);
	else if (strcmp(from[first], to[last]) == 0)
		text_copy(text, VERIFY_RELEASES, from[first]);
	else
		text_format(text, VERIFY_RELEASES, "%s to %s", from[first], to[last]);
	return text;
}

/* Policies of releases that differ, in order. */
static const struct kernel_policy *next_policy(const struct kernel_policy *policy)
{
	return kernel_policy_of(policy != NULL ? policy->last + 1u : 1);
}

static const char *policy_word(unsigned int events)
{
	return events == KERNEL_EVENTS_ABSENT ? "none exist" : kernel_events_name(events);
}

static void kernel_policies_text(struct sink *sink, unsigned int width)
{
	const struct kernel_policy *policy = NULL;
	char releases[VERIFY_RELEASES], line[512], head[VERIFY_RELEASES + 16];

	sink_text(sink, "\nKernel events (GPU times) requested by default, by NCCL's release:\n");
	while ((policy = next_policy(policy)) != NULL) {
		text_format(head, sizeof(head), "  %-16s ",
			    verify_releases(policy->first, policy->last, releases));
		text_format(line, sizeof(line), "%s: %s%s%s", policy_word(policy->by_default),
			    policy->why, policy->risk[0] ? ". With RINGSIDE_EVENTS=kernel: " : "",
			    policy->risk);
		table_wrap(sink, line, head, 19, width);
	}
}

static void kernel_policies_json(struct json *json)
{
	const struct kernel_policy *policy = NULL;
	char releases[VERIFY_RELEASES];

	json_put_array(json, "kernel_events");
	while ((policy = next_policy(policy)) != NULL) {
		json_object(json);
		json_put_string(json, "nccl",
				verify_releases(policy->first, policy->last, releases));
		json_put_string(json, "default", policy_word(policy->by_default));
		json_put_string(json, "default_without_allgatherv",
				policy_word(policy->no_allgatherv));
		json_put_string(json, "why", policy->why);
		cli_json_text_or_null(json, "risk", policy->risk);
		json_end(json);
	}
	json_end(json);
}

void verify_blind_text(struct sink *sink, unsigned int width)
{
	const struct op_blind_spot *spot;
	char releases[VERIFY_RELEASES], head[VERIFY_RELEASES + 16];

	sink_text(sink, "What NCCL does not show to any profiler plugin, by its release:\n");
	for (size_t i = 0; (spot = op_blind_spot(0, i)) != NULL; i++) {
		text_format(head, sizeof(head), "  %-16s ",
			    verify_releases(spot->first, spot->last, releases));
		table_wrap(sink, spot->sentence, head, 19, width);
	}
	kernel_policies_text(sink, width);
}

void verify_blind_spot_json(struct json *json, unsigned int interface, size_t index)
{
	const struct op_blind_spot *spot = op_blind_spot(interface, index);
	char releases[VERIFY_RELEASES];

	json_object(json);
	json_put_string(json, "name", spot->name);
	json_put_unsigned(json, "first_interface", spot->first);
	json_put_unsigned(json, "last_interface", spot->last);
	json_put_string(json, "nccl", verify_releases(spot->first, spot->last, releases));
	json_put_string(json, "sentence", spot->sentence);
	json_end(json);
}

void verify_blind_json(struct sink *sink)
{
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	json_put_array(&json, "blind_spots");
	for (size_t i = 0; op_blind_spot(0, i) != NULL; i++)
		verify_blind_spot_json(&json, 0, i);
	json_end(&json);
	kernel_policies_json(&json);
	json_end(&json);
	json_line(&json);
}

bool verify_has_interface(const struct verify *verify, unsigned int interface)
{
	for (size_t i = 0; i < verify->count; i++) {
		const struct recording_process *process = verify->processes[i].process;

		if (process->interface == interface)
			return true;
		for (size_t j = 0; j < process->comm_count; j++)
			if (process->comms[j].info.interface == interface)
				return true;
	}
	return false;
}
