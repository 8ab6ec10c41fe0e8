/*
 * One thread, one curl_multi. A transfer's bytes are kept until it is over, bounded by the limit of one
 * answer and of all; then they become a frame (fetch.h). While much waits to be read, no new request
 * starts.
 *
 * Servers are not trusted: redirects are not followed (they could lead anywhere), schemes other than http
 * and https are rejected by libcurl itself, and compressed answers are counted while they are decompressed.
 * A server that says when to retry (503 with Retry-After) is asked again, if that is within the time limit
 * of its request.
 */
#include <curl/curl.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text.h"
#include "fetch/fetch.h"

/* The transfers, by libcurl. */

/* Unread frames: beyond this no request starts. */
enum { WAITING_MOST = 64 << 20, POLL_MS = 1000, TRIES_MOST = 8 };

struct transfer {
	struct fetching *fetching;
	const struct fetch_request *request;
	CURL *easy;
	char *bytes;
	size_t length;
	size_t room;
	uint64_t until_ms; /* monotonic: its time limit */
	uint64_t again_ms; /* monotonic: time of the retry; 0: it is in progress */
	unsigned int tries;
	struct transfer *next; /* of those to be retried */
	const char *refused;   /* why we ended it; static; NULL: we did not */
	char why[CURL_ERROR_SIZE];
};

struct fetching {
	const struct fetch_options *options;
	CURLM *multi;
	struct curl_slist *headers;
	struct fetch_out out;
	struct transfer *again;
	uint64_t total; /* bytes of all answers so far */
	size_t running;
};

static uint64_t now_ms(void)
{
	return clock_system_ns(CLOCK_MONOTONIC) / 1000000;
}

/* ---- one transfer ---------------------------------------------------------------------------- */

static bool make_room(struct transfer *transfer, size_t more)
{
	size_t needed = transfer->length + more, room;
	char *grown;

	if (needed <= transfer->room)
		return true;
	room = needed < transfer->room * 2 ? transfer->room * 2 : needed;
	grown = realloc(transfer->bytes, room);
	if (grown == NULL)
		return false;
	transfer->bytes = grown;
	transfer->room = room;
	return true;
}

/* Returning fewer bytes than given ends the transfer. */
static size_t take_bytes(char *bytes, size_t size, size_t count, void *context)
{
	struct transfer *transfer = context;
	const struct fetch_options *options = transfer->fetching->options;
	size_t length = size * count;

	if (transfer->length + length > options->limit_bytes)
		transfer->refused = "the answer exceeds the size limit";
	else if (transfer->fetching->total + length > options->total_bytes)
		transfer->refused = "all answers together exceed the size limit";
	else if (!make_room(transfer, length))
		transfer->refused = "not enough memory for the answer";
	if (transfer->refused)
		return 0;
	memcpy(transfer->bytes + transfer->length, bytes, length);
	transfer->length += length;
	transfer->fetching->total += length;
	return length;
}

static void set_secrets(CURL *easy, const struct fetch_options *options)
{
	if (options->user[0] != '\0') {
		curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		curl_easy_setopt(easy, CURLOPT_USERPWD, options->user);
	} else if (options->bearer[0] != '\0') {
		curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
		curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, options->bearer);
	}
	if (options->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, options->ca_file);
	if (options->is_insecure) {
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

static void set_protocols(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
	/* Name lookups that do not return are abandoned. */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
}

static void set_up(struct transfer *transfer)
{
	const struct fetch_options *options = transfer->fetching->options;
	CURL *easy = transfer->easy;

	curl_easy_setopt(easy, CURLOPT_URL, transfer->request->url);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->why);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 1L);
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	/* No proxy, whatever the environment says: it could read secrets and answer for nodes. */
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip");
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->fetching->headers);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "ringside-fetch/" RINGSIDE_VERSION);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)options->timeout_ms);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)options->connect_ms);
	if (transfer->request->socket)
		curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, transfer->request->socket);
	set_protocols(easy);
	set_secrets(easy, options);
}

static enum status fetch_say_why(struct fetching *fetching, uint32_t id, const char *why)
{
	char *text = strdup(why);

	return fetch_out_add(&fetching->out, id, 0, text, text ? strlen(text) : 0);
}

static enum status fetch_begin(struct fetching *fetching, const struct fetch_request *request)
{
	struct transfer *transfer = calloc(1, sizeof(*transfer));

	if (transfer == NULL)
		return fetch_say_why(fetching, request->id, "not enough memory for the request");
	transfer->fetching = fetching;
	transfer->request = request;
	transfer->until_ms = now_ms() + fetching->options->timeout_ms;
	transfer->easy = curl_easy_init();
	if (transfer->easy)
		set_up(transfer);
	if (transfer->easy == NULL ||
	    curl_multi_add_handle(fetching->multi, transfer->easy) != CURLM_OK) {
		curl_easy_cleanup(transfer->easy);
		free(transfer);
		return fetch_say_why(fetching, request->id, "not enough memory for the request");
	}
	fetching->running++;
	return OK;
}

/* One line, without control bytes, that is clear without knowing libcurl. */
static const char *why_failed(const struct transfer *transfer, CURLcode code,
			      char text[static FETCH_WHY_MAX])
{
	double seconds = (double)transfer->fetching->options->timeout_ms / 1000;
	long number = 0;

	if (transfer->refused)
		return transfer->refused;
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		text_format(text, FETCH_WHY_MAX, "no complete answer within %g s", seconds);
		return text;
	case CURLE_COULDNT_CONNECT:
		curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &number);
		text_format(text, FETCH_WHY_MAX, "cannot connect%s%s", number ? ": " : "",
			    number ? strerror((int)number) : "");
		return text;
	case CURLE_COULDNT_RESOLVE_HOST:
		return "its name does not resolve";
	case CURLE_GOT_NOTHING:
		return "it closed the connection without an answer";
	case CURLE_PARTIAL_FILE:
		return "it closed the connection in the middle of the answer";
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
		return "its answer is not HTTP";
	default:
		text_from_field(text, FETCH_WHY_MAX,
				transfer->why[0] ? transfer->why : curl_easy_strerror(code),
				FETCH_WHY_MAX - 1);
		return text;
	}
}

/* ---- retries --------------------------------------------------------------------------------- */

/* Does it say when to retry, and is that in time? Then it stays, and its answer is dropped. */
static bool put_off(struct fetching *fetching, struct transfer *transfer, long answer)
{
	curl_off_t seconds = 0;
	uint64_t again_ms;

	if (answer != 503 || ++transfer->tries >= TRIES_MOST || transfer->refused ||
	    curl_easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &seconds) != CURLE_OK ||
	    seconds <= 0 || seconds > 3600)
		return false;
	again_ms = now_ms() + (uint64_t)seconds * 1000;
	if (again_ms >= transfer->until_ms)
		return false;
	fetching->total -= transfer->length;
	transfer->length = 0;
	transfer->again_ms = again_ms;
	transfer->next = fetching->again;
	fetching->again = transfer;
	curl_multi_remove_handle(fetching->multi, transfer->easy);
	return true;
}

static enum status ask_again(struct fetching *fetching)
{
	uint64_t now = now_ms();

	for (struct transfer **link = &fetching->again; *link;) {
		struct transfer *transfer = *link;

		if (transfer->again_ms > now) {
			link = &transfer->next;
			continue;
		}
		*link = transfer->next;
		curl_easy_setopt(transfer->easy, CURLOPT_TIMEOUT_MS,
				 (long)(transfer->until_ms > now ? transfer->until_ms - now : 1));
		if (curl_multi_add_handle(fetching->multi, transfer->easy) != CURLM_OK)
			return ERR_NO_SPACE;
	}
	return OK;
}

static int wait_at_most_ms(const struct fetching *fetching)
{
	uint64_t now = now_ms(), least = POLL_MS;

	for (const struct transfer *at = fetching->again; at; at = at->next)
		if (at->again_ms < now + least)
			least = at->again_ms > now ? at->again_ms - now : 0;
	return (int)least;
}

static enum status fetch_finish(struct fetching *fetching, CURL *easy, CURLcode code)
{
	struct transfer *transfer = NULL;
	char text[FETCH_WHY_MAX];
	enum status status;
	long answer = 0;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &answer);
	if (code == CURLE_OK && put_off(fetching, transfer, answer))
		return OK;
	if (code == CURLE_OK && !transfer->refused && answer >= 100 && answer <= 999) {
		status = fetch_out_add(&fetching->out, transfer->request->id, (int)answer,
				       transfer->bytes, transfer->length);
	} else {
		status = fetch_say_why(fetching, transfer->request->id,
				       why_failed(transfer, code, text));
		free(transfer->bytes);
	}
	curl_multi_remove_handle(fetching->multi, easy);
	curl_easy_cleanup(easy);
	free(transfer);
	fetching->running--;
	return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static enum status finish_done(struct fetching *fetching)
{
	enum status status = OK;
	CURLMsg *message;
	int left;

	while (status == OK && (message = curl_multi_info_read(fetching->multi, &left)) != NULL)
		if (message->msg == CURLMSG_DONE)
			status = fetch_finish(fetching, message->easy_handle, message->data.result);
	return status;
}

static enum status wait_for_news(struct fetching *fetching)
{
	struct curl_waitfd reader = { fetching->out.fd, CURL_WAIT_POLLOUT, 0 };
	unsigned int readers = fetching->out.waiting > 0;

	return curl_multi_poll(fetching->multi, &reader, readers, wait_at_most_ms(fetching),
			       NULL) == CURLM_OK
		       ? OK
		       : ERR_SYSTEM;
}

static bool can_begin(const struct fetching *fetching, size_t left)
{
	return left > 0 && fetching->running < fetching->options->parallel &&
	       fetching->out.waiting < WAITING_MOST;
}

static bool is_busy(const struct fetching *fetching)
{
	return fetching->running > 0 || fetching->out.first != NULL;
}

static enum status go_through(struct fetching *fetching, const struct fetch_request *requests,
			      size_t count)
{
	size_t begun = 0;
	int running;

	while (begun < count || is_busy(fetching)) {
		enum status status = OK;

		while (status == OK && can_begin(fetching, count - begun))
			status = fetch_begin(fetching, &requests[begun++]);
		if (status == OK)
			status = ask_again(fetching);
		if (status == OK && curl_multi_perform(fetching->multi, &running) != CURLM_OK)
			status = ERR_NO_SPACE;
		if (status == OK)
			status = finish_done(fetching);
		if (status == OK)
			status = fetch_out_write(&fetching->out);
		/* What just ended makes room for the next. */
		if (status == OK && !can_begin(fetching, count - begun) && is_busy(fetching))
			status = wait_for_news(fetching);
		if (status != OK)
			return status;
	}
	return OK;
}

/* Every request gets its frame on `fd`. Returns the exit code, after printing an error. */
static int fetch_loop(const struct fetch_options *options, const struct fetch_request *requests,
		      size_t count, int fd)
{
	struct fetching fetching = { .options = options };
	enum status status;

	fetch_out_init(&fetching.out, fd);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0 ||
	    (fetching.multi = curl_multi_init()) == NULL) {
		fprintf(stderr, "ringside-fetch: libcurl failed to start\n");
		return 1;
	}
	curl_multi_setopt(fetching.multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)options->parallel);
	/* No "Expect: 100-continue": a body is never sent. */
	fetching.headers = curl_slist_append(NULL, "Expect:");
	status = go_through(&fetching, requests, count);
	if (status == ERR_SYSTEM)
		return 1;
	if (status != OK)
		fprintf(stderr, "ringside-fetch: out of memory\n");
	return status == OK ? 0 : 1;
}

/* ringside-fetch: see docs/ARCHITECTURE.md. `ringside doctor` runs it. */

/* Whatever a server does to us: no core file with a password, no privileges through a set-user-id program. */
static void give_up_rights(void)
{
	const struct rlimit none = { 0, 0 };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	setrlimit(RLIMIT_CORE, &none);
	signal(SIGPIPE, SIG_IGN);
}

/* The other end of a pipe may be slow. Other files, also a terminal, would stay non-blocking for later
 * users. */
static void stop_waiting(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	if (flags != -1 && fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

static int request_refuse(size_t line, const char *what)
{
	fprintf(stderr, "ringside-fetch: line %zu of the requests: %s\n", line, what);
	return 2;
}

/* Reads all requests before the first is sent, so that the writer need not read meanwhile. */
static int read_requests(struct fetch_request **list, size_t *count)
{
	struct fetch_request *requests = calloc(FETCH_REQUESTS_MAX, sizeof(*requests));
	char line[FETCH_LINE_MAX];
	char *kept;

	*count = 0;
	*list = requests;
	while (requests && fgets(line, sizeof(line), stdin)) {
		size_t length = strcspn(line, "\n");

		if (line[length] == '\0' && !feof(stdin))
			return request_refuse(*count + 1, "too long");
		line[length] = '\0';
		if (*count == FETCH_REQUESTS_MAX)
			return request_refuse(*count + 1, "too many");
		kept = strdup(line);
		if (kept == NULL)
			return request_refuse(*count + 1, "out of memory");
		if (fetch_request_parse(&requests[*count], kept) != OK)
			return request_refuse(*count + 1, "not \"ID http://...\"");
		++*count;
	}
	return requests ? -1 : request_refuse(1, "out of memory");
}

int main(int argc, char **argv)
{
	struct fetch_options options;
	struct fetch_request *requests;
	size_t count;
	int code = fetch_options_parse(&options, argc, argv);

	if (code != -1)
		return code;
	give_up_rights();
	code = read_requests(&requests, &count);
	if (code != -1)
		return code;
	stop_waiting(STDOUT_FILENO);
	code = fetch_loop(&options, requests, count, STDOUT_FILENO);
	/* Name lookups still in progress no longer matter. */
	_exit(code);
}
