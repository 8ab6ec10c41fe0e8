#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "fetch/fetch.h"
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
	EXPECT(!fetch_options_secret(&options, "me:secret"));
	EXPECT_THAT("no header can be smuggled in",
		    !fetch_options_secret(&options, "bearer a\001b"));
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
	test_header();
	test_requests();
	test_url_append();
	test_secret();
	fetch_targets_init(&targets);
	test_targets();
	test_bad_targets();
	fetch_targets_release(&targets);
	return tap_done();
}
