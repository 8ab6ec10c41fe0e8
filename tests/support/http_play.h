/*
 * A libmicrohttpd that is played: tests say what a request has and read what is answered. Nothing is sent or received,
 * but sockets are real, so that it is seen who is dropped. One file of a program defines HTTP_PLAY_LIBRARY and has the
 * functions. Time is played, too, for sources that are included after this header.
 */
#ifndef HTTP_PLAY_H
#define HTTP_PLAY_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "common/clock.h"

enum { HTTP_PLAY_CONNECTIONS = 512, HTTP_PLAY_PAIRS = 8, HTTP_PLAY_TEXT = 4096 };

struct MHD_Response {
	unsigned int references;
	size_t length;
	void *bytes;
	char headers[HTTP_PLAY_TEXT]; /* "Name: value\n" */
	MHD_ContentReaderFreeCallback free_bytes;
	void *owner;
};

struct MHD_Connection {
	struct MHD_Daemon *daemon;
	int fd; /* -1: the slot is free */
	void *slot, *request;
	union MHD_ConnectionInfo info, session;
	const char *headers[HTTP_PLAY_PAIRS][2], *arguments[HTTP_PLAY_PAIRS][2];
	int suspended;
	bool is_resumed;
	bool is_waiting; /* to be added */
	/* The answer: */
	unsigned int code;
	struct MHD_Response *response;
};

struct MHD_Daemon {
	int epoll;
	unsigned int flags;
	MHD_AccessHandlerCallback answer;
	void *context;
	MHD_NotifyConnectionCallback notify;
	void *notify_context;
	MHD_RequestCompletedCallback completed;
	void *completed_context;
	size_t (*unescape)(void *context, struct MHD_Connection *connection, char *text);
	struct MHD_Connection connections[HTTP_PLAY_CONNECTIONS];
	size_t runs;
	char options[HTTP_PLAY_TEXT];
	union MHD_DaemonInfo info;
};

/* What the library does next. */
struct http_play {
	uint64_t now_ns;
	MHD_UNSIGNED_LONG_LONG timeout_ms; /* UINT64_MAX: none */
	bool fails_to_start, fails_to_add, fails_early, fails_to_respond, has_no_tls;
	bool adds_later;	   /* when it runs, as libmicrohttpd 1.0 does */
	void *session;		   /* of GnuTLS */
	size_t daemons, responses; /* that there are now */
};
extern struct http_play http_play;

uint64_t http_play_clock(clockid_t clock);
#define clock_system_ns http_play_clock

/* The connection with our slot. */
struct MHD_Connection *http_play_find(struct MHD_Daemon *daemon, const void *slot);
void http_play_completed(struct MHD_Connection *connection);
/* Its answer is dropped. */
void http_play_forget(struct MHD_Connection *connection);

#ifdef HTTP_PLAY_LIBRARY

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <unistd.h>

struct http_play http_play = { .timeout_ms = UINT64_MAX };

uint64_t http_play_clock(clockid_t clock)
{
	return clock == CLOCK_REALTIME ? http_play.now_ns + UINT64_C(1700000000000000000)
				       : http_play.now_ns;
}

static void http_play_note(struct MHD_Daemon *daemon, const char *name, const char *value)
{
	size_t used = strlen(daemon->options);

	snprintf(daemon->options + used, HTTP_PLAY_TEXT - used, "%s=%s\n", name, value);
}

static void http_play_number(struct MHD_Daemon *daemon, const char *name, unsigned long value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lu", value);
	http_play_note(daemon, name, text);
}

static void http_play_tls(struct MHD_Daemon *daemon, const struct MHD_OptionItem *items)
{
	for (; items->option != MHD_OPTION_END; items++)
		http_play_note(daemon,
			       items->option == MHD_OPTION_HTTPS_MEM_CERT    ? "cert"
			       : items->option == MHD_OPTION_HTTPS_MEM_KEY   ? "key"
			       : items->option == MHD_OPTION_HTTPS_MEM_TRUST ? "trust"
									     : "priorities",
			       items->option == MHD_OPTION_HTTPS_PRIORITIES ? items->ptr_value
									    : "PEM");
}

struct MHD_Daemon *MHD_start_daemon(unsigned int flags, uint16_t port, MHD_AcceptPolicyCallback apc,
				    void *apc_context, MHD_AccessHandlerCallback answer,
				    void *context, ...)
{
	struct MHD_Daemon *daemon = calloc(1, sizeof(*daemon));
	va_list list;

	(void)port, (void)apc, (void)apc_context;
	if (http_play.fails_to_start) {
		free(daemon);
		return NULL;
	}
	*daemon = (struct MHD_Daemon){ .flags = flags, .answer = answer, .context = context };
	daemon->epoll = epoll_create1(EPOLL_CLOEXEC);
	for (size_t i = 0; i < HTTP_PLAY_CONNECTIONS; i++)
		daemon->connections[i].fd = -1;
	va_start(list, context);
	for (int option; (option = va_arg(list, int)) != MHD_OPTION_END;) {
		switch (option) {
		case MHD_OPTION_ARRAY:
			http_play_tls(daemon, va_arg(list, struct MHD_OptionItem *));
			break;
		case MHD_OPTION_NOTIFY_CONNECTION:
			daemon->notify = va_arg(list, MHD_NotifyConnectionCallback);
			daemon->notify_context = va_arg(list, void *);
			break;
		case MHD_OPTION_NOTIFY_COMPLETED:
			daemon->completed = va_arg(list, MHD_RequestCompletedCallback);
			daemon->completed_context = va_arg(list, void *);
			break;
		case MHD_OPTION_UNESCAPE_CALLBACK:
			daemon->unescape =
				va_arg(list, size_t(*)(void *, struct MHD_Connection *, char *));
			(void)va_arg(list, void *);
			break;
		case MHD_OPTION_CONNECTION_LIMIT:
			http_play_number(daemon, "connections", va_arg(list, unsigned int));
			break;
		case MHD_OPTION_CONNECTION_MEMORY_LIMIT:
			http_play_number(daemon, "memory", va_arg(list, size_t));
			break;
		case MHD_OPTION_CONNECTION_TIMEOUT:
			http_play_number(daemon, "timeout", va_arg(list, unsigned int));
			break;
		default:
			http_play_number(daemon, "strict", va_arg(list, unsigned int));
		}
	}
	va_end(list);
	http_play.daemons++;
	return daemon;
}

static void http_play_close(struct MHD_Connection *connection)
{
	struct MHD_Daemon *daemon = connection->daemon;

	http_play_forget(connection);
	if (connection->slot && connection->request)
		http_play_completed(connection);
	daemon->notify(daemon->notify_context, connection, &connection->slot,
		       MHD_CONNECTION_NOTIFY_CLOSED);
	close(connection->fd);
	connection->fd = -1;
}

void MHD_stop_daemon(struct MHD_Daemon *daemon)
{
	for (size_t i = 0; i < HTTP_PLAY_CONNECTIONS; i++) {
		if (daemon->connections[i].suspended > 0)
			abort(); /* as libmicrohttpd would */
		if (daemon->connections[i].fd != -1)
			http_play_close(&daemon->connections[i]);
	}
	close(daemon->epoll);
	free(daemon);
	http_play.daemons--;
}

static enum MHD_Result http_play_begin(struct MHD_Connection *connection)
{
	connection->is_waiting = false;
	connection->daemon->notify(connection->daemon->notify_context, connection,
				   &connection->slot, MHD_CONNECTION_NOTIFY_STARTED);
	if (!http_play.fails_to_add)
		return MHD_YES;
	http_play_close(connection);
	return MHD_NO;
}

/* Connections that were shut down are noticed; the others are left to the test. */
enum MHD_Result MHD_run(struct MHD_Daemon *daemon)
{
	char byte;

	daemon->runs++;
	for (size_t i = 0; i < HTTP_PLAY_CONNECTIONS; i++)
		if (daemon->connections[i].fd != -1 && daemon->connections[i].is_waiting)
			http_play_begin(&daemon->connections[i]);
	for (size_t i = 0; i < HTTP_PLAY_CONNECTIONS; i++)
		if (daemon->connections[i].fd != -1 && daemon->connections[i].suspended == 0 &&
		    recv(daemon->connections[i].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
			http_play_close(&daemon->connections[i]);
	return MHD_YES;
}

enum MHD_Result MHD_get_timeout(struct MHD_Daemon *daemon, MHD_UNSIGNED_LONG_LONG *timeout)
{
	(void)daemon;
	*timeout = http_play.timeout_ms;
	return http_play.timeout_ms == UINT64_MAX ? MHD_NO : MHD_YES;
}

const union MHD_DaemonInfo *MHD_get_daemon_info(struct MHD_Daemon *daemon,
						enum MHD_DaemonInfoType type, ...)
{
	unsigned int count = 0;

	for (size_t i = 0; i < HTTP_PLAY_CONNECTIONS; i++)
		count += daemon->connections[i].fd != -1;
	if (type == MHD_DAEMON_INFO_EPOLL_FD)
		daemon->info.epoll_fd = daemon->epoll;
	else
		daemon->info.num_connections = count;
	return &daemon->info;
}

enum MHD_Result MHD_is_feature_supported(enum MHD_FEATURE feature)
{
	return feature == MHD_FEATURE_TLS && http_play.has_no_tls ? MHD_NO : MHD_YES;
}

enum MHD_Result MHD_add_connection(struct MHD_Daemon *daemon, MHD_socket fd,
				   const struct sockaddr *address, socklen_t length)
{
	struct MHD_Connection *connection = NULL;

	(void)address, (void)length;
	for (size_t i = 0; i < HTTP_PLAY_CONNECTIONS && connection == NULL; i++)
		if (daemon->connections[i].fd == -1)
			connection = &daemon->connections[i];
	if (http_play.fails_early) {
		close(fd);
		return MHD_NO;
	}
	*connection = (struct MHD_Connection){ .daemon = daemon,
					       .fd = fd,
					       .is_waiting = http_play.adds_later };
	return http_play.adds_later ? MHD_YES : http_play_begin(connection);
}

void MHD_suspend_connection(struct MHD_Connection *connection)
{
	connection->suspended++;
}

void MHD_resume_connection(struct MHD_Connection *connection)
{
	connection->suspended--;
	connection->is_resumed = true;
}

const union MHD_ConnectionInfo *MHD_get_connection_info(struct MHD_Connection *connection,
							enum MHD_ConnectionInfoType type, ...)
{
	if (type == MHD_CONNECTION_INFO_SOCKET_CONTEXT) {
		connection->info.socket_context = connection->slot;
		return &connection->info;
	}
	connection->session.tls_session = http_play.session;
	return http_play.session ? &connection->session : NULL;
}

const char *MHD_lookup_connection_value(struct MHD_Connection *connection, enum MHD_ValueKind kind,
					const char *key)
{
	const char *(*pairs)[2] =
		kind == MHD_HEADER_KIND ? connection->headers : connection->arguments;

	for (size_t i = 0; i < HTTP_PLAY_PAIRS && pairs[i][0]; i++)
		if (strcasecmp(pairs[i][0], key) == 0)
			return pairs[i][1];
	return NULL;
}

int MHD_get_connection_values(struct MHD_Connection *connection, enum MHD_ValueKind kind,
			      MHD_KeyValueIterator each, void *context)
{
	int count = 0;

	if (kind != MHD_HEADER_KIND)
		abort();
	for (; count < HTTP_PLAY_PAIRS && connection->headers[count][0]; count++)
		each(context, kind, connection->headers[count][0], connection->headers[count][1]);
	return count;
}

static struct MHD_Response *http_play_response(size_t length, void *bytes)
{
	struct MHD_Response *response;

	if (http_play.fails_to_respond)
		return NULL;
	response = calloc(1, sizeof(*response));
	response->references = 1;
	response->length = length;
	response->bytes = bytes;
	http_play.responses++;
	return response;
}

struct MHD_Response *MHD_create_response_from_buffer(size_t length, void *bytes,
						     enum MHD_ResponseMemoryMode mode)
{
	void *copy =
		mode == MHD_RESPMEM_MUST_COPY ? memcpy(malloc(length + 1), bytes, length) : NULL;
	struct MHD_Response *response = http_play_response(length, copy ? copy : bytes);

	if (response && copy) {
		response->free_bytes = free;
		response->owner = copy;
	} else {
		free(copy);
	}
	return response;
}

/* Whether the bytes are const depends on the version of the library. */
struct MHD_Response *http_play_owned(
	size_t length, void *bytes, MHD_ContentReaderFreeCallback callback,
	void *context) __asm__("MHD_create_response_from_buffer_with_free_callback_cls");
struct MHD_Response *http_play_owned(size_t length, void *bytes,
				     MHD_ContentReaderFreeCallback callback, void *context)
{
	struct MHD_Response *response = http_play_response(length, bytes);

	if (response) {
		response->free_bytes = callback;
		response->owner = context;
	}
	return response;
}

enum MHD_Result MHD_add_response_header(struct MHD_Response *response, const char *name,
					const char *value)
{
	size_t used = strlen(response->headers);

	snprintf(response->headers + used, HTTP_PLAY_TEXT - used, "%s: %s\n", name, value);
	return MHD_YES;
}

enum MHD_Result MHD_queue_response(struct MHD_Connection *connection, unsigned int code,
				   struct MHD_Response *response)
{
	http_play_forget(connection);
	connection->code = code;
	connection->response = response;
	response->references++;
	return MHD_YES;
}

void MHD_destroy_response(struct MHD_Response *response)
{
	if (--response->references > 0)
		return;
	if (response->free_bytes)
		response->free_bytes(response->owner);
	free(response);
	http_play.responses--;
}

struct MHD_Connection *http_play_find(struct MHD_Daemon *daemon, const void *slot)
{
	for (size_t i = 0; i < HTTP_PLAY_CONNECTIONS; i++)
		if (daemon->connections[i].fd != -1 && daemon->connections[i].slot == slot)
			return &daemon->connections[i];
	return NULL;
}

void http_play_completed(struct MHD_Connection *connection)
{
	struct MHD_Daemon *daemon = connection->daemon;

	daemon->completed(daemon->completed_context, connection, &connection->request,
			  MHD_REQUEST_TERMINATED_COMPLETED_OK);
}

void http_play_forget(struct MHD_Connection *connection)
{
	if (connection->response)
		MHD_destroy_response(connection->response);
	connection->response = NULL;
	connection->code = 0;
}

#endif
#endif
