/* Prometheus: a fixed list of queries (doctor/prom.h), asked through ringside-fetch. */
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "doctor/prom.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/doctor_case.h"
#include "programs/cli/doctor_fetch.h"

enum { QUERIES_MOST = 256, PARALLEL_MOST = 4, FAILURES_TOLD = 8 };

struct queries {
	struct doctor_case *look;
	char *urls[QUERIES_MOST];
	struct doctor_request requests[QUERIES_MOST];
	size_t count;
	bool is_needed_missing;
	size_t failures;
};

static void fail(struct queries *queries, size_t index, const char *why, size_t length)
{
	const char *name = prom_name(queries->look->prom, index);
	bool is_needed = index < PROM_NEEDED;

	/* The first that is needed says why there is no answer at all; the others would repeat it. */
	if (is_needed && !queries->is_needed_missing)
		cli_error("%s: %s: %.*s", queries->look->options->prometheus, name, (int)length,
			  why);
	queries->is_needed_missing |= is_needed;
	if (!is_needed && queries->failures++ < FAILURES_TOLD)
		doctor_note_failure(queries->look, name, why, length);
}

static void take_answer(void *context, size_t index, int status, const char *bytes, size_t length)
{
	struct queries *queries = context;
	char why[PROM_WHY_SIZE] = "";

	if (status == 0) {
		fail(queries, index, bytes, length);
		return;
	}
	if (status == 401 || status == 403) {
		text_format(why, sizeof(why), "it wants a password or token (HTTP %d): --auth FILE",
			    status);
		fail(queries, index, why, strlen(why));
		return;
	}
	if (prom_take(queries->look->prom, index, bytes, length, why, sizeof(why)) != OK)
		fail(queries, index, why, strlen(why));
}

static void make_requests(struct queries *queries)
{
	const char *base = queries->look->options->prometheus, *path;
	size_t length = strlen(base);

	while (length > 0 && base[length - 1] == '/')
		length--;
	while (queries->count < QUERIES_MOST &&
	       (path = prom_path(queries->look->prom, queries->count)) != NULL) {
		size_t size = length + strlen(path) + 1;
		char *url = cli_realloc(NULL, size);

		text_format(url, size, "%.*s%s", (int)length, base, path);
		queries->urls[queries->count] = url;
		queries->requests[queries->count++] = (struct doctor_request){ .url = url };
	}
}

static void copy_sources(struct doctor_case *look)
{
	const struct hang_source *sources = prom_sources(look->prom, &look->source_count);

	look->asked = "agents that Prometheus scrapes";
	look->sources = cli_realloc(NULL, (look->source_count + 1) * sizeof(*look->sources));
	if (look->source_count > 0)
		memcpy(look->sources, sources, look->source_count * sizeof(*look->sources));
}

static int ask(struct doctor_case *look, struct queries *queries)
{
	const struct doctor_options *options = look->options;
	struct doctor_fetch how = {
		.parallel = options->parallel < PARALLEL_MOST ? options->parallel : PARALLEL_MOST,
		/* One query looks at all ranks: it may take longer than an agent. */
		.timeout_ns = options->timeout_ns * 6,
		.limit_bytes = PROM_ANSWER_MAX,
		.auth = options->auth,
		.ca_file = options->ca_file,
		.is_insecure = options->is_insecure,
		.stop_fd = look->stop_fd,
	};
	int code;

	make_requests(queries);
	code = doctor_fetch(&how, queries->requests, queries->count, take_answer, queries);
	for (size_t i = 0; i < queries->count; i++)
		free(queries->urls[i]);
	return code;
}

int doctor_read_prometheus(struct doctor_case *look)
{
	const struct prom_options options = {
		.job = look->options->job,
		.hang_ns = look->options->hang_ns,
		.window_s = (unsigned int)(look->options->window_ns / 1000000000),
		.past_s = (unsigned int)(look->options->past_ns / 1000000000),
	};
	struct queries *queries = cli_realloc(NULL, sizeof(*queries));
	bool is_answered;
	int code;

	*queries = (struct queries){ .look = look };
	text_format(look->from, sizeof(look->from), "Prometheus at %s", look->options->prometheus);
	look->prom = prom_new(&options);
	if (look->prom == NULL)
		cli_no_memory();
	code = ask(look, queries);
	is_answered = !queries->is_needed_missing;
	free(queries);
	if (code != 0)
		return code;
	if (!is_answered)
		return CLI_EXIT_TROUBLE;
	if (prom_finish(look->prom, &look->input.recording) != OK)
		cli_no_memory();
	copy_sources(look);
	return 0;
}
