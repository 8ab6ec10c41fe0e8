/* Parts of an answer that all pages and paths share: headers, errors, files, runbooks, passwords. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "output/live_page.h"
#include "output/verdict_show.h"
#include "serve/server.h"

const char *serve_header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

void serve_add_headers(const struct serve_site *site, struct MHD_Response *response,
		       const char *type, const char *caching)
{
	static const char *const fixed[][2] = {
		{ "Content-Security-Policy", LIVE_PAGE_POLICY },
		{ "X-Content-Type-Options", "nosniff" },
		{ "X-Frame-Options", "DENY" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
	};
	const char *strict = site->http->config.strict_transport;

	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, caching);
	for (size_t i = 0; i < ARRAY_LENGTH(fixed); i++)
		MHD_add_response_header(response, fixed[i][0], fixed[i][1]);
	if (strict[0])
		MHD_add_response_header(response, MHD_HTTP_HEADER_STRICT_TRANSPORT_SECURITY,
					strict);
}

enum MHD_Result serve_reply(const struct serve_site *site, struct MHD_Connection *connection,
			    unsigned int code, const char *type, const char *text, const char *name,
			    const char *value)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result result;

	if (response == NULL)
		return MHD_NO;
	serve_add_headers(site, response, type, "no-store");
	if (name)
		MHD_add_response_header(response, name, value);
	result = MHD_queue_response(connection, code, response);
	MHD_destroy_response(response);
	return result;
}

enum MHD_Result serve_refuse(const struct serve_site *site, struct MHD_Connection *connection,
			     unsigned int code, const char *text)
{
	return serve_reply(site, connection, code, SERVE_TYPE_TEXT, text, NULL, NULL);
}

enum MHD_Result serve_file(const struct serve_site *site, struct MHD_Connection *connection,
			   const struct live_page_file *file)
{
	const char *known = serve_header(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
	bool is_known = known && (strstr(known, file->etag) || strcmp(known, "*") == 0);
	struct MHD_Response *response = MHD_create_response_from_buffer(
		is_known ? 0 : file->length, (void *)(uintptr_t)file->bytes,
		MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	if (response == NULL)
		return MHD_NO;
	serve_add_headers(site, response, file->type, "no-cache");
	MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, file->etag);
	result = MHD_queue_response(connection, is_known ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK,
				    response);
	MHD_destroy_response(response);
	return result;
}

enum MHD_Result serve_runbook(const struct serve_site *site, struct MHD_Connection *connection,
			      const char *path)
{
	struct live_page_file file = { .path = path, .type = SERVE_TYPE_TEXT };
	const char *text = runbook_find(path + 1, &file.length);

	if (text == NULL)
		return serve_refuse(site, connection, MHD_HTTP_NOT_FOUND,
				    "there is no such runbook\n");
	file.bytes = (const unsigned char *)text;
	text_format(file.etag, sizeof(file.etag), "\"%016" PRIx64 "\"",
		    hash_bytes(text, file.length));
	return serve_file(site, connection, &file);
}

static enum MHD_Result ask_password(const struct serve_site *site,
				    struct MHD_Connection *connection)
{
	return serve_reply(site, connection, MHD_HTTP_UNAUTHORIZED, SERVE_TYPE_TEXT,
			   "user name and password required\n", MHD_HTTP_HEADER_WWW_AUTHENTICATE,
			   "Basic realm=\"ringside\", charset=\"UTF-8\"");
}

enum web_verdict serve_password(const struct serve_site *site, struct MHD_Connection *connection,
				struct serve_connection *from)
{
	if (site->http->config.user_count == 0)
		return WEB_AUTH_GOOD;
	if (from->checked != WEB_AUTH_LATER)
		return from->checked;
	from->checked = web_auth_check(&site->http->auth, &site->http->config,
				       serve_header(connection, MHD_HTTP_HEADER_AUTHORIZATION),
				       serve_http_has_turn(from), clock_system_ns(CLOCK_MONOTONIC));
	from->has_turn = false;
	if (from->checked == WEB_AUTH_LATER)
		serve_http_wait(from, connection);
	else if (from->checked == WEB_AUTH_TURN)
		from->checked = serve_http_check(from, connection);
	return from->checked;
}

enum MHD_Result serve_check(const struct serve_site *site, struct MHD_Connection *connection,
			    struct serve_connection *from, bool *may_pass)
{
	const char *host = serve_header(connection, MHD_HTTP_HEADER_HOST);
	enum web_verdict verdict;

	*may_pass = false;
	if (from->is_dropped)
		return MHD_NO;
	if (from->checks_host && host && !web_host_is_local(host, site->host))
		return serve_refuse(site, connection, MHD_HTTP_FORBIDDEN,
				    "this address is local: the Host header must be localhost, "
				    "127.0.0.1, [::1] "
				    "or the name of this host\n");
	verdict = serve_password(site, connection, from);
	if (verdict == WEB_AUTH_LATER)
		return MHD_YES;
	from->checked = WEB_AUTH_LATER;
	if (verdict == WEB_AUTH_WRONG) {
		from->wrong++;
		return ask_password(site, connection);
	}
	*may_pass = true;
	return MHD_YES;
}

static enum MHD_Result count_lengths(void *context, enum MHD_ValueKind kind, const char *name,
				     const char *value)
{
	unsigned int *count = context;

	(void)kind, (void)value;
	*count += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
	return MHD_YES;
}

bool serve_has_odd_length(struct MHD_Connection *connection)
{
	unsigned int count = 0;

	MHD_get_connection_values(connection, MHD_HEADER_KIND, count_lengths, &count);
	return count > 1 ||
	       (count == 1 && serve_header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL);
}

enum MHD_Result serve_refuse_length(const struct serve_site *site,
				    struct MHD_Connection *connection)
{
	return serve_reply(site, connection, MHD_HTTP_BAD_REQUEST, SERVE_TYPE_TEXT,
			   "the length of the request is given twice\n", MHD_HTTP_HEADER_CONNECTION,
			   "close");
}

bool serve_has_body(struct MHD_Connection *connection)
{
	const char *length = serve_header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return serve_header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) ||
	       (length && strcmp(length, "0") != 0);
}
