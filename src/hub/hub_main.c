/*
 * ringside-agent hub: see docs/HUB.md. Started by `ringside hub`.
 *
 *	           +------------------------ epoll -----------------------+
 *	           |           |              |             |             |
 *	       listeners   libmicrohttpd   signals     output of      a moment:
 *	           |           |              |        children       polls, refresh, judging,
 *	           v           v              v             v         the hook's time
 *	        accept      answer       exit, reload,   summaries,
 *	                                 a child ended   verdicts
 *
 * One thread. Requests to others run in child processes (struct child).
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/text.h"
#include "hub/hub.h"
#include "output/json.h"
#include "output/live_page.h"
#include "serve/serve.h"
#include "serve/server.h"
#include "serve/web.h"

enum { PROGRAM_PATH = 4096 };
#define PUBLISH_NS UINT64_C(1000000000)

struct hub {
	struct serve_loop loop;
	struct serve_site site;
	struct hub_state state;
	uint64_t publish_ns;		     /* when verdicts are passed on next */
	uint64_t published;		     /* judgements so far at that time */
	size_t status_jobs, status_verdicts; /* as in STATUS */
	char fetch[PROGRAM_PATH];
	char doctor[PROGRAM_PATH];
};

/* ---- answers --------------------------------------------------------------------------------- */

static enum MHD_Result answer_sink(struct hub *hub, struct MHD_Connection *connection,
				   const char *type, struct sink *sink)
{
	const char *text = sink_string(sink);
	enum MHD_Result result;

	result = sink->status == OK
			 ? serve_reply(&hub->site, connection, MHD_HTTP_OK, type, text, NULL, NULL)
			 : serve_refuse(&hub->site, connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
					"out of memory\n");
	sink_release(sink);
	return result;
}

static enum MHD_Result answer_jobs(struct hub *hub, struct MHD_Connection *connection)
{
	const char *job = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "job");
	char key[HUB_JOB_KEY];
	struct sink sink;

	if (!web_unescape(key, sizeof(key), job))
		return serve_refuse(&hub->site, connection, MHD_HTTP_BAD_REQUEST,
				    "'job' is not the key of a job\n");
	sink_init_memory(&sink);
	hub_show_jobs(&sink, &hub->state, job ? key : NULL, clock_system_ns(CLOCK_MONOTONIC),
		      clock_system_ns(CLOCK_REALTIME));
	return answer_sink(hub, connection, SERVE_TYPE_JSON, &sink);
}

static enum MHD_Result answer_metrics(struct hub *hub, struct MHD_Connection *connection)
{
	struct sink sink;

	sink_init_memory(&sink);
	hub_show_metrics(&sink, &hub->state);
	return answer_sink(hub, connection, "text/plain; version=0.0.4; charset=utf-8", &sink);
}

/* Healthy as long as it answers: agents that do not are their own trouble. */
static enum MHD_Result answer_health(struct hub *hub, struct MHD_Connection *connection)
{
	struct sink sink;
	struct json json;

	sink_init_memory(&sink);
	json_init(&json, &sink);
	json_object(&json);
	json_put_string(&json, "status", "ok");
	json_put_string(&json, "version", RINGSIDE_VERSION);
	json_put_string(&json, "host", hub->state.options->serving.host);
	json_put_unsigned(&json, "agents", hub->state.agents.count);
	json_put_unsigned(&json, "agents_silent", hub_agents_silent(&hub->state.agents));
	json_put_unsigned(&json, "jobs", hub->state.jobs.count);
	json_end(&json);
	json_line(&json);
	return answer_sink(hub, connection, SERVE_TYPE_JSON, &sink);
}

static enum MHD_Result answer_path(struct hub *hub, struct MHD_Connection *connection,
				   const char *path)
{
	static const struct {
		const char *path;
		enum MHD_Result (*answer)(struct hub *hub, struct MHD_Connection *connection);
	} paths[] = {
		{ "/metrics", answer_metrics },
		{ "/healthz", answer_health },
		{ "/api/v1/jobs", answer_jobs },
	};
	const struct live_page_file *file;

	for (size_t i = 0; i < ARRAY_LENGTH(paths); i++)
		if (strcmp(path, paths[i].path) == 0)
			return paths[i].answer(hub, connection);
	if (strncmp(path, SERVE_RUNBOOKS, strlen(SERVE_RUNBOOKS)) == 0)
		return serve_runbook(&hub->site, connection, path);
	file = live_page_hub_file(path);
	if (file)
		return serve_file(&hub->site, connection, file);
	return serve_refuse(&hub->site, connection, MHD_HTTP_NOT_FOUND,
			    "not found; available are /metrics, /healthz, /api/v1/jobs, "
			    "/api/v1/alerts (POST) and the page at /\n");
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The body of a POST, kept with its connection. */
struct upload {
	size_t used, room;
	char bytes[];
};

/* A webhook of Alertmanager. A page of another origin cannot send this type without asking, and is refused then. */
static bool is_json(struct MHD_Connection *connection)
{
	const char *type = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
						       MHD_HTTP_HEADER_CONTENT_TYPE);

	return type && strncasecmp(type, SERVE_TYPE_JSON, strlen(SERVE_TYPE_JSON)) == 0;
}

static enum MHD_Result answer_alerts(struct hub *hub, struct MHD_Connection *connection,
				     const struct upload *upload)
{
	unsigned int known, unknown;
	char text[80];

	if (upload == NULL ||
	    hub_alerts_take(&hub->state.jobs, upload->bytes, upload->used,
			    clock_system_ns(CLOCK_MONOTONIC), &known, &unknown) != OK)
		return serve_refuse(&hub->site, connection, MHD_HTTP_BAD_REQUEST,
				    "not a webhook of Alertmanager\n");
	hub->state.alerts += known;
	if (known + unknown > 0)
		serve_log(SERVE_INFO, "alerts about %u jobs, and about %u that no agent has", known,
			  unknown);
	text_format(text, sizeof(text), "{\"jobs\":%u,\"jobs_unknown\":%u}\n", known, unknown);
	return serve_reply(&hub->site, connection, MHD_HTTP_OK, SERVE_TYPE_JSON, text, NULL, NULL);
}

static bool upload_add(struct serve_connection *from, const char *bytes, size_t length)
{
	struct upload *upload = from->upload;
	size_t used = upload ? upload->used : 0, room = upload ? upload->room : 0;

	if (length > HUB_ALERTS_BYTES - used)
		return false;
	if (used + length > room) {
		room = (used + length) * 2;
		upload = realloc(upload, sizeof(*upload) + room);
		if (upload == NULL)
			return false;
		from->upload = upload;
		upload->room = room;
	}
	memcpy(upload->bytes + used, bytes, length);
	upload->used = used + length;
	return true;
}

/* libmicrohttpd calls before the body, for each part of it, and after it. */
static enum MHD_Result take_post(struct hub *hub, struct MHD_Connection *connection,
				 struct serve_connection *from, const char *upload,
				 size_t *upload_bytes, void **request)
{
	enum MHD_Result result;
	bool may_pass;

	if (from->is_dropped)
		return MHD_NO;
	if (*request == NULL) {
		*request = hub;
		from->is_answering = true;
		from->since_ns = clock_system_ns(CLOCK_MONOTONIC);
		if (!is_json(connection))
			return serve_refuse(&hub->site, connection, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
					    "the type must be application/json\n");
		return MHD_YES;
	}
	if (*upload_bytes > 0) {
		/* The password first: of strangers nothing is kept. The error can only be sent after the body. */
		enum web_verdict verdict = serve_password(&hub->site, connection, from);
		bool fits = true;

		if (verdict == WEB_AUTH_LATER)
			return MHD_YES;
		if (verdict == WEB_AUTH_GOOD)
			fits = upload_add(from, upload, *upload_bytes);
		*upload_bytes = 0;
		return fits ? MHD_YES : MHD_NO;
	}
	result = serve_check(&hub->site, connection, from, &may_pass);
	return may_pass ? answer_alerts(hub, connection, from->upload) : result;
}

/* For libmicrohttpd; `context` is a struct hub. */
static enum MHD_Result hub_route(void *context, struct MHD_Connection *connection, const char *path,
				 const char *method, const char *version, const char *upload,
				 size_t *upload_bytes, void **request)
{
	struct serve_connection *from = serve_http_connection(connection);
	struct hub *hub = context;
	enum MHD_Result result;
	bool may_pass;

	(void)version;
	if (from == NULL)
		return MHD_NO;
	if (*request == NULL && serve_has_odd_length(connection))
		return serve_refuse_length(&hub->site, connection);
	if (strcmp(method, MHD_HTTP_METHOD_POST) == 0 && strcmp(path, "/api/v1/alerts") == 0)
		return take_post(hub, connection, from, upload, upload_bytes, request);
	if (*upload_bytes > 0)
		return MHD_NO;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return serve_reply(&hub->site, connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				   SERVE_TYPE_TEXT,
				   "use GET or HEAD; POST only for /api/v1/alerts\n",
				   MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	if (serve_has_body(connection))
		return serve_refuse(&hub->site, connection, MHD_HTTP_CONTENT_TOO_LARGE,
				    "request bodies are not accepted\n");
	/* libmicrohttpd calls twice: once before the rest of the request is read. */
	if (*request == NULL) {
		*request = hub;
		from->is_answering = true;
		from->since_ns = clock_system_ns(CLOCK_MONOTONIC);
		return MHD_YES;
	}
	result = serve_check(&hub->site, connection, from, &may_pass);
	return may_pass ? answer_path(hub, connection, path) : result;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* The first verdict of each job; lines are borrowed. */
static void publish(struct hub *hub, uint64_t now_ns)
{
	const struct hub_jobs *jobs = &hub->state.jobs;
	const struct serve_verdicts_to to = { .hook = &hub->state.hook,
					      .host = hub->state.options->serving.host };
	struct verdicts active = { .list = calloc(jobs->count + 1, sizeof(struct verdict)) };

	for (size_t i = 0; active.list && i < jobs->count; i++)
		if (jobs->list[i]->found.count > 0)
			active.list[active.count++] = jobs->list[i]->found.list[0];
	serve_verdicts_pass(&hub->state.verdicts, &active, clock_system_ns(CLOCK_REALTIME), &to,
			    now_ns);
	if (jobs->count != hub->status_jobs || active.count != hub->status_verdicts)
		serve_systemd_notify("STATUS=%zu jobs, %zu verdicts", jobs->count, active.count);
	hub->status_jobs = jobs->count;
	hub->status_verdicts = active.count;
	free(active.list);
}

static uint64_t judgements_of(const struct hub_jobs *jobs)
{
	uint64_t count = 0;

	for (size_t i = 0; i < HUB_JUDGEMENTS; i++)
		count += jobs->judgements[i];
	return count;
}

static uint64_t do_due(void *context, uint64_t now_ns)
{
	struct hub *hub = context;
	struct hub_state *state = &hub->state;
	uint64_t next, at;

	if (hub->loop.must_reload)
		serve_loop_reload(&hub->loop, state->options->serving.web_config);
	next = hub_agents_run(&state->agents, now_ns);
	at = hub_jobs_run(&state->jobs, &state->agents, now_ns);
	next = at < next ? at : next;
	/* A new verdict at once, else every second. */
	if (now_ns >= hub->publish_ns || judgements_of(&state->jobs) != hub->published) {
		hub->published = judgements_of(&state->jobs);
		hub->publish_ns = now_ns + PUBLISH_NS;
		publish(hub, now_ns);
	}
	next = hub->publish_ns < next ? hub->publish_ns : next;
	at = serve_hook_run(&state->hook, now_ns);
	return at < next ? at : next;
}

/* Children are looked after in do_due(). */
static void take_event(void *context, int fd, uint64_t now_ns)
{
	struct hub *hub = context;

	if (fd == hub->state.hook.output)
		serve_hook_handle(&hub->state.hook, now_ns);
}

/* ---- start and end --------------------------------------------------------------------------- */

static int find_programs(struct hub *hub)
{
	char missing[CLI_MISSING_BYTES];

	if (!cli_become_find("ringside-fetch", hub->fetch, sizeof(hub->fetch))) {
		cli_missing(missing, "ringside-fetch", hub->fetch);
		return serve_log(SERVE_ERROR, "%s", missing);
	}
	if (!cli_become_find("ringside", hub->doctor, sizeof(hub->doctor)))
		return serve_log(SERVE_ERROR, "ringside was not found beside %s", hub->doctor);
	return 0;
}

static int open_all(struct hub *hub)
{
	const struct hub_options *options = hub->state.options;
	struct serve_rights rights = { .must_read_nothing = true };
	int code = find_programs(hub);

	if (code == 0)
		code = serve_rights_find(&rights, options->serving.user, options->serving.group);
	if (code == 0)
		code = serve_loop_open(&hub->loop);
	if (code == 0)
		code = serve_loop_listen(&hub->loop, options->serving.listen,
					 options->serving.listen_count, "127.0.0.1:9748",
					 options->serving.group ? rights.group : (gid_t)-1);
	if (code == 0)
		code = serve_loop_serve(&hub->loop, options->serving.web_config, hub_route, hub);
	if (code == 0)
		code = serve_rights_drop(&rights);
	if (code == 0)
		code = serve_hook_open(&hub->state.hook, options->serving.hook,
				       options->serving.hook_ns, hub->loop.epoll);
	hub->site.http = &hub->loop.http;
	hub->site.host = options->serving.host;
	hub->state.start_wall_ns = clock_system_ns(CLOCK_REALTIME);
	hub_agents_init(&hub->state.agents, options, hub->fetch, hub->loop.epoll);
	hub_jobs_init(&hub->state.jobs, options, hub->doctor);
	return code;
}

static void close_all(struct hub *hub)
{
	hub_jobs_release(&hub->state.jobs);
	hub_agents_release(&hub->state.agents);
	serve_verdicts_release(&hub->state.verdicts);
	serve_hook_release(&hub->state.hook);
	serve_loop_close(&hub->loop);
}

int hub_main(int argc, char **argv)
{
	struct hub *hub = calloc(1, sizeof(*hub));
	struct serve_loop_program program = { do_due, take_event, hub };
	struct hub_options options;
	int code = hub_options_parse(&options, argc, argv);

	if (code != CLI_GO_ON || hub == NULL) {
		free(hub);
		return code != CLI_GO_ON ? code : serve_log(SERVE_ERROR, "out of memory");
	}
	/* For the log. */
	program_invocation_short_name = "ringside-hub";
	hub->state.options = &options;
	hub->state.hook.output = -1;
	serve_loop_init(&hub->loop);
	code = open_all(hub);
	if (code == 0)
		code = serve_loop_run(&hub->loop, &program);
	close_all(hub);
	free(hub);
	return code;
}
