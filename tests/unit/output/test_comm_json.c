/* Communicators have the same JSON in the report and in the live data. */

#include <stdlib.h>
#include <string.h>

#include "output/live_json.h"
#include "output/report.h"
#include "tests/unit/output/live_scenes.h"
#include "tests/tap.h"

static struct live_scene scene;
static struct sink sink;

/* From "label" to "recorded_ranks". */
static char *identity_in(const char *text, const char *label)
{
	char start[128], *copy;
	const char *at, *end;

	snprintf(start, sizeof(start), "\"label\":\"%s\",\"name\"", label);
	at = strstr(text, start);
	end = at ? strstr(at, ",\"recorded_ranks\":") : NULL;
	end = end ? strpbrk(end + 1, ",}") : NULL;
	copy = end ? strndup(at, (size_t)(end - at)) : strdup("it is not there");
	if (copy == NULL)
		abort();
	return copy;
}

static char *in_live(const char *label)
{
	char *identity;

	sink_init_memory(&sink);
	live_json_now(&sink, &scene.live, "n");
	identity = identity_in(sink_string(&sink), label);
	sink_release(&sink);
	return identity;
}

static char *in_report(const char *label)
{
	static struct timeline_comm comms[64];
	struct timeline_report report = { .job = scene.live.job, .comms = comms };
	struct json json;
	char *identity;

	sink_init_memory(&sink);
	json_init(&json, &sink);
	json_object(&json);
	report_json_put_communicators(&json, &report);
	json_end(&json);
	identity = identity_in(sink_string(&sink), label);
	sink_release(&sink);
	return identity;
}

static void expect_same(const char *sentence, const char *part)
{
	const char *label = scene.live.job.comms[0].label;
	char *live = in_live(label), *report = in_report(label);

	if (!EXPECT_THAT(sentence, strcmp(live, report) == 0 && strstr(live, part) != NULL))
		printf("# live   %s\n# report %s\n", live, report);
	free(live);
	free(report);
}

int main(void)
{
	struct job_comm *comm;

	live_scene_make(&scene, "quiet");
	comm = &scene.live.job.comms[0];
	comm->kind = JOB_COMM_NET;
	expect_same("one of which all is known", "\"kind\":\"net-only\"");
	comm->kind = JOB_COMM_UNKNOWN;
	expect_same("a kind that is not known is null", "\"kind\":null");
	comm->hash = 0;
	comm->nranks = comm->nnodes = 0;
	comm->name[0] = '\0';
	expect_same("and so is the rest",
		    "\"name\":null,\"hash\":null,\"generation\":0,\"job_index\":0,\"kind\":null,"
		    "\"ranks\":null,\"nodes\":null,");
	live_scene_release(&scene);
	return tap_done();
}
