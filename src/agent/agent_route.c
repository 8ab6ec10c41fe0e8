/* The paths of the agent and their answers, made once per scan. */
#include "agent/agent_route.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "output/json.h"
#include "output/live_page.h"
#include "output/metrics.h"
#include "output/sink.h"
#include "output/verdict_show.h"

/* A body may be started while less than this is held: with a snapshot of maximum size the total is about 128 MiB. */
enum {
	AGENT_BODY_BYTES_MAX = 48 * 1024 * 1024,
	AGENT_BODY_SNAPSHOT_BYTES_MAX = 40 * 1024 * 1024,
	MAKER_OUTPUT_MAX = AGENT_SNAPSHOT_BYTES_MAX + 1024 * 1024,
	/* With gzip it holds the whole archive. */
	MAKER_BYTES_MAX = 2 * AGENT_SNAPSHOT_BYTES_MAX + 32 * 1024 * 1024,
};
#define MAKER_NS (20 * SECOND_NS)
#define MAKER_POLL_NS (100 * MS_NS)

/* Data owned by a response; freed when the last client has read it. */
struct content {
	size_t *held; /* counter of held bytes */
	void *bytes;
	size_t length;
};

static void free_content(void *context)
{
	struct content *content = context;

	*content->held -= content->length;
	free(content->bytes);
	free(content);
}

void agent_bodies_init(struct agent_bodies *bodies, struct agent_look *look, const char *host,
		       int epoll)
{
	*bodies = (struct agent_bodies){ .look = look, .host = host, .epoll = epoll };
}

static void let_go(struct agent_body *body)
{
	if (body->response)
		MHD_destroy_response(body->response);
	body->response = NULL;
}

void agent_bodies_forget(struct agent_bodies *bodies)
{
	for (int kind = 0; kind < AGENT_BODY_KINDS; kind++)
		for (int is_gzip = 0; is_gzip < 2; is_gzip++)
			let_go(&bodies->made[kind][is_gzip]);
}

void agent_bodies_release(struct agent_bodies *bodies)
{
	child_release(&bodies->maker);
	agent_bodies_forget(bodies);
}

void agent_bodies_age(struct agent_bodies *bodies)
{
	for (int kind = 0; kind < AGENT_BODY_KINDS; kind++)
		for (int is_gzip = 0; is_gzip < 2; is_gzip++)
			if (bodies->made[kind][is_gzip].look != bodies->look->number)
				let_go(&bodies->made[kind][is_gzip]);
}

static void write_content(struct agent_bodies *bodies, enum agent_body_kind kind,
			  const struct agent_past *past, struct sink *sink)
{
	const struct live *live = &bodies->look->live;
	struct metrics_agent agent;

	switch (kind) {
	case AGENT_BODY_NOW:
		live_json_now(sink, live, bodies->host);
		break;
	case AGENT_BODY_SUMMARY:
		live_json_summary(sink, live, bodies->host);
		break;
	case AGENT_BODY_HISTORY:
		live_json_history_of(sink, live, past->after_ns, past->members);
		break;
	default:
		agent_look_self(bodies->look, &agent);
		metrics_write(sink, (enum metrics_format)kind, live, &agent, -1);
		break;
	}
}

static size_t *held_of(struct agent_bodies *bodies, enum agent_body_kind kind)
{
	return kind == AGENT_BODY_SNAPSHOT ? &bodies->held_snapshots : &bodies->held;
}

/* The whole body at once: its length is known, and the scan may be outdated before it is read. */
static struct content *make_content(struct agent_bodies *bodies, enum agent_body_kind kind,
				    bool is_gzip, const struct agent_past *past)
{
	struct content *content = malloc(sizeof(*content));
	struct sink sink;

	sink_init_memory(&sink);
	write_content(bodies, kind, past, &sink);
	if (content == NULL || sink.status != OK || sink.bytes == NULL) {
		sink_release(&sink);
		free(content);
		return NULL;
	}
	*content = (struct content){ held_of(bodies, kind), sink.bytes, sink.used };
	if (is_gzip) {
		content->bytes = web_encoding_gzip(sink.bytes, sink.used, &content->length);
		sink_release(&sink);
	}
	if (content->bytes == NULL) {
		free(content);
		return NULL;
	}
	*content->held += content->length;
	return content;
}

static bool is_same(const struct agent_past *a, const struct agent_past *b)
{
	return a->after_ns == b->after_ns && a->snapshot.operations == b->snapshot.operations &&
	       a->snapshot.past == b->snapshot.past &&
	       a->snapshot.has_environment == b->snapshot.has_environment &&
	       a->snapshot.has_job == b->snapshot.has_job &&
	       strcmp(a->snapshot.job, b->snapshot.job) == 0 && strcmp(a->members, b->members) == 0;
}

static bool is_affordable(struct agent_bodies *bodies, enum agent_body_kind kind)
{
	if (kind == AGENT_BODY_SNAPSHOT && bodies->held_snapshots > AGENT_BODY_SNAPSHOT_BYTES_MAX)
		return false;
	if (kind != AGENT_BODY_SNAPSHOT && bodies->held > AGENT_BODY_BYTES_MAX)
		return false;
	return agent_budget_allows(&bodies->budgets[kind], clock_system_ns(CLOCK_MONOTONIC));
}

/* Others are built once per scan. */
static bool has_budget(enum agent_body_kind kind)
{
	return kind == AGENT_BODY_HISTORY || kind == AGENT_BODY_SNAPSHOT;
}

static struct MHD_Response *keep_body(struct agent_bodies *bodies, struct agent_body *body,
				      struct content *content, bool is_gzip,
				      const struct agent_past *past)
{
	body->response = MHD_create_response_from_buffer_with_free_callback_cls(
		content->length, content->bytes, free_content, content);
	if (body->response == NULL) {
		free_content(content);
		return NULL;
	}
	body->look = bodies->look->number;
	body->past = *past;
	body->has_headers = false;
	if (is_gzip)
		MHD_add_response_header(body->response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	return body->response;
}

/* ---- snapshots, in a child -------------------------------------------------------------------- */

static int maker_work(const char *input, void *context)
{
	struct agent_bodies *bodies = context;
	struct sink to, archive;
	size_t length = 0;
	void *packed;

	(void)input;
	sink_init_fd(&to, STDOUT_FILENO);
	if (!bodies->makes_gzip) {
		agent_snapshot_write(&to, bodies->look, bodies->host, &bodies->making.snapshot);
		return sink_flush(&to) == OK ? 0 : 1;
	}
	sink_init_memory(&archive);
	agent_snapshot_write(&archive, bodies->look, bodies->host, &bodies->making.snapshot);
	packed = archive.status == OK ? web_encoding_gzip(archive.bytes, archive.used, &length)
				      : NULL;
	sink_write(&to, packed, length);
	return packed && sink_flush(&to) == OK ? 0 : 1;
}

static void start_maker(struct agent_bodies *bodies, bool is_gzip, const struct agent_past *past)
{
	const struct child_task task = { .work = maker_work,
					 .keeps_files = true,
					 .context = bodies,
					 .timeout_ns = MAKER_NS,
					 .limit_bytes = MAKER_OUTPUT_MAX,
					 .memory_bytes = MAKER_BYTES_MAX };

	bodies->making = *past;
	bodies->makes_gzip = is_gzip;
	child_start(&bodies->maker, &task, bodies->epoll, clock_system_ns(CLOCK_MONOTONIC));
}

/* As new as the last scan, or newer. */
static bool keep_made(struct agent_bodies *bodies)
{
	struct agent_body *body = &bodies->made[AGENT_BODY_SNAPSHOT][bodies->makes_gzip];
	struct content *content = malloc(sizeof(*content));
	struct child *maker = &bodies->maker;

	if (maker->code != 0 || maker->used == 0 || content == NULL) {
		free(content);
		return false;
	}
	*content = (struct content){ &bodies->held_snapshots, maker->bytes, maker->used };
	bodies->held_snapshots += content->length;
	maker->bytes = NULL;
	let_go(body);
	return keep_body(bodies, body, content, bodies->makes_gzip, &bodies->making) != NULL;
}

uint64_t agent_bodies_run(struct agent_bodies *bodies, struct serve_http *http, bool is_busy,
			  uint64_t now_ns)
{
	bool is_made;

	bodies->has_turn = !is_busy && !bodies->look->is_scanning;
	if (bodies->is_wanted && bodies->has_turn) {
		bodies->is_wanted = false;
		serve_http_has_body(http, true);
	}
	if (bodies->is_wanted)
		return now_ns;
	if (bodies->maker.begun_ns == 0)
		return UINT64_MAX;
	if (!child_has_ended(&bodies->maker, now_ns))
		return now_ns + MAKER_POLL_NS;
	is_made = keep_made(bodies);
	if (!is_made)
		serve_log(SERVE_WARNING, "cannot make a snapshot: %s", bodies->maker.why);
	agent_budget_spend(&bodies->budgets[AGENT_BODY_SNAPSHOT], bodies->maker.cpu_ns);
	child_release(&bodies->maker);
	serve_http_has_body(http, is_made);
	return now_ns;
}

/* ---- a body ----------------------------------------------------------------------------------- */

/* Borrowed until the next call. NULL: out of memory, too much is held, or the budget is used up; *must_wait: a child
 * makes it, or it is not its turn. `past` is NULL except for history and snapshot. */
static struct agent_body *agent_body(struct agent_bodies *bodies, enum agent_body_kind kind,
				     bool is_gzip, const struct agent_past *past, bool *must_wait)
{
	static const struct agent_past none;
	struct agent_body *body = &bodies->made[kind][is_gzip];
	struct content *content;
	uint64_t began_ns;

	past = past ? past : &none;
	if (body->response && body->look == bodies->look->number && is_same(&body->past, past))
		return body;
	*must_wait = kind == AGENT_BODY_SNAPSHOT && bodies->maker.begun_ns != 0;
	if (*must_wait)
		return NULL;
	if (!bodies->has_turn) {
		bodies->is_wanted = *must_wait = true;
		return NULL;
	}
	let_go(body);
	if (!is_affordable(bodies, kind))
		return NULL;
	bodies->has_turn = false;
	if (kind == AGENT_BODY_SNAPSHOT) {
		start_maker(bodies, is_gzip, past);
		*must_wait = true;
		return NULL;
	}
	began_ns = clock_system_ns(CLOCK_PROCESS_CPUTIME_ID);
	content = make_content(bodies, kind, is_gzip, past);
	if (has_budget(kind))
		agent_budget_spend(&bodies->budgets[kind],
				   clock_system_ns(CLOCK_PROCESS_CPUTIME_ID) - began_ns);
	return content && keep_body(bodies, body, content, is_gzip, past) ? body : NULL;
}

static const char text_type[] = SERVE_TYPE_TEXT;
static const char json_type[] = SERVE_TYPE_JSON;

static enum MHD_Result come_again(struct agent_route *route, struct MHD_Connection *connection,
				  unsigned int code, const char *text)
{
	return serve_reply(&route->site, connection, code, text_type, text,
			   MHD_HTTP_HEADER_RETRY_AFTER, "1");
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* What it waited for is new enough. */
static bool must_wait_for_scan(struct agent_route *route, struct serve_connection *from,
			       struct MHD_Connection *connection)
{
	if (from->has_waited || agent_look_fresh(route->look, clock_system_ns(CLOCK_MONOTONIC)))
		return false;
	route->bodies.is_wanted = true;
	serve_http_wait_for_body(from, connection);
	return true;
}

static enum MHD_Result answer_body(struct agent_route *route, struct MHD_Connection *connection,
				   enum agent_body_kind kind, const char *type,
				   const struct agent_past *past)
{
	bool is_gzip =
		web_encoding_takes_gzip(serve_header(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING));
	struct serve_connection *from = serve_http_connection(connection);
	struct agent_body *body = NULL;
	bool must_wait = false;

	if (must_wait_for_scan(route, from, connection))
		return MHD_YES;
	if (!from->has_failed || kind != AGENT_BODY_SNAPSHOT)
		body = agent_body(&route->bodies, kind, is_gzip, past, &must_wait);
	if (must_wait) {
		serve_http_wait_for_body(from, connection);
		return MHD_YES;
	}
	if (body == NULL)
		return come_again(route, connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				  "too busy; try again later\n");
	if (!body->has_headers) {
		serve_add_headers(&route->site, body->response, type, "no-store");
		MHD_add_response_header(body->response, MHD_HTTP_HEADER_VARY,
					"Accept, Accept-Encoding");
		body->has_headers = true;
	}
	return MHD_queue_response(connection, MHD_HTTP_OK, body->response);
}

static enum MHD_Result answer_metrics(struct agent_route *route, struct MHD_Connection *connection)
{
	enum metrics_format format =
		metrics_negotiate(serve_header(connection, MHD_HTTP_HEADER_ACCEPT));

	return answer_body(route, connection, (enum agent_body_kind)format,
			   metrics_content_type(format), NULL);
}

static enum MHD_Result answer_now(struct agent_route *route, struct MHD_Connection *connection)
{
	return answer_body(route, connection, AGENT_BODY_NOW, json_type, NULL);
}

static enum MHD_Result answer_summary(struct agent_route *route, struct MHD_Connection *connection)
{
	return answer_body(route, connection, AGENT_BODY_SUMMARY, json_type, NULL);
}

static enum MHD_Result answer_history(struct agent_route *route, struct MHD_Connection *connection)
{
	const char *after = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "after");
	const char *members =
		MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "members");
	struct agent_past past = { 0 };
	int64_t number = 0;

	if (after && text_number(after, 0, INT64_MAX, &number) != OK)
		return serve_refuse(&route->site, connection, MHD_HTTP_BAD_REQUEST,
				    "'after' must be a number of nanoseconds since 1970\n");
	past.after_ns = (uint64_t)number;
	/* Never all of them: that would be megabytes, built in the only thread. Text longer than any key is
	 * truncated. */
	text_copy(past.members, sizeof(past.members), members ? members : "");
	return answer_body(route, connection, AGENT_BODY_HISTORY, json_type, &past);
}

/* Environment variables of users are not for every account on the host, so only authenticated clients get them. */
static bool may_see_environment(const struct agent_route *route, struct MHD_Connection *connection)
{
	const struct web_config *config = &route->site.http->config;

	return config->user_count > 0 || config->client_auth == WEB_CLIENT_REQUIRE ||
	       serve_http_connection(connection)->is_private;
}

static enum MHD_Result answer_snapshot(struct agent_route *route, struct MHD_Connection *connection)
{
	const char *operations =
		MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "operations");
	const char *job = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "job");
	const char *earlier =
		MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "past");
	int64_t number = 0, earlier_number = 0;
	struct agent_past past = { 0 };

	if (operations && text_number(operations, 0, AGENT_SNAPSHOT_OPERATIONS_MAX, &number) != OK)
		return serve_refuse(&route->site, connection, MHD_HTTP_BAD_REQUEST,
				    "'operations' must be a number from 0 to 20000: the last "
				    "finished operations "
				    "per process\n");
	if (earlier && text_number(earlier, 0, AGENT_SNAPSHOT_PAST_MAX, &earlier_number) != OK)
		return serve_refuse(
			&route->site, connection, MHD_HTTP_BAD_REQUEST,
			"'past' must be a number from 0 to 16384: operations per process "
			"from before these\n");
	past.snapshot.operations = agent_snapshot_operations((uint64_t)number);
	past.snapshot.past = agent_snapshot_past((uint64_t)earlier_number);
	past.snapshot.has_environment = may_see_environment(route, connection);
	past.snapshot.has_job = job != NULL;
	if (!web_unescape(past.snapshot.job, sizeof(past.snapshot.job), job))
		return serve_refuse(&route->site, connection, MHD_HTTP_BAD_REQUEST,
				    "'job' is not the name of a job\n");
	return answer_body(route, connection, AGENT_BODY_SNAPSHOT, "application/x-tar", &past);
}

static enum MHD_Result answer_health(struct agent_route *route, struct MHD_Connection *connection)
{
	const struct agent_look *look = route->look;
	enum MHD_Result result;
	struct sink sink;
	struct json json;

	if (must_wait_for_scan(route, serve_http_connection(connection), connection))
		return MHD_YES;
	sink_init_memory(&sink);
	json_init(&json, &sink);
	json_object(&json);
	json_put_string(&json, "status", look->status == OK ? "ok" : "failing");
	json_put_string(&json, "version", RINGSIDE_VERSION);
	json_put_string(&json, "host", route->site.host);
	json_put_unsigned(&json, "processes", look->watch.recording.count);
	json_put_unsigned(&json, "notices", look->live.notice_count);
	json_put_unsigned(&json, "looks", look->number);
	json_put_unsigned(&json, "looks_failed", look->failures);
	json_put_unsigned(&json, "refused_files", look->watch.refused_count);
	json_put_unsigned(&json, "connections", route->site.http->count);
	json_end(&json);
	json_line(&json);
	result = serve_reply(&route->site, connection,
			     look->status == OK ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
			     json_type, sink_string(&sink), NULL, NULL);
	sink_release(&sink);
	return result;
}

static enum MHD_Result answer_path(struct agent_route *route, struct MHD_Connection *connection,
				   const char *path)
{
	static const struct {
		const char *path;
		enum MHD_Result (*answer)(struct agent_route *route,
					  struct MHD_Connection *connection);
	} paths[] = {
		{ "/metrics", answer_metrics },		 { "/healthz", answer_health },
		{ "/api/v1/now", answer_now },		 { "/api/v1/history", answer_history },
		{ "/api/v1/snapshot", answer_snapshot }, { "/api/v1/summary", answer_summary },
	};
	const struct live_page_file *file;

	for (size_t i = 0; i < ARRAY_LENGTH(paths); i++)
		if (strcmp(path, paths[i].path) == 0)
			return paths[i].answer(route, connection);
	if (strncmp(path, SERVE_RUNBOOKS, strlen(SERVE_RUNBOOKS)) == 0)
		return serve_runbook(&route->site, connection, path);
	file = live_page_file(path);
	if (file)
		return serve_file(&route->site, connection, file);
	return serve_refuse(
		&route->site, connection, MHD_HTTP_NOT_FOUND,
		"not found; available are /metrics, /healthz, /api/v1/now, /api/v1/history, "
		"/api/v1/snapshot, /api/v1/summary, /runbooks/NAME and the page at /\n");
}

/* ---- requests -------------------------------------------------------------------------------- */

enum MHD_Result agent_route(void *context, struct MHD_Connection *connection, const char *path,
			    const char *method, const char *version, const char *upload,
			    size_t *upload_bytes, void **request)
{
	struct serve_connection *from = serve_http_connection(connection);
	struct agent_route *route = context;
	enum MHD_Result result;
	bool may_pass;

	(void)version, (void)upload;
	if (from == NULL || *upload_bytes > 0)
		return MHD_NO;
	if (serve_has_odd_length(connection))
		return serve_refuse_length(&route->site, connection);
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return serve_reply(&route->site, connection, MHD_HTTP_METHOD_NOT_ALLOWED, text_type,
				   "read-only: use GET or HEAD\n", MHD_HTTP_HEADER_ALLOW,
				   "GET, HEAD");
	if (serve_has_body(connection))
		return serve_refuse(&route->site, connection, MHD_HTTP_CONTENT_TOO_LARGE,
				    "request bodies are not accepted\n");
	/* libmicrohttpd calls twice: once before the rest of the request is read. */
	if (*request == NULL) {
		*request = route;
		from->is_answering = true;
		from->since_ns = clock_system_ns(CLOCK_MONOTONIC);
		return MHD_YES;
	}
	result = serve_check(&route->site, connection, from, &may_pass);
	return may_pass ? answer_path(route, connection, path) : result;
}
