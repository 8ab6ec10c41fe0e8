#include "programs/agent/agent_body.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "output/metrics.h"
#include "output/sink.h"
#include "programs/agent/web_encoding.h"

/* What a response owns; freed when the last client has read it. */
struct content {
	size_t *held; /* where it is counted */
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

void agent_bodies_init(struct agent_bodies *bodies, struct agent_look *look, const char *host)
{
	*bodies = (struct agent_bodies){ .look = look, .host = host };
}

static void let_go(struct agent_body *body)
{
	if (body->response)
		MHD_destroy_response(body->response);
	body->response = NULL;
}

void agent_bodies_release(struct agent_bodies *bodies)
{
	for (int kind = 0; kind < AGENT_BODY_KINDS; kind++)
		for (int is_gzip = 0; is_gzip < 2; is_gzip++)
			let_go(&bodies->made[kind][is_gzip]);
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
	case AGENT_BODY_SNAPSHOT:
		agent_snapshot_write(sink, bodies->look, bodies->host, &past->snapshot);
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

/* Everything in one piece: its length is known, and the look it tells of may be over before it is read. */
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
	       a->snapshot.has_environment == b->snapshot.has_environment &&
	       strcmp(a->members, b->members) == 0;
}

static bool is_affordable(struct agent_bodies *bodies, enum agent_body_kind kind)
{
	if (kind == AGENT_BODY_SNAPSHOT && bodies->held_snapshots > AGENT_BODY_SNAPSHOT_BYTES_MAX)
		return false;
	if (kind != AGENT_BODY_SNAPSHOT && bodies->held > AGENT_BODY_BYTES_MAX)
		return false;
	return agent_budget_allows(&bodies->budgets[kind], clock_system_ns(CLOCK_MONOTONIC));
}

/* Others are made once per look. */
static bool has_budget(enum agent_body_kind kind)
{
	return kind == AGENT_BODY_HISTORY || kind == AGENT_BODY_SNAPSHOT;
}

struct MHD_Response *agent_body(struct agent_bodies *bodies, enum agent_body_kind kind,
				bool is_gzip, const struct agent_past *past, bool *is_new)
{
	static const struct agent_past none;
	struct agent_body *body = &bodies->made[kind][is_gzip];
	struct content *content;
	uint64_t began_ns;

	*is_new = false;
	past = past ? past : &none;
	if (body->response && body->look == bodies->look->number && is_same(&body->past, past))
		return body->response;
	let_go(body);
	if (!is_affordable(bodies, kind))
		return NULL;
	began_ns = clock_system_ns(CLOCK_PROCESS_CPUTIME_ID);
	content = make_content(bodies, kind, is_gzip, past);
	if (has_budget(kind))
		agent_budget_spend(&bodies->budgets[kind],
				   clock_system_ns(CLOCK_PROCESS_CPUTIME_ID) - began_ns);
	if (content == NULL)
		return NULL;
	body->response = MHD_create_response_from_buffer_with_free_callback_cls(
		content->length, content->bytes, free_content, content);
	if (body->response == NULL) {
		free_content(content);
		return NULL;
	}
	body->look = bodies->look->number;
	body->past = *past;
	*is_new = true;
	if (is_gzip)
		MHD_add_response_header(body->response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	return body->response;
}
