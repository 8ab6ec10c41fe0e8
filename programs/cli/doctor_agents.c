/*
 * Agents: each gives one moment of its processes (docs/AGENT.md, /api/v1/snapshot), and all of them together
 * are the job. One that does not answer is something to be told, not a failure.
 */
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "format/region_read.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/cli_progress.h"
#include "programs/cli/doctor_case.h"
#include "programs/cli/doctor_fetch.h"

/*
 * Finished operations of each process, to see who comes late: of a communicator 128 are needed that all ranks have,
 * and agents answer at moments that may be a second apart. About 36 bytes each; fewer of more than 64 agents, so
 * that the answers of 512 agents with eight processes each are some 80 MB together.
 */
enum { OPERATIONS_MOST = 4096, OPERATIONS_LEAST = 512, OPERATIONS_OF_ALL = 1 << 18 };
enum { SNAPSHOT_BYTES_MOST = 256 << 20, PATH_MOST = 64 };

struct agents {
	struct doctor_case *look;
	struct cli_progress progress;
	size_t answered;
};

/* What an HTTP status means here; NULL: fine. */
static const char *status_problem(int status, char text[static 80])
{
	switch (status) {
	case 200:
		return NULL;
	case 401:
	case 403:
		text_format(text, 80, "it wants a password or token (HTTP %d): --auth FILE",
			    status);
		return text;
	case 404:
		return "it has no snapshots (HTTP 404): no agent, or an older one";
	case 503:
		return "it is too busy (HTTP 503): ask again";
	default:
		text_format(text, 80, "it answers HTTP %d", status);
		return text;
	}
}

/* An answer of which nothing could be read is none, and told with its agent. Other troubles are told as those of
 * files are, all of them. */
static void take_troubles(struct doctor_case *look, size_t source, size_t before, size_t files)
{
	struct recording *recording = &look->input.recording;
	const char *what;

	if (recording->trouble_count == before || recording->files_read > files)
		return;
	what = recording->troubles[before].what;
	doctor_source_problem(look, source, what, strlen(what));
	while (recording->trouble_count > before)
		free(recording->troubles[--recording->trouble_count].path);
}

static void take_answer(void *context, size_t index, int status, const char *bytes, size_t length)
{
	struct agents *agents = context;
	struct doctor_case *look = agents->look;
	struct recording *recording = &look->input.recording;
	size_t before = recording->trouble_count, files = recording->files_read;
	const char *problem;
	char text[80];

	cli_progress_at(&agents->progress, ++agents->answered);
	if (status == 0) {
		doctor_source_problem(look, index, bytes, length);
		return;
	}
	problem = status_problem(status, text);
	if (problem) {
		doctor_source_problem(look, index, problem, strlen(problem));
		return;
	}
	if (recording_add_memory(recording, look->sources[index].name, bytes, length, 0) != OK)
		cli_no_memory();
	take_troubles(look, index, before, files);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void make_sources(struct doctor_case *look, const struct fetch_targets *targets)
{
	look->asked = "agents";
	look->sources = cli_realloc(NULL, (targets->count + 1) * sizeof(*look->sources));
	look->problems = cli_realloc(NULL, (targets->count + 1) * sizeof(*look->problems));
	look->source_count = targets->count;
	for (size_t i = 0; i < targets->count; i++) {
		look->sources[i] = (struct hang_source){ .name = targets->list[i].name };
		look->problems[i] = NULL;
	}
	if (targets->count == 1)
		text_format(look->from, sizeof(look->from), "the agent %s", targets->list[0].name);
	else
		text_format(look->from, sizeof(look->from), "%zu agents", targets->count);
}

static size_t operations_wanted(size_t agents)
{
	size_t share = OPERATIONS_OF_ALL / (agents > 0 ? agents : 1), wanted = OPERATIONS_MOST;

	/* In the agent's steps: it would round anything else up. */
	while (wanted > share && wanted > OPERATIONS_LEAST)
		wanted /= 2;
	return wanted;
}

static struct doctor_request *make_requests(const struct fetch_targets *targets)
{
	struct doctor_request *requests = cli_realloc(NULL, targets->count * sizeof(*requests));
	size_t operations = operations_wanted(targets->count);

	for (size_t i = 0; i < targets->count; i++) {
		const struct fetch_target *target = &targets->list[i];
		size_t size = strlen(target->url) + PATH_MOST;
		char *url = cli_realloc(NULL, size);

		text_format(url, size, "%s/api/v1/snapshot?operations=%zu", target->url,
			    operations);
		requests[i] = (struct doctor_request){ url, target->socket };
	}
	return requests;
}

/* Agents that answer to everybody keep variables to themselves. */
static void note_hidden(struct doctor_case *look)
{
	const struct recording *recording = &look->input.recording;
	struct verdict *verdict;
	size_t hidden = 0;

	for (size_t i = 0; i < recording->count; i++)
		hidden +=
			info_get_number(recording->processes[i]->info,
					recording->processes[i]->info_bytes, "env_hidden", 0) == 1;
	if (hidden == 0)
		return;
	verdict = verdicts_add(&look->verdicts, VERDICT_BLIND, VERDICT_NOTE);
	text_copy(verdict->rule, sizeof(verdict->rule), "environment");
	verdict_title(verdict, "variables of %zu processes were not seen", hidden);
	verdict_evidence(verdict, "agents leave them out for whoever needs no password");
	verdict_missing(verdict, "settings of NCCL that differ between ranks or are wrong");
	verdict_advice(verdict, "let agents ask for a password (--web-config), and give it with "
				"--auth FILE");
}

int doctor_read_agents(struct doctor_case *look)
{
	const struct doctor_options *options = look->options;
	const struct fetch_targets *targets = &options->targets;
	struct doctor_request *requests = make_requests(targets);
	struct agents agents = { .look = look };
	struct doctor_fetch how = {
		.parallel = options->parallel,
		.timeout_ns = options->timeout_ns,
		.limit_bytes = SNAPSHOT_BYTES_MOST,
		.auth = options->auth,
		.ca_file = options->ca_file,
		.is_insecure = options->is_insecure,
		.stop_fd = look->stop_fd,
	};
	enum status status;
	int code;

	make_sources(look, targets);
	cli_progress_start(&agents.progress, "doctor", "agents", targets->count);
	code = doctor_fetch(&how, requests, targets->count, take_answer, &agents);
	cli_progress_end(&agents.progress);
	for (size_t i = 0; i < targets->count; i++)
		free((char *)requests[i].url);
	free(requests);
	if (code != 0)
		return code;
	status = recording_finish(&look->input.recording);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	note_hidden(look);
	return status == OK ? 0
			    : cli_error("cannot join what agents sent: %s", status_text(status));
}
