/*
 * ringside-fetch with a libcurl that is played here: its options, its answers and how time passes are in the hands of
 * the tests. The part of the program that calls libcurl is included, because it is in no library.
 */
#include "tests/tap.h"

#if !__has_include(<curl/curl.h>)

int main(void)
{
	return tap_skip_all("no headers of libcurl");
}

#else

#define CURL_DISABLE_TYPECHECK 1
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/clock.h"

/* ---- time ------------------------------------------------------------------------------------ */

static uint64_t played_ms = 1000000;

static uint64_t played_clock_ns(clockid_t clock)
{
	(void)clock;
	return played_ms * 1000000;
}

/* ---- libcurl --------------------------------------------------------------------------------- */

enum { HANDLES_MAX = 32, LOG_BYTES = 8192 };

/* How a server behaves; answers after the last one are like the last. */
struct server {
	const char *url;
	struct {
		CURLcode code;
		long status;
		const char *body; /* in pieces of piece bytes */
		curl_off_t retry_after_s;
	} answers[3];
	size_t answer_count;
	size_t piece;
	const char *why;
	long number; /* of the system's error */
};

struct played {
	const struct server *server;
	size_t asked;
	void *own;
	curl_write_callback write;
	void *write_to;
	char *why;
	bool is_in, is_done;
	CURLcode code;
	long timeout_ms;
};

static const struct server *servers;
static size_t server_count;
static struct played *handles[HANDLES_MAX];
static size_t handle_count, most_in, polls, poll_ms[64];
static int adds_left; /* until adding fails; negative: never */
static char option_log[LOG_BYTES];

static void note_option(CURLoption option, const char *text, long number)
{
	size_t used = strlen(option_log);

	if (text)
		snprintf(option_log + used, LOG_BYTES - used, "%d=%s\n", (int)option, text);
	else
		snprintf(option_log + used, LOG_BYTES - used, "%d=%ld\n", (int)option, number);
}

CURL *curl_easy_init(void)
{
	return calloc(1, sizeof(struct played));
}

CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
	struct played *played = easy;
	const char *text = NULL;
	va_list list;

	va_start(list, option);
	if (option < CURLOPTTYPE_OBJECTPOINT) {
		long number = va_arg(list, long);

		if (option == CURLOPT_TIMEOUT_MS)
			played->timeout_ms = number;
		note_option(option, NULL, number);
	} else if (option == CURLOPT_WRITEFUNCTION) {
		played->write = va_arg(list, curl_write_callback);
	} else {
		void *pointer = va_arg(list, void *);

		if (option == CURLOPT_PRIVATE)
			played->own = pointer;
		else if (option == CURLOPT_WRITEDATA)
			played->write_to = pointer;
		else if (option == CURLOPT_ERRORBUFFER)
			played->why = pointer;
		else if (option != CURLOPT_HTTPHEADER)
			text = pointer;
		if (text)
			note_option(option, text, 0);
	}
	va_end(list);
	for (size_t i = 0; option == CURLOPT_URL && i < server_count; i++)
		if (strcmp(servers[i].url, text) == 0)
			played->server = &servers[i];
	return CURLE_OK;
}

static size_t turn_of(const struct played *played)
{
	size_t last = played->server->answer_count - 1;

	return played->asked - 1 < last ? played->asked - 1 : last;
}

CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
	struct played *played = easy;
	va_list list;

	va_start(list, info);
	if (info == CURLINFO_PRIVATE)
		*va_arg(list, void **) = played->own;
	else if (info == CURLINFO_RESPONSE_CODE)
		*va_arg(list, long *) = played->server->answers[turn_of(played)].status;
	else if (info == CURLINFO_OS_ERRNO)
		*va_arg(list, long *) = played->server->number;
	else if (info == CURLINFO_RETRY_AFTER)
		*va_arg(list, curl_off_t *) =
			played->server->answers[turn_of(played)].retry_after_s;
	va_end(list);
	return CURLE_OK;
}

const char *curl_easy_strerror(CURLcode code)
{
	return code == CURLE_SSL_CONNECT_ERROR ? "general words" : "others";
}

void curl_easy_cleanup(CURL *easy)
{
	for (size_t i = 0; i < handle_count; i++)
		if (handles[i] == easy)
			handles[i] = handles[--handle_count];
	free(easy);
}

CURLcode curl_global_init(long flags)
{
	return flags == CURL_GLOBAL_DEFAULT ? CURLE_OK : CURLE_FAILED_INIT;
}

CURLM *curl_multi_init(void)
{
	return (CURLM *)handles;
}

CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
	(void)multi, (void)option;
	return CURLM_OK;
}

struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text)
{
	(void)text;
	return list;
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy)
{
	struct played *played = easy;
	size_t in = 0;

	(void)multi;
	if (adds_left == 0)
		return CURLM_OUT_OF_MEMORY;
	adds_left--;
	if (played->asked == 0)
		handles[handle_count++] = played;
	played->is_in = true;
	played->is_done = false;
	played->asked++;
	for (size_t i = 0; i < handle_count; i++)
		in += handles[i]->is_in;
	most_in = in > most_in ? in : most_in;
	return CURLM_OK;
}

CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *easy)
{
	(void)multi;
	((struct played *)easy)->is_in = false;
	return CURLM_OK;
}

static void answer(struct played *played)
{
	const char *body = played->server->answers[turn_of(played)].body;
	size_t left = body ? strlen(body) : 0;

	played->code = played->server->answers[turn_of(played)].code;
	while (left > 0) {
		size_t piece = left < played->server->piece ? left : played->server->piece;
		char bytes[64];

		memcpy(bytes, body, piece);
		if (played->write(bytes, 1, piece, played->write_to) != piece) {
			played->code = CURLE_WRITE_ERROR;
			break;
		}
		body += piece;
		left -= piece;
	}
	if (played->why && played->server->why)
		snprintf(played->why, CURL_ERROR_SIZE, "%s", played->server->why);
	played->is_done = true;
}

CURLMcode curl_multi_perform(CURLM *multi, int *running)
{
	(void)multi;
	*running = 0;
	for (size_t i = 0; i < handle_count; i++)
		if (handles[i]->is_in && !handles[i]->is_done)
			answer(handles[i]);
	return CURLM_OK;
}

CURLMsg *curl_multi_info_read(CURLM *multi, int *left)
{
	static CURLMsg message;

	(void)multi;
	*left = 0;
	for (size_t i = 0; i < handle_count; i++)
		if (handles[i]->is_in && handles[i]->is_done) {
			message = (CURLMsg){ .msg = CURLMSG_DONE, .easy_handle = handles[i] };
			message.data.result = handles[i]->code;
			handles[i]->is_done = false;
			return &message;
		}
	return NULL;
}

CURLMcode curl_multi_poll(CURLM *multi, struct curl_waitfd fds[], unsigned int count, int ms,
			  int *found)
{
	(void)multi, (void)fds, (void)found, (void)count;
	if (polls == ARRAY_LENGTH(poll_ms))
		return CURLM_INTERNAL_ERROR;
	poll_ms[polls++] = (size_t)ms;
	played_ms += (uint64_t)ms;
	return CURLM_OK;
}

#undef main
#define main fetch_main
#define clock_system_ns played_clock_ns
#include "fetch/fetch_main.c"
#undef main
#define main test_fetch_transfers_main

/* ---- tests ----------------------------------------------------------------------------------- */

static const struct fetch_options usual = { .parallel = 2,
					    .timeout_ms = 10000,
					    .connect_ms = 3000,
					    .limit_bytes = 100,
					    .total_bytes = 1000 };

/* Asks all servers, with ids from 10 on. The frames and the exit code are compared. */
static void expect_frames(const char *sentence, const struct fetch_options *options,
			  const struct server *list, size_t count, const char *wanted)
{
	struct fetch_request requests[16];
	char got[8192] = "";
	int fds[2], code;
	ssize_t length;

	servers = list;
	server_count = count;
	handle_count = most_in = polls = 0;
	adds_left = -1;
	option_log[0] = '\0';
	if (pipe(fds) == -1)
		abort();
	for (size_t i = 0; i < count; i++)
		requests[i] = (struct fetch_request){ .id = 10 + (uint32_t)i,
						      .url = (char *)(uintptr_t)list[i].url };
	code = fetch_loop(options, requests, count, fds[1]);
	close(fds[1]);
	length = read(fds[0], got, sizeof(got) - 1);
	close(fds[0]);
	got[length > 0 ? length : 0] = '\0';
	if (!EXPECT_THAT(sentence, code == 0 && strcmp(got, wanted) == 0))
		printf("# got %d:\n%s\n", code, got);
	EXPECT_THAT("no transfer is left", handle_count == 0);
}

static void test_answers(void)
{
	static const struct server list[] = {
		{ .url = "http://a",
		  .answers = { { 0, 200, "hello", 0 } },
		  .answer_count = 1,
		  .piece = 2 },
		{ .url = "http://b", .answers = { { 0, 404, NULL, 0 } }, .answer_count = 1 },
		{ .url = "http://c",
		  .answers = { { 0, 100, "x", 0 } },
		  .answer_count = 1,
		  .piece = 9 },
		{ .url = "http://d",
		  .answers = { { 0, 999, "y", 0 } },
		  .answer_count = 1,
		  .piece = 9 },
		{ .url = "http://e",
		  .answers = { { 0, 99, "z", 0 } },
		  .answer_count = 1,
		  .piece = 9 },
		{ .url = "http://f",
		  .answers = { { 0, 1000, "z", 0 } },
		  .answer_count = 1,
		  .piece = 9 },
	};
	struct fetch_options options = usual;

	expect_frames(
		"two at a time", &options, list, 6,
		"10 200 5\nhello11 404 0\n12 100 1\nx13 999 1\ny14 0 6\nothers15 0 6\nothers");
	EXPECT_EQUAL(most_in, 2);
	EXPECT_THAT("what ends makes room for the next, without waiting", polls == 0);
	options.parallel = 1;
	expect_frames("one at a time", &options, list, 2, "10 200 5\nhello11 404 0\n");
	EXPECT_EQUAL(most_in, 1);
	expect_frames("none", &options, list, 0, "");
}

static void test_failures(void)
{
	static const struct server list[] = {
		{ .url = "http://a",
		  .answers = { { CURLE_OPERATION_TIMEDOUT, 0, NULL, 0 } },
		  .answer_count = 1 },
		{ .url = "http://b",
		  .answers = { { CURLE_COULDNT_CONNECT, 0, NULL, 0 } },
		  .answer_count = 1 },
		{ .url = "http://c",
		  .answers = { { CURLE_COULDNT_CONNECT, 0, NULL, 0 } },
		  .answer_count = 1,
		  .number = ECONNREFUSED },
		{ .url = "http://d",
		  .answers = { { CURLE_COULDNT_RESOLVE_HOST, 0, NULL, 0 } },
		  .answer_count = 1 },
		{ .url = "http://e",
		  .answers = { { CURLE_GOT_NOTHING, 0, NULL, 0 } },
		  .answer_count = 1 },
		{ .url = "http://f",
		  .answers = { { CURLE_PARTIAL_FILE, 200, "abc", 0 } },
		  .answer_count = 1,
		  .piece = 3 },
		{ .url = "http://g",
		  .answers = { { CURLE_WEIRD_SERVER_REPLY, 0, NULL, 0 } },
		  .answer_count = 1 },
		{ .url = "http://h",
		  .answers = { { CURLE_SSL_CONNECT_ERROR, 0, NULL, 0 } },
		  .answer_count = 1 },
		{ .url = "http://i",
		  .answers = { { CURLE_SSL_CONNECT_ERROR, 503, NULL, 1 } },
		  .answer_count = 1,
		  .why = "its own\x1bwords" },
	};
	struct fetch_options options = usual;

	options.timeout_ms = 2500;
	expect_frames("each failure in words", &options, list, ARRAY_LENGTH(list),
		      "10 0 31\nno complete answer within 2.5 s"
		      "11 0 14\ncannot connect"
		      "12 0 34\ncannot connect: Connection refused"
		      "13 0 25\nits name does not resolve"
		      "14 0 42\nit closed the connection without an answer"
		      "15 0 52\nit closed the connection in the middle of the answer"
		      "16 0 22\nits answer is not HTTP"
		      "17 0 13\ngeneral words"
		      "18 0 13\nits own?words");
}

static void test_limits(void)
{
	static const struct server list[] = {
		{ .url = "http://a",
		  .answers = { { 0, 200, "12345678", 0 } },
		  .answer_count = 1,
		  .piece = 3 },
		{ .url = "http://b",
		  .answers = { { 0, 200, "1234", 0 } },
		  .answer_count = 1,
		  .piece = 3 },
	};
	struct fetch_options options = usual;

	options.limit_bytes = 8;
	options.total_bytes = 12;
	expect_frames("exactly as much as is allowed", &options, list, 2,
		      "10 200 8\n1234567811 200 4\n1234");
	options.total_bytes = 11;
	options.parallel = 1;
	expect_frames("one byte too much in total", &options, list, 2,
		      "10 200 8\n1234567811 0 42\nall answers together exceed the size limit");
	options.total_bytes = 100;
	options.limit_bytes = 7;
	expect_frames("one byte too much in one answer", &options, list, 2,
		      "10 0 33\nthe answer exceeds the size limit11 200 4\n1234");
}

static void test_retries(void)
{
	static const struct server list[] = {
		{ .url = "http://a",
		  .answers = { { 0, 503, "busy", 2 }, { 0, 503, "busy", 3 }, { 0, 200, "ok", 0 } },
		  .answer_count = 3,
		  .piece = 9 },
		{ .url = "http://b",
		  .answers = { { 0, 503, "b", 1 }, { 0, 200, "fine", 0 } },
		  .answer_count = 2,
		  .piece = 9 },
	};
	static const struct server never[] = {
		{ .url = "http://late",
		  .answers = { { 0, 503, "late", 10 } },
		  .answer_count = 1,
		  .piece = 9 },
		{ .url = "http://zero",
		  .answers = { { 0, 503, "zero", 0 } },
		  .answer_count = 1,
		  .piece = 9 },
		{ .url = "http://other",
		  .answers = { { 0, 500, "other", 1 } },
		  .answer_count = 1,
		  .piece = 9 },
	};
	static const struct server always[] = {
		{ .url = "http://a",
		  .answers = { { 0, 503, "busy", 1 } },
		  .answer_count = 1,
		  .piece = 9 },
	};
	static const struct server hour[] = {
		{ .url = "http://a",
		  .answers = { { 0, 503, "busy", 3600 }, { 0, 200, "ok", 0 } },
		  .answer_count = 2,
		  .piece = 9 },
		{ .url = "http://b",
		  .answers = { { 0, 503, "busy", 3601 }, { 0, 200, "ok", 0 } },
		  .answer_count = 2,
		  .piece = 9 },
	};
	struct fetch_options options = usual;
	uint64_t before_ms = played_ms;

	options.total_bytes = 8; /* what is asked again is not counted twice */
	expect_frames("both are asked again when they want to be", &options, list, 2,
		      "11 200 4\nfine10 200 2\nok");
	EXPECT_EQUAL(played_ms - before_ms, 5000);
	EXPECT_THAT("in steps of a second", polls == 5 && poll_ms[0] == 1000 && poll_ms[4] == 1000);
	options.total_bytes = 1000;
	expect_frames("not when it would be too late, now, or for another reason", &options, never,
		      3, "10 503 4\nlate11 503 4\nzero12 500 5\nother");
	EXPECT_EQUAL(polls, 0);
	before_ms = played_ms;
	expect_frames("eight times at most", &options, always, 1, "10 503 4\nbusy");
	EXPECT_EQUAL(played_ms - before_ms, 7000);
	EXPECT_THAT("with the time that is left", strstr(option_log, "155=9000\n") != NULL &&
							  strstr(option_log, "155=3000\n") != NULL);
	options.timeout_ms = 4000000;
	options.parallel = 1;
	polls = 0;
	expect_frames("an hour is the most", &options, hour + 1, 1, "10 503 4\nbusy");
}

static void test_options(void)
{
	static const struct server list[] = {
		{ .url = "http://a", .answers = { { 0, 200, NULL, 0 } }, .answer_count = 1 },
	};
	static const char common[] = "10002=http://a\n99=1\n43=1\n52=0\n10004=\n84=2\n10102=gzip\n"
				     "10018=ringside-fetch/" RINGSIDE_VERSION "\n155=10000\n"
				     "156=3000\n";
	struct fetch_options options = usual;

	expect_frames("usual options", &options, list, 1, "10 200 0\n");
	EXPECT_THAT("no redirects, no proxy, gzip, limits of time",
		    strncmp(option_log, common, strlen(common)) == 0);
	EXPECT_THAT("http and https alone", strstr(option_log, "http,https") != NULL ||
						    strstr(option_log, "181=3\n") != NULL);
	EXPECT_THAT("certificates are checked, nobody is named",
		    strstr(option_log, "64=") == NULL && strstr(option_log, "107=") == NULL);
	snprintf(options.user, sizeof(options.user), "anna:secret");
	snprintf(options.bearer, sizeof(options.bearer), "token");
	options.ca_file = "/ca.pem";
	options.is_insecure = true;
	expect_frames("a user", &options, list, 1, "10 200 0\n");
	EXPECT_THAT("the user goes before the token",
		    strstr(option_log, "107=1\n10005=anna:secret\n10065=/ca.pem\n64=0\n81=0\n") !=
				    NULL &&
			    strstr(option_log, "token") == NULL);
	options.user[0] = '\0';
	expect_frames("a token", &options, list, 1, "10 200 0\n");
	EXPECT(strstr(option_log, "107=64\n10220=token\n") != NULL);
}

static void test_memory(void)
{
	struct fetch_request request = { .id = 3, .url = (char *)(uintptr_t) "http://a" };
	struct fetch_options options = usual;
	char got[128] = "";
	int fds[2];

	if (pipe(fds) == -1)
		abort();
	adds_left = 0;
	EXPECT_EQUAL(fetch_loop(&options, &request, 1, fds[1]), 0);
	EXPECT(read(fds[0], got, sizeof(got) - 1) > 0);
	EXPECT_THAT("libcurl without memory is a frame, too",
		    strcmp(got, "3 0 33\nnot enough memory for the request") == 0);
	close(fds[0]);
	close(fds[1]);
}

/* ---- requests -------------------------------------------------------------------------------- */

static int read_from(const char *text, struct fetch_request **list, size_t *count)
{
	FILE *before = stdin;
	int code;

	stdin = fmemopen((char *)(uintptr_t)text, strlen(text), "r");
	if (stdin == NULL)
		abort();
	code = read_requests(list, count);
	fclose(stdin);
	stdin = before;
	return code;
}

static void forget(struct fetch_request *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		list[i].url = list[i].socket = NULL;
	free(list);
}

static void test_requests(void)
{
	struct fetch_request *list;
	char *line = calloc(1, FETCH_LINE_MAX + 16);
	size_t count;

	if (line == NULL || freopen("/dev/null", "w", stderr) == NULL)
		abort();
	EXPECT_EQUAL(read_from("0 http://a\n7 http://b/c\n", &list, &count), -1);
	EXPECT(count == 2 && list[0].id == 0 && list[1].id == 7 &&
	       strcmp(list[1].url, "http://b/c") == 0);
	forget(list, count);
	EXPECT_THAT("the last line needs no end",
		    read_from("1 http://a", &list, &count) == -1 && count == 1);
	forget(list, count);
	EXPECT_THAT("what is no request is wrong usage",
		    read_from("0 http://a\nhello\n", &list, &count) == 2 && count == 1);
	forget(list, count);
	memset(line, 'a', FETCH_LINE_MAX + 8);
	memcpy(line, "1 http://", 9);
	EXPECT_THAT("a line that is too long", read_from(line, &list, &count) == 2 && count == 0);
	forget(list, count);
	free(line);
}

static void test_pipe(void)
{
	int fds[2], file = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (pipe(fds) == -1 || file == -1)
		abort();
	stop_waiting(fds[1]);
	stop_waiting(file);
	EXPECT_THAT("a pipe does not block", fcntl(fds[1], F_GETFL) & O_NONBLOCK);
	EXPECT_THAT("and is still for writing", (fcntl(fds[1], F_GETFL) & O_ACCMODE) == O_WRONLY);
	EXPECT_THAT("other files stay as they are", !(fcntl(file, F_GETFL) & O_NONBLOCK));
	stop_waiting(-1);
	close(fds[0]);
	close(fds[1]);
	close(file);
}

int main(void)
{
	(void)fetch_main;
	test_answers();
	test_failures();
	test_limits();
	test_retries();
	test_options();
	test_memory();
	test_requests();
	test_pipe();
	return tap_done();
}

#endif
