#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/text.h"
#include "fetch/fetch.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

/* ---- frames ---------------------------------------------------------------------------------- */

static void test_frames_bytewise(void)
{
	static const char text[] = "3 200 5\nhello0 0 9\nno answer7 404 0\n";
	struct fetch_frames frames;
	struct fetch_frame frame;
	size_t found = 0;
	int is_good = 1;

	fetch_frames_init(&frames, 100);
	for (size_t i = 0; i + 1 < sizeof(text); i++) {
		is_good &= fetch_frames_add(&frames, text + i, 1) == OK;
		while (fetch_frames_next(&frames, &frame) == OK) {
			if (found == 0)
				is_good &= frame.id == 3 && frame.status == 200 &&
					   frame.length == 5 &&
					   memcmp(frame.bytes, "hello", 5) == 0;
			if (found == 1)
				is_good &= frame.id == 0 && frame.status == 0 && frame.length == 9;
			if (found == 2)
				is_good &=
					frame.id == 7 && frame.status == 404 && frame.length == 0;
			found++;
		}
	}
	EXPECT_THAT("frames are complete, however the pipe splits them", is_good && found == 3);
	EXPECT(fetch_frames_next(&frames, &frame) == ERR_GONE);
	EXPECT_THAT("what was taken makes room",
		    fetch_frames_add(&frames, "1", 1) == OK && frames.used == 1);
	fetch_frames_release(&frames);
}

static enum status first_of(const char *text)
{
	struct fetch_frames frames;
	struct fetch_frame frame;
	enum status status;

	fetch_frames_init(&frames, 100);
	fetch_frames_add(&frames, text, strlen(text));
	status = fetch_frames_next(&frames, &frame);
	fetch_frames_release(&frames);
	return status;
}

static void test_frames_bad(void)
{
	EXPECT(first_of("") == ERR_GONE);
	EXPECT(first_of("1 200 100\n") == ERR_GONE);
	EXPECT_THAT("too long", first_of("1 200 101\n") == ERR_FORMAT);
	EXPECT(first_of("1 200 99999999999999999999999\n") == ERR_FORMAT);
	EXPECT(first_of("1 1000 1\nx") == ERR_FORMAT);
	EXPECT(first_of("65536 200 1\nx") == ERR_FORMAT);
	EXPECT(first_of("-1 200 1\nx") == ERR_FORMAT);
	EXPECT(first_of("1 200\n") == ERR_FORMAT);
	EXPECT(first_of("1 200 1 \nx") == ERR_FORMAT);
	EXPECT(first_of(" 1 200 1\nx") == ERR_FORMAT);
	EXPECT(first_of("\n") == ERR_FORMAT);
	EXPECT_THAT("a line without an end",
		    first_of("111111111111111111111111111111111111111111111111111") == ERR_FORMAT);
}

/* A line of `length` characters, zeros in the last number included. */
static enum status first_of_length(size_t length, bool has_end)
{
	char text[100];
	size_t digits = length - strlen("1 200 ");

	text_format(text, sizeof(text), "1 200 %0*d%shello", (int)digits, 5, has_end ? "\n" : "");
	if (!has_end)
		text[length] = '\0';
	return first_of(text);
}

static void test_frames_limits(void)
{
	EXPECT_EQUAL(first_of_length(FETCH_HEADER_MAX - 1, true), OK);
	EXPECT_EQUAL(first_of_length(FETCH_HEADER_MAX, true), ERR_FORMAT);
	EXPECT_EQUAL(first_of_length(FETCH_HEADER_MAX - 1, false), ERR_GONE);
	EXPECT_EQUAL(first_of_length(FETCH_HEADER_MAX, false), ERR_FORMAT);
	EXPECT(first_of("1x200 1\nx") == ERR_FORMAT && first_of("1 200x1\nx") == ERR_FORMAT);
	EXPECT(first_of("1 200 1x\nx") == ERR_FORMAT && first_of("1 200 /\nx") == ERR_FORMAT);
	EXPECT(first_of("1 200 :\nx") == ERR_FORMAT && first_of(" 200 1\nx") == ERR_FORMAT);
	EXPECT(first_of("65535 999 1\nx") == OK && first_of("0 0 0\n") == OK);
}

/* ---- outgoing frames -------------------------------------------------------------------------- */

enum { BODY = 10000, PIPE = 4096 };

/* A pipe that takes one page, and a body that is longer. */
static void test_out(void)
{
	static char all[3 * BODY], wanted[3 * BODY];
	char *body = malloc(BODY);
	size_t got = 0, total;
	struct fetch_out out;
	unsigned int rounds = 0;
	bool is_good = true;
	ssize_t now;
	int ends[2];

	if (body == NULL || pipe2(ends, O_NONBLOCK) == -1 ||
	    fcntl(ends[1], F_SETPIPE_SZ, PIPE) != PIPE)
		abort();
	for (int i = 0; i < BODY; i++)
		body[i] = (char)('a' + i % 23);
	text_format(wanted, sizeof(wanted), "7 200 10000\n%.*s8 404 0\n9 0 4\nlate", BODY, body);
	total = strlen(wanted);
	fetch_out_init(&out, ends[1]);
	EXPECT_EQUAL(fetch_out_add(&out, 7, 200, body, BODY), OK);
	EXPECT_EQUAL(fetch_out_add(&out, 8, 404, NULL, 0), OK);
	EXPECT_EQUAL(fetch_out_add(&out, 9, 0, strdup("late"), 4), OK);
	EXPECT_EQUAL(out.waiting, total);
	for (; got < total && is_good && rounds < 100; rounds++) {
		is_good = fetch_out_write(&out) == OK && out.waiting < total - got;
		now = read(ends[0], all + got, 1000);
		got += now > 0 ? (size_t)now : 0;
	}
	EXPECT_THAT("a slow reader gets everything in order",
		    is_good && got == total && memcmp(all, wanted, total) == 0);
	EXPECT(out.waiting == 0 && fetch_out_write(&out) == OK && out.first == NULL &&
	       out.last == NULL);
	EXPECT_EQUAL(fetch_out_add(&out, 1, 200, strdup("x"), 1), OK);
	EXPECT_EQUAL(fetch_out_write(&out), OK);
	EXPECT_THAT("and what comes later",
		    read(ends[0], all, 100) == 9 && memcmp(all, "1 200 1\nx", 9) == 0);
	signal(SIGPIPE, SIG_IGN);
	close(ends[0]);
	EXPECT_EQUAL(fetch_out_add(&out, 2, 200, NULL, 0), OK);
	EXPECT_THAT("without a reader", fetch_out_write(&out) == ERR_SYSTEM);
	close(ends[1]);
	free(out.first);
}

static void test_header(void)
{
	char header[FETCH_HEADER_MAX];

	EXPECT_EQUAL(fetch_frame_header(header, 65535, 200, (size_t)1 << 40), 24);
	EXPECT(strcmp(header, "65535 200 1099511627776\n") == 0);
}

/* ---- requests -------------------------------------------------------------------------------- */

static enum status parse(const char *text, struct fetch_request *request, char line[200])
{
	text_copy(line, 200, text);
	return fetch_request_parse(request, line);
}

static void test_requests(void)
{
	struct fetch_request request;
	char line[200];

	EXPECT(parse("12 http://a:1/x?y=1", &request, line) == OK && request.id == 12 &&
	       strcmp(request.url, "http://a:1/x?y=1") == 0 && request.socket == NULL);
	EXPECT(parse("0 http://localhost/ /run/a b.sock", &request, line) == OK &&
	       strcmp(request.socket, "/run/a b.sock") == 0);
	EXPECT(parse("0 http://localhost/ relative", &request, line) == ERR_FORMAT);
	EXPECT(parse("0", &request, line) == ERR_FORMAT);
	EXPECT(parse("x http://a", &request, line) == ERR_FORMAT);
	EXPECT(parse("65536 http://a", &request, line) == ERR_FORMAT);
	EXPECT(parse("0 file:///etc/passwd", &request, line) == ERR_FORMAT);
	EXPECT(parse("0 ftp://a/", &request, line) == ERR_FORMAT);
	EXPECT_THAT("no passwords in addresses",
		    parse("0 http://me:secret@a/", &request, line) == ERR_FORMAT);
	EXPECT(parse("0 http://a/me@b", &request, line) == OK);
	EXPECT(parse("0 http:///", &request, line) == ERR_FORMAT);
	EXPECT(parse("0 http://a\t", &request, line) == ERR_FORMAT);
}

static int takes(const char *text, const char *user, const char *bearer)
{
	struct fetch_options options = { .parallel = 1 };

	return fetch_options_secret(&options, text) && strcmp(options.user, user) == 0 &&
	       strcmp(options.bearer, bearer) == 0;
}

static void test_url_append(void)
{
	char url[40] = "http://a/?job=";

	EXPECT(fetch_url_append(url, sizeof(url), "a-1 &b=\xc3\xa9"));
	EXPECT(strcmp(url, "http://a/?job=a-1%20%26b%3D%C3%A9") == 0);
	EXPECT_THAT("nothing is appended if it does not fit",
		    !fetch_url_append(url, sizeof(url), "12345&7") &&
			    strcmp(url, "http://a/?job=a-1%20%26b%3D%C3%A9") == 0);
	EXPECT(fetch_url_append(url, sizeof(url), ""));
}

static void test_secret(void)
{
	struct fetch_options options = { .parallel = 1 };

	EXPECT(takes("basic me:secret word\n", "me:secret word", ""));
	EXPECT(takes("bearer abc.def \r\nmore", "", "abc.def"));
	EXPECT(!fetch_options_secret(&options, "basic nobody"));
	EXPECT(!fetch_options_secret(&options, "bearer \n"));
	EXPECT_THAT("the next line is none of it",
		    !fetch_options_secret(&options, "basic nobody\nx:y"));
	EXPECT(!fetch_options_secret(&options, "me:secret"));
	EXPECT_THAT("no header can be smuggled in",
		    !fetch_options_secret(&options, "bearer a\001b"));
}

/* ---- options --------------------------------------------------------------------------------- */

static struct fetch_options options;

/* The exit code, or -1 to continue. */
static int parse_options(const char *first, const char *second, const char *third,
			 const char *fourth)
{
	char *words[] = { (char[]){ "ringside-fetch" },
			  (char *)first,
			  (char *)second,
			  (char *)third,
			  (char *)fourth,
			  NULL };
	int count = 1;

	while (words[count] != NULL)
		count++;
	optind = 0;
	return fetch_options_parse(&options, count, words);
}

static void test_options(void)
{
	static const struct {
		const char *name, *value;
		int code;
	} cases[] = {
		{ "--parallel", "0", 2 },
		{ "--parallel", "1", -1 },
		{ "--parallel", "1024", -1 },
		{ "--parallel", "1025", 2 },
		{ "--timeout", "0", 2 },
		{ "--timeout", "3600000", -1 },
		{ "--timeout", "3600001", 2 },
		{ "--connect", "x", 2 },
		{ "--limit", "0", 2 },
		{ "--limit", "1", -1 },
		{ "--limit", "1TiB", -1 },
		{ "--limit", "1099511627777", 2 },
		{ "--limit", "x", 2 },
		{ "--total", "0", 2 },
		{ "--auth", "/does/not/exist", 2 },
		{ "--nonsense", "1", 2 },
	};

	EXPECT_EQUAL(parse_options(NULL, NULL, NULL, NULL), -1);
	EXPECT(options.parallel == 32 && options.timeout_ms == 5000 && options.connect_ms == 5000);
	EXPECT(options.limit_bytes == 67108864 && options.total_bytes == UINT64_C(4294967296));
	EXPECT(!options.is_insecure && options.ca_file == NULL && options.user[0] == '\0' &&
	       options.bearer[0] == '\0');
	EXPECT(parse_options("--timeout", "250", "--limit", "3KiB") == -1 &&
	       options.timeout_ms == 250 && options.connect_ms == 250 &&
	       options.limit_bytes == 3072);
	EXPECT(parse_options("--connect", "40", "--total", "5MB") == -1 &&
	       options.timeout_ms == 5000 && options.connect_ms == 40 &&
	       options.total_bytes == 5000000);
	EXPECT(parse_options("--insecure", "--cacert", "file", NULL) == -1 && options.is_insecure &&
	       strcmp(options.ca_file, "file") == 0);
	EXPECT_EQUAL(parse_options("more", NULL, NULL, NULL), 2);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
		EXPECT_THAT(cases[i].value, parse_options(cases[i].name, cases[i].value, NULL,
							  NULL) == cases[i].code);
}

static int parse_auth(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");

	if (file == NULL || fputs(text, file) == EOF || fclose(file) != 0 ||
	    chmod(path, mode) == -1)
		abort();
	return parse_options("--auth", path, NULL, NULL);
}

static void test_auth(void)
{
	char path[100], longest[5000], text[5100];

	text_format(path, sizeof(path), "%s/auth", scratch_make());
	EXPECT(parse_auth(path, "basic me:word\n", 0600) == -1 &&
	       strcmp(options.user, "me:word") == 0);
	EXPECT(parse_auth(path, "bearer token", 0640) == -1 &&
	       strcmp(options.bearer, "token") == 0);
	EXPECT_THAT("a secret that everybody can read is none",
		    parse_auth(path, "bearer token", 0644) == 2);
	EXPECT_EQUAL(parse_auth(path, "token", 0600), 2);
	EXPECT_EQUAL(parse_auth(path, "", 0600), 2);
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(options.bearer) - 1] = '\0';
	text_format(text, sizeof(text), "bearer %s\n", longest);
	EXPECT_THAT("the longest token",
		    parse_auth(path, text, 0600) == -1 && strcmp(options.bearer, longest) == 0);
	text_format(text, sizeof(text), "bearer %sx\n", longest);
	EXPECT_THAT("one that is longer is not cut", parse_auth(path, text, 0600) == 2);
}

/* ---- lists of agents ------------------------------------------------------------------------- */

static struct fetch_targets targets;
static char why[200];

static enum status list(const char *text)
{
	fetch_targets_release(&targets);
	return fetch_targets_add(&targets, text, 9749, why, sizeof(why));
}

/* All names, separated by blanks. */
static const char *names(void)
{
	static char text[4000];

	text[0] = '\0';
	for (size_t i = 0; i < targets.count && strlen(text) < 3000; i++) {
		size_t used = strlen(text);

		text_format(text + used, sizeof(text) - used, "%s%s", i > 0 ? " " : "",
			    targets.list[i].name);
	}
	return text;
}

static void test_targets(void)
{
	EXPECT(list("a,b:80 ,, c\n# d\ne # f,g\n") == OK &&
	       strcmp(names(), "a:9749 b:80 c:9749 e:9749") == 0);
	EXPECT(strcmp(targets.list[1].url, "http://b:80") == 0);
	EXPECT(list("node[08-11]") == OK &&
	       strcmp(names(), "node08:9749 node09:9749 node10:9749 node11:9749") == 0);
	EXPECT(list("n[9-10,3]x:1") == OK && strcmp(names(), "n9x:1 n10x:1 n3x:1") == 0);
	EXPECT(list("r[1-2]-[0-1]") == OK &&
	       strcmp(names(), "r1-0:9749 r1-1:9749 r2-0:9749 r2-1:9749") == 0);
	EXPECT(list("[::1]:5,[fe80::1]") == OK && strcmp(names(), "[::1]:5 [fe80::1]:9749") == 0);
	EXPECT(strcmp(targets.list[1].url, "http://[fe80::1]:9749") == 0);
	EXPECT(list("https://h[1-2].x/ringside/") == OK &&
	       strcmp(targets.list[1].url, "https://h2.x/ringside") == 0);
	EXPECT(list("unix:/run/x.sock") == OK && targets.count == 1 &&
	       strcmp(targets.list[0].socket, "/run/x.sock") == 0);
	EXPECT_THAT("each once", list("a,a:9749,a[1-1],a1") == OK && targets.count == 2);
	EXPECT(list("") == OK && targets.count == 0);
}

/* What does not fit is refused, not cut. */
static void test_long_targets(void)
{
	char word[FETCH_TARGET_TEXT + 16], url[FETCH_TARGET_TEXT + 16];
	const size_t most = FETCH_TARGET_TEXT - 1 - strlen(":9749");

	memset(word, 'h', sizeof(word));
	word[most] = '\0';
	text_format(url, sizeof(url), "http://%s:9749", word);
	EXPECT(list(word) == OK && targets.count == 1 && strcmp(targets.list[0].url, url) == 0 &&
	       strcmp(targets.list[0].name, url + 7) == 0);
	word[most] = 'h';
	word[most + 1] = '\0';
	EXPECT(list(word) == ERR_FORMAT && strstr(why, "too long") && targets.count == 0);
	memset(word, 'h', sizeof(word));
	word[FETCH_TARGET_TEXT] = '\0';
	EXPECT(list(word) == ERR_FORMAT && strstr(why, "too long"));
	EXPECT(list("a[000000000000001]") == OK && strcmp(names(), "a000000000000001:9749") == 0);
	EXPECT(list("a[0-000000000000002]") == OK && targets.count == 3);
	EXPECT(list("a[0000000000000001]") == ERR_FORMAT);
	EXPECT_THAT("the end of a range is not cut", list("a[0-0000000000000002]") == ERR_FORMAT);
	EXPECT(list("a[1-999999999999999999999999999999999999]") == ERR_FORMAT);
	EXPECT(list("a[999999998-999999999]") == OK && targets.count == 2);
	EXPECT(list("a[999999999-1000000000]") == ERR_FORMAT);
}

static void test_addresses(void)
{
	EXPECT(list("http://[::1]:5/x/,https://[fe80::2]") == OK &&
	       strcmp(names(), "http://[::1]:5/x https://[fe80::2]") == 0);
	EXPECT(list("http://[::1]:5[0-1]") == OK &&
	       strcmp(names(), "http://[::1]:50 http://[::1]:51") == 0);
	EXPECT(list("[::1]x") == ERR_FORMAT && list("[::g]") == ERR_FORMAT);
	EXPECT(list("[::1") == ERR_FORMAT && list("[]:5") == ERR_FORMAT);
	EXPECT(list("[1.2.3.4]") == ERR_FORMAT && list("[12]") == OK && targets.count == 1);
	EXPECT(list("unix:/run/a.sock,unix:/run/b.sock") == OK && targets.count == 2 &&
	       strcmp(targets.list[1].url, "http://localhost") == 0 &&
	       strcmp(targets.list[1].name, "unix:/run/b.sock") == 0);
	EXPECT(list("a:1,a:65535") == OK && strcmp(names(), "a:1 a:65535") == 0);
}

static void test_bad_targets(void)
{
	EXPECT(list("a b/c") == ERR_FORMAT && strstr(why, "'b/c'"));
	EXPECT(list("a:0") == ERR_FORMAT && strstr(why, "port"));
	EXPECT(list("a:x") == ERR_FORMAT && list("a:65536") == ERR_FORMAT);
	EXPECT(list("a[1-") == ERR_FORMAT && list("a[]") == ERR_FORMAT);
	EXPECT(list("a[5-3]") == ERR_FORMAT && list("a[x]") == ERR_FORMAT);
	EXPECT(list("a[1-2-3]") == ERR_FORMAT && list("a[-1]") == ERR_FORMAT);
	EXPECT(list("ftp://a") == ERR_FORMAT && list("http://me:pw@a") == ERR_FORMAT);
	EXPECT(list("http://a/?x") == ERR_FORMAT);
	EXPECT(list("a[0-999999999]") == ERR_NO_SPACE && strstr(why, "16384"));
	EXPECT_EQUAL(targets.count, FETCH_TARGETS_MAX);
}

int main(void)
{
	test_frames_bytewise();
	test_frames_bad();
	test_frames_limits();
	test_out();
	test_options();
	test_auth();
	test_header();
	test_requests();
	test_url_append();
	test_secret();
	fetch_targets_init(&targets);
	test_targets();
	test_long_targets();
	test_addresses();
	test_bad_targets();
	fetch_targets_release(&targets);
	return tap_done();
}
