/* libmicrohttpd in our own loop: connections, TLS, limits, passwords that wait. */
#include "serve/server.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"
#include "serve/serve.h"

enum { PEM_BYTES_MAX = 1024 * 1024 };

static char *read_pem(const char *path, char *why, size_t why_size)
{
	int fd = file_open(AT_FDCWD, path, true);
	size_t length = 0;
	char *text = fd != -1 ? file_read_whole(fd, PEM_BYTES_MAX, &length) : NULL;

	if (text == NULL)
		text_format(why, why_size, "cannot read %s: %s", path, strerror(errno));
	if (fd != -1)
		close(fd);
	return text;
}

static gnutls_datum_t datum_of(char *text)
{
	return (gnutls_datum_t){ (unsigned char *)text, (unsigned int)strlen(text) };
}

/* libmicrohttpd does not report what is wrong with a certificate, so ask GnuTLS. */
static enum status try_out(const struct serve_tls *tls, const struct web_config *config, char *why,
			   size_t why_size)
{
	gnutls_datum_t cert = datum_of(tls->cert), key = datum_of(tls->key), ca;
	gnutls_certificate_credentials_t credentials;
	int code;

	if (gnutls_certificate_allocate_credentials(&credentials) != GNUTLS_E_SUCCESS) {
		text_format(why, why_size, "out of memory");
		return ERR_NO_SPACE;
	}
	code = gnutls_certificate_set_x509_key_mem(credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
	if (code < 0) {
		text_format(why, why_size, "%s with %s: %s", config->cert_file, config->key_file,
			    gnutls_strerror(code));
	} else if (tls->client_ca) {
		ca = datum_of(tls->client_ca);
		code = gnutls_certificate_set_x509_trust_mem(credentials, &ca, GNUTLS_X509_FMT_PEM);
		if (code == 0)
			code = GNUTLS_E_NO_CERTIFICATE_FOUND;
		if (code < 0)
			text_format(why, why_size, "%s: %s", config->client_ca_file,
				    gnutls_strerror(code));
	}
	gnutls_certificate_free_credentials(credentials);
	return code < 0 ? ERR_FORMAT : OK;
}

static void agent_tls_release(struct serve_tls *tls)
{
	if (tls->key)
		explicit_bzero(tls->key, strlen(tls->key));
	free(tls->cert);
	free(tls->key);
	free(tls->client_ca);
	*tls = (struct serve_tls){ 0 };
}

/* Reads and checks the files. On failure `why` has a message and nothing needs to be released. */
static enum status agent_tls_load(struct serve_tls *tls, const struct web_config *config, char *why,
				  size_t why_size)
{
	enum status status = ERR_SYSTEM;

	*tls = (struct serve_tls){ .client_auth = config->client_auth };
	text_format(tls->priorities, sizeof(tls->priorities), "NORMAL:-VERS-ALL");
	for (int version = config->max_version; version >= config->min_version; version--) {
		size_t used = strlen(tls->priorities);

		text_format(tls->priorities + used, sizeof(tls->priorities) - used,
			    ":+VERS-TLS1.%d", version);
	}
	tls->cert = read_pem(config->cert_file, why, why_size);
	if (tls->cert)
		tls->key = read_pem(config->key_file, why, why_size);
	if (tls->key && config->client_ca_file[0])
		tls->client_ca = read_pem(config->client_ca_file, why, why_size);
	if (tls->key && (tls->client_ca || !config->client_ca_file[0]))
		status = try_out(tls, config, why, why_size);
	if (status != OK)
		agent_tls_release(tls);
	return status;
}

/* Returns 0, or a code that ends the handshake. */
static int verify_client(gnutls_session_t session)
{
	gnutls_typed_vdata_st purpose = { GNUTLS_DT_KEY_PURPOSE_OID,
					  (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT, 0 };
	unsigned int problems = 0;

	if (gnutls_certificate_verify_peers(session, &purpose, 1, &problems) < 0 || problems != 0)
		return GNUTLS_E_CERTIFICATE_ERROR;
	return 0;
}

static int verify_if_given(gnutls_session_t session)
{
	unsigned int count = 0;

	return gnutls_certificate_get_peers(session, &count) ? verify_client(session) : 0;
}

/* Sets what a new session requires of its client; `session` belongs to GnuTLS. */
static void agent_tls_session(const struct serve_tls *tls, void *session)
{
	gnutls_session_t to = session;

	switch (tls->client_auth) {
	case WEB_CLIENT_NONE:
		break;
	case WEB_CLIENT_REQUEST:
		gnutls_certificate_server_set_request(to, GNUTLS_CERT_REQUEST);
		break;
	case WEB_CLIENT_REQUIRE_ANY:
		gnutls_certificate_server_set_request(to, GNUTLS_CERT_REQUIRE);
		break;
	case WEB_CLIENT_VERIFY_IF_GIVEN:
		gnutls_certificate_server_set_request(to, GNUTLS_CERT_REQUEST);
		gnutls_session_set_verify_function(to, verify_if_given);
		break;
	case WEB_CLIENT_REQUIRE:
		gnutls_certificate_server_set_request(to, GNUTLS_CERT_REQUIRE);
		gnutls_session_set_verify_function(to, verify_client);
		break;
	}
}

#define REQUEST_NS (15 * SECOND_NS)
#define ANSWER_NS (30 * SECOND_NS)
#define IDLE_NS \
	(75 * SECOND_NS) /* longer than most scrape intervals, to avoid new TLS handshakes */
#define OLD_SERVER_NS (5 * SECOND_NS)
/* Of a password; its end is an event. */
#define CHECK_NS (20 * SECOND_NS)
#define CHECK_POLL_NS (100 * MS_NS)

enum { ACCEPTS_AT_ONCE = 64 };

/* ---- connections ----------------------------------------------------------------------------- */

static void note_connection(void *context, struct MHD_Connection *connection, void **slot,
			    enum MHD_ConnectionNotificationCode code)
{
	struct serve_http *http = context;
	struct serve_connection *ours = *slot;
	const union MHD_ConnectionInfo *session;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*slot = http->coming;
		http->coming = NULL;
		session = http->server.has_tls
				  ? MHD_get_connection_info(connection,
							    MHD_CONNECTION_INFO_GNUTLS_SESSION)
				  : NULL;
		if (session)
			agent_tls_session(&http->server.tls, session->tls_session);
	} else if (ours) {
		if (http->checked == ours)
			http->checked = NULL;
		ours->fd = -1;
		http->count--;
		*slot = NULL;
	}
}

struct serve_connection *serve_http_connection(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void note_completed(void *context, struct MHD_Connection *connection, void **request,
			   enum MHD_RequestTerminationCode code)
{
	struct serve_connection *ours = serve_http_connection(connection);

	(void)context, (void)code;
	*request = NULL;
	if (ours) {
		free(ours->upload);
		ours->upload = NULL;
		ours->is_answering = false;
		ours->waiting = NULL;
		ours->is_for_body = ours->has_waited = ours->has_failed = false;
		ours->has_turn = false;
		ours->checked = WEB_AUTH_LATER;
		if (ours->http->checked == ours)
			ours->http->checked = NULL;
		ours->since_ns = clock_system_ns(CLOCK_MONOTONIC);
		ours->requests++;
	}
}

/* ---- waiting for a password's turn ------------------------------------------------------------ */

void serve_http_wait(struct serve_connection *from, struct MHD_Connection *connection)
{
	from->waiting = connection;
	from->http->has_waiting = true;
	MHD_suspend_connection(connection);
}

static void connection_resume(struct serve_connection *connection)
{
	struct MHD_Connection *waiting = connection->waiting;

	connection->waiting = NULL;
	connection->is_for_body = false;
	if (waiting)
		MHD_resume_connection(waiting);
}

static bool waits_for_turn(const struct serve_connection *connection)
{
	return connection->fd != -1 && connection->waiting && !connection->is_for_body;
}

void serve_http_wait_for_body(struct serve_connection *from, struct MHD_Connection *connection)
{
	serve_http_wait(from, connection);
	from->is_for_body = true;
}

void serve_http_has_body(struct serve_http *http, bool is_made)
{
	for (size_t i = 0; i < SERVE_CONNECTIONS_MAX; i++) {
		struct serve_connection *at = &http->connections[i];

		if (at->fd == -1 || !at->is_for_body)
			continue;
		at->has_waited = true;
		at->has_failed = !is_made;
		connection_resume(at);
	}
}

bool serve_http_has_turn(const struct serve_connection *from)
{
	if (from->http->checker.begun_ns != 0)
		return false;
	if (from->has_turn)
		return true;
	for (size_t i = 0; i < SERVE_CONNECTIONS_MAX; i++)
		if (waits_for_turn(&from->http->connections[i]) ||
		    (from->http->connections[i].fd != -1 && from->http->connections[i].has_turn))
			return false;
	return true;
}

/* The one to go on next; NULL: none waits. */
static struct serve_connection *next_waiting(struct serve_http *http, uint64_t now_ns)
{
	struct serve_connection *next = NULL;
	struct web_turn best = { NULL, 0, 0 };

	for (size_t i = 0; http->count > 0 && i < SERVE_CONNECTIONS_MAX; i++) {
		struct serve_connection *at = &http->connections[i];
		struct web_turn turn = { at->address, at->wrong, at->since_ns };

		if (!waits_for_turn(at) ||
		    (next && !web_auth_goes_before(&http->auth, &turn, &best, now_ns)))
			continue;
		best = turn;
		next = at;
	}
	return next;
}

static int check_work(const char *input, void *context)
{
	(void)input;
	return web_auth_compare(context) ? 0 : 1;
}

enum web_verdict serve_http_check(struct serve_connection *from, struct MHD_Connection *connection)
{
	struct serve_http *http = from->http;
	const struct child_task task = { .work = check_work,
					 .context = &http->auth,
					 .timeout_ns = CHECK_NS };
	uint64_t now_ns = clock_system_ns(CLOCK_MONOTONIC);

	child_start(&http->checker, &task, http->loop, now_ns);
	/* Without a child others have to wait. */
	if (http->checker.pid == 0) {
		bool is_right = web_auth_compare(&http->auth);
		uint64_t end_ns = clock_system_ns(CLOCK_MONOTONIC);

		child_release(&http->checker);
		return web_auth_end(&http->auth, is_right, from->address, end_ns - now_ns, end_ns);
	}
	http->checked = from;
	memcpy(http->checked_address, from->address, sizeof(from->address));
	serve_http_wait(from, connection);
	return WEB_AUTH_LATER;
}

static void end_check(struct serve_http *http, uint64_t now_ns)
{
	struct serve_connection *checked = http->checked;
	enum web_verdict verdict =
		web_auth_end(&http->auth, http->checker.code == 0, http->checked_address,
			     http->checker.cpu_ns, now_ns);

	child_release(&http->checker);
	http->checked = NULL;
	if (checked) {
		checked->checked = verdict;
		connection_resume(checked);
	}
}

/* Returns when the next password may be checked. */
static uint64_t give_turn(struct serve_http *http, uint64_t now_ns)
{
	struct serve_connection *next;

	if (http->checker.begun_ns != 0) {
		if (!child_has_ended(&http->checker, now_ns))
			return now_ns + CHECK_POLL_NS;
		end_check(http, now_ns);
		return now_ns;
	}
	next = next_waiting(http, now_ns);
	if (next == NULL)
		return UINT64_MAX;
	if (now_ns >= http->auth.free_ns) {
		next->has_turn = true;
		connection_resume(next);
		return now_ns;
	}
	return http->auth.free_ns;
}

/* libmicrohttpd notices the closed socket and cleans up. */
static void connection_drop(struct serve_connection *connection)
{
	connection->is_dropped = true;
	connection_resume(connection);
	shutdown(connection->fd, SHUT_RDWR);
}

static uint64_t deadline_of(const struct serve_connection *connection)
{
	uint64_t patience = connection->is_answering	? ANSWER_NS
			    : connection->requests == 0 ? REQUEST_NS
							: IDLE_NS;

	return connection->since_ns + patience;
}

/* Drops connections that took too long; returns the next deadline. */
static uint64_t drop_late(struct serve_http *http, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; http->count > 0 && i < SERVE_CONNECTIONS_MAX; i++) {
		struct serve_connection *at = &http->connections[i];

		if (at->fd == -1 || at->is_dropped)
			continue;
		if (deadline_of(at) <= now_ns)
			connection_drop(at);
		else if (deadline_of(at) < next)
			next = deadline_of(at);
	}
	return next;
}

/* ---- accepting ------------------------------------------------------------------------------- */

/* An IPv4 address as mapped by IPv6. An IPv6 client owns a whole /64, so only the prefix counts. */
static void address_of(const struct sockaddr_storage *from, uint8_t address[static 16])
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;

	memset(address, 0, 16);
	if (from->ss_family == AF_INET) {
		address[10] = address[11] = 0xff;
		memcpy(address + 12, &v4->sin_addr, 4);
	} else if (from->ss_family == AF_INET6) {
		memcpy(address, &v6->sin6_addr, IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) ? 16 : 8);
	}
}

/* Prefer to drop a client that was served before over one whose first request is on its way. */
static bool goes_before(const struct serve_connection *one, const struct serve_connection *other)
{
	if ((one->requests > 0) != (other->requests > 0))
		return one->requests > 0;
	return one->since_ns < other->since_ns;
}

/* The connection that has been waiting longest: of one address, or of all. */
static struct serve_connection *longest_waiting(struct serve_http *http, const uint8_t *address)
{
	struct serve_connection *found = NULL;

	for (size_t i = 0; i < SERVE_CONNECTIONS_MAX; i++) {
		struct serve_connection *at = &http->connections[i];

		if (at->fd == -1 || at->is_answering || at->is_dropped ||
		    (address && memcmp(at->address, address, 16) != 0))
			continue;
		if (found == NULL || goes_before(at, found))
			found = at;
	}
	return found;
}

static size_t count_of(const struct serve_http *http, const uint8_t address[static 16])
{
	size_t count = 0;

	for (size_t i = 0; http->count > 0 && i < SERVE_CONNECTIONS_MAX; i++)
		count += http->connections[i].fd != -1 && !http->connections[i].is_dropped &&
			 memcmp(http->connections[i].address, address, 16) == 0;
	return count;
}

/* One that guesses: it waits for the turn of another password after a wrong one. */
static struct serve_connection *guessing(struct serve_http *http, const uint8_t *address)
{
	for (size_t i = 0; i < SERVE_CONNECTIONS_MAX; i++) {
		struct serve_connection *at = &http->connections[i];

		if (waits_for_turn(at) && at->wrong > 0 && !at->is_dropped &&
		    (address == NULL || memcmp(at->address, address, 16) == 0))
			return at;
	}
	return NULL;
}

/* A free slot, if necessary by dropping a connection. Unix sockets have no addresses: only the total limit applies. */
static struct serve_connection *make_room(struct serve_http *http, bool is_unix,
					  const uint8_t address[static 16])
{
	struct serve_connection *going = NULL;
	bool is_full = http->count == SERVE_CONNECTIONS_MAX;
	bool is_many = !is_unix && count_of(http, address) >= SERVE_CONNECTIONS_PER_ADDRESS;

	if (is_full || is_many) {
		http->refused++;
		going = longest_waiting(http, is_many ? address : NULL);
		if (going == NULL)
			going = guessing(http, is_many ? address : NULL);
		if (going == NULL)
			return NULL;
		connection_drop(going);
		MHD_run(http->server.daemon);
		if (http->old.daemon)
			MHD_run(http->old.daemon);
	}
	for (size_t i = 0; i < SERVE_CONNECTIONS_MAX; i++)
		if (http->connections[i].fd == -1)
			return &http->connections[i];
	return NULL;
}

static void connection_take(struct serve_http *http, const struct serve_listener *listener, int fd,
			    const struct sockaddr_storage *from, socklen_t length, uint64_t now_ns)
{
	struct serve_connection *slot;
	uint8_t address[16];

	address_of(from, address);
	slot = make_room(http, listener->address.is_unix, address);
	if (slot == NULL) {
		close(fd);
		return;
	}
	*slot = (struct serve_connection){ .fd = fd,
					   .http = http,
					   .is_unix = listener->address.is_unix,
					   .is_private = listener->is_ours,
					   .checks_host = listener->address.is_loopback,
					   .checked = WEB_AUTH_LATER,
					   .since_ns = now_ns };
	memcpy(slot->address, address, sizeof(address));
	http->count++;
	http->accepted++;
	http->coming = slot;
	/* Calls note_connection(). Since libmicrohttpd 1.0 that happens only when the daemon runs. */
	if (MHD_add_connection(http->server.daemon, fd, (const struct sockaddr *)from, length) ==
		    MHD_YES &&
	    http->coming != NULL)
		MHD_run(http->server.daemon);
	/* On failure the socket is closed; whether the callback was called depends on how far it got. */
	if (http->coming != NULL) {
		slot->fd = -1;
		http->count--;
	}
	http->coming = NULL;
}

void serve_http_accept(struct serve_http *http, const struct serve_listener *listener,
		       uint64_t now_ns)
{
	for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t length = sizeof(from);
		int fd = accept4(listener->fd, (struct sockaddr *)&from, &length,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd != -1) {
			connection_take(http, listener, fd, &from, length, now_ns);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			   errno == ENOBUFS) {
			http->paused_until_ns = now_ns + SECOND_NS;
			return;
		} else if (errno != EINTR && errno != ECONNABORTED && errno != EPROTO) {
			return;
		}
	}
}

/* ---- serving --------------------------------------------------------------------------------- */

/* Paths and arguments are compared without unescaping: ours need no escapes. */
static size_t leave_escapes(void *context, struct MHD_Connection *connection, char *text)
{
	(void)context, (void)connection;
	return strlen(text);
}

static struct MHD_Daemon *start_daemon(struct serve_http *http, const struct serve_server *server)
{
	unsigned int flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME;
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, server->tls.cert },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, server->tls.key },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)server->tls.priorities },
		{ server->tls.client_ca ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0,
		  server->tls.client_ca },
		{ MHD_OPTION_END, 0, NULL },
	};

	if (server->has_tls)
		flags |= MHD_USE_TLS;
	else
		tls[0].option = MHD_OPTION_END;
	return MHD_start_daemon(
		flags, 0, NULL, NULL, http->answer, http->context, MHD_OPTION_ARRAY, tls,
		MHD_OPTION_NOTIFY_CONNECTION, note_connection, http, MHD_OPTION_NOTIFY_COMPLETED,
		note_completed, http, MHD_OPTION_UNESCAPE_CALLBACK, leave_escapes, NULL,
		MHD_OPTION_CONNECTION_LIMIT, 2 * SERVE_CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SERVE_CONNECTION_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)(IDLE_NS / SECOND_NS) + 15,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
}

static enum status start_server(struct serve_http *http, struct serve_server *server,
				const struct web_config *config, char *why, size_t why_size)
{
	struct epoll_event event = { .events = EPOLLIN };
	const union MHD_DaemonInfo *info;

	*server = (struct serve_server){ .epoll = -1, .has_tls = config->has_tls };
	if (config->has_tls && agent_tls_load(&server->tls, config, why, why_size) != OK)
		return ERR_FORMAT;
	server->daemon = start_daemon(http, server);
	info = server->daemon ? MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)
			      : NULL;
	if (info)
		server->epoll = info->epoll_fd;
	event.data.fd = server->epoll;
	if (server->epoll == -1 ||
	    epoll_ctl(http->loop, EPOLL_CTL_ADD, server->epoll, &event) == -1) {
		text_format(why, why_size, "cannot start the HTTP server%s",
			    config->has_tls && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES
				    ? ": this libmicrohttpd has no TLS"
				    : "");
		return ERR_SYSTEM;
	}
	return OK;
}

static void stop_server(struct serve_http *http, struct serve_server *server)
{
	if (server->epoll != -1)
		epoll_ctl(http->loop, EPOLL_CTL_DEL, server->epoll, NULL);
	/* libmicrohttpd does not stop with suspended connections. */
	for (size_t i = 0; server->daemon && i < SERVE_CONNECTIONS_MAX; i++)
		if (http->connections[i].fd != -1)
			connection_resume(&http->connections[i]);
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	agent_tls_release(&server->tls);
	*server = (struct serve_server){ .epoll = -1 };
}

static uint64_t run_server(const struct serve_server *server, uint64_t now_ns)
{
	MHD_UNSIGNED_LONG_LONG timeout_ms;

	if (server->daemon == NULL)
		return UINT64_MAX;
	MHD_run(server->daemon);
	if (MHD_get_timeout(server->daemon, &timeout_ms) != MHD_YES)
		return UINT64_MAX;
	return now_ns + timeout_ms * 1000000;
}

static size_t daemon_connections(const struct serve_server *server)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

	return info ? info->num_connections : 0;
}

uint64_t serve_http_run(struct serve_http *http, uint64_t now_ns)
{
	uint64_t next = drop_late(http, now_ns), at;

	http->has_waiting = false;
	at = give_turn(http, now_ns);
	next = at < next ? at : next;
	at = run_server(&http->server, now_ns);
	next = at < next ? at : next;
	if (http->old.daemon == NULL)
		return next;
	at = run_server(&http->old, now_ns);
	next = at < next ? at : next;
	if (now_ns >= http->old.until_ns || daemon_connections(&http->old) == 0)
		stop_server(http, &http->old);
	else if (http->old.until_ns < next)
		next = http->old.until_ns;
	return next;
}

/* ---- start and end --------------------------------------------------------------------------- */

static enum status read_config(struct web_config *config, const char *path, char *why,
			       size_t why_size)
{
	if (path)
		return web_config_read(config, path, why, why_size);
	*config = (struct web_config){ 0 };
	return OK;
}

enum status serve_http_init(struct serve_http *http, int loop, const char *path,
			    MHD_AccessHandlerCallback answer, void *context, char *why,
			    size_t why_size)
{
	enum status status;

	*http = (struct serve_http){ .loop = loop, .answer = answer, .context = context };
	http->server.epoll = http->old.epoll = -1;
	for (size_t i = 0; i < SERVE_CONNECTIONS_MAX; i++)
		http->connections[i].fd = -1;
	status = read_config(&http->config, path, why, why_size);
	if (status != OK)
		return status;
	status = web_auth_init(&http->auth);
	if (status != OK && http->config.user_count > 0) {
		text_format(why, why_size, "cannot check passwords: %s",
			    status == ERR_SYSTEM ? strerror(errno) : status_text(status));
		return status;
	}
	return start_server(http, &http->server, &http->config, why, why_size);
}

void serve_http_release(struct serve_http *http)
{
	child_release(&http->checker);
	stop_server(http, &http->old);
	stop_server(http, &http->server);
	web_config_release(&http->config);
	web_auth_release(&http->auth);
}

enum status serve_http_reload(struct serve_http *http, const char *path, char *why, size_t why_size)
{
	struct serve_server server;
	struct web_config config;
	enum status status = read_config(&config, path, why, why_size);

	/* Without TLS no new server is needed; connections are kept. */
	if (status == OK && (config.has_tls || http->server.has_tls)) {
		status = start_server(http, &server, &config, why, why_size);
		if (status == OK) {
			stop_server(http, &http->old);
			http->old = http->server;
			http->old.until_ns = clock_system_ns(CLOCK_MONOTONIC) + OLD_SERVER_NS;
			http->server = server;
		} else {
			stop_server(http, &server);
		}
	}
	if (status != OK) {
		web_config_release(&config);
		return status;
	}
	web_config_release(&http->config);
	http->config = config;
	return OK;
}
