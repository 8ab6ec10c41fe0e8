/*
 * Processes of other nodes, through their agents: each hands out snapshots of its processes (/api/v1/snapshot). One
 * that does not answer is something that the archive says, not a failure.
 */
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "doctor/coverage.h"
#include "programs/cli/bundle_parts.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/doctor_fetch.h"
#include "programs/cli/doctor_options.h"
#include "view/json.h"

enum { ANSWER_MOST = 256 << 20, OPERATIONS_MOST = 20000 };

/* ---- options: the same as the doctor's, and parsed by it --------------------------------------- */

void bundle_agents_say(struct bundle_agents *agents, const char *option, const char *value)
{
	if (agents->count + 2 > BUNDLE_AGENT_WORDS)
		return;
	agents->words[agents->count++] = option;
	if (value)
		agents->words[agents->count++] = value;
}

/* ---- answers ---------------------------------------------------------------------------------- */

struct answers {
	struct json *asked; /* agents.json: who was asked, and who did not answer */
	struct bundle_archive *archive;
	struct recording *recording;
	const struct fetch_targets *targets;
	size_t good;
};

static void take_answer(void *context, size_t index, int status, const char *bytes, size_t length)
{
	struct answers *answers = context;
	struct recording *recording = answers->recording;
	const char *name = answers->targets->list[index].name;
	size_t before = recording->trouble_count, files = recording->files_read;
	char problem[300] = "";

	if (status == 0) {
		text_from_field(problem, sizeof(problem), bytes, length);
		bundle_gap(answers->archive, name, "this agent does not answer: %s", problem);
	} else if (status != 200) {
		text_format(problem, sizeof(problem), "it answers HTTP %d%s", status,
			    status == 401 || status == 403 ? ": --auth FILE" : "");
		bundle_gap(answers->archive, name, "this agent did not help: %s", problem);
	} else {
		if (recording_add_memory(recording, name, bytes, length, 0) != OK)
			cli_no_memory();
		/* As the doctor takes it: an answer of which nothing could be read is none. */
		if (recording->trouble_count > before && recording->files_read == files)
			text_copy(problem, sizeof(problem), recording->troubles[before].what);
		answers->good++;
	}
	json_object(answers->asked);
	json_put_string(answers->asked, "name", name);
	json_put_string(answers->asked, "problem", problem[0] ? problem : NULL);
	json_end(answers->asked);
}

/* What agents left out is not there, either. */
static void tell_left_out(struct bundle_archive *archive, const struct recording *recording)
{
	struct agent_notes notes;

	if (agent_notes_read(&notes, recording) != OK)
		cli_no_memory();
	for (size_t i = 0; i < notes.gap_count; i++)
		bundle_gap(archive, notes.gaps[i].host, "%s", notes.gaps[i].text);
	if (notes.gaps_left_out > 0)
		bundle_gap(archive, "agents", "and %zu more of what they left out",
			   notes.gaps_left_out);
	agent_notes_release(&notes);
}

static struct doctor_request *requests_of(const struct fetch_targets *targets, size_t operations)
{
	struct doctor_request *list = cli_realloc(NULL, (targets->count + 1) * sizeof(*list));

	for (size_t i = 0; i < targets->count; i++) {
		size_t size = strlen(targets->list[i].url) + 80;
		char *url = cli_realloc(NULL, size);

		text_format(url, size, "%s/api/v1/snapshot?operations=%zu", targets->list[i].url,
			    operations);
		list[i] = (struct doctor_request){ url, targets->list[i].socket };
	}
	return list;
}

/* Who was asked becomes a note of the recording, as if an archive had held it. */
static void keep_asked(struct recording *recording, struct sink *note)
{
	if (note->status != OK ||
	    recording_add_note(recording, "agents.json", sink_string(note), note->used) != OK)
		cli_no_memory();
}

static int fetch_all(struct answers *answers, const struct doctor_options *options,
		     size_t operations)
{
	struct doctor_request *requests = requests_of(answers->targets, operations);
	struct doctor_fetch how = { .parallel = options->parallel,
				    .timeout_ns = options->timeout_ns,
				    .limit_bytes = ANSWER_MOST,
				    .auth = options->auth,
				    .ca_file = options->ca_file,
				    .is_insecure = options->is_insecure,
				    .stop_fd = -1 };
	struct json asked;
	struct sink note;
	int code;

	sink_init_memory(&note);
	json_init(&asked, &note);
	json_object(&asked);
	json_put_array(&asked, "agents");
	answers->asked = &asked;
	code = doctor_fetch(&how, requests, answers->targets->count, take_answer, answers);
	json_end(&asked);
	json_end(&asked);
	json_line(&asked);
	keep_asked(answers->recording, &note);
	sink_release(&note);
	for (size_t i = 0; i < answers->targets->count; i++)
		free((char *)requests[i].url);
	free(requests);
	return code;
}

int bundle_read_agents(struct bundle_archive *archive, const struct bundle_agents *agents,
		       size_t operations, struct recording *recording)
{
	char *words[BUNDLE_AGENT_WORDS + 2] = { (char *)"doctor" };
	struct doctor_options options;
	struct answers answers = { .archive = archive,
				   .recording = recording,
				   .targets = &options.targets };
	int code;

	for (size_t i = 0; i < agents->count; i++)
		words[i + 1] = (char *)agents->words[i];
	if (operations > OPERATIONS_MOST) {
		bundle_gap(archive, "snapshots",
			   "agents hand out %d operations of a process at most, --operations asks "
			   "for more",
			   OPERATIONS_MOST);
		operations = OPERATIONS_MOST;
	}
	code = doctor_options_parse(&options, (int)agents->count + 1, words);
	if (code == -1)
		code = fetch_all(&answers, &options, operations);
	if (code == 0 && answers.good == 0)
		code = cli_error("none of %zu agents answers: %s", options.targets.count,
				 archive->gaps.count > 0
					 ? archive->gaps.list[archive->gaps.count - 1].text
					 : "?");
	if (code == 0)
		tell_left_out(archive, recording);
	if (code == 0 && recording_finish(recording) != OK)
		cli_no_memory();
	doctor_options_release(&options);
	return code;
}
