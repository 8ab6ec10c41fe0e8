/* Small parts of the agent: addresses, the Host header, encodings, names of textfiles. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "agent/agent.h"
#include "serve/web.h"
#include "common/attributes.h"
#include "common/text.h"
#include "tests/tap.h"

static bool reads_as(const char *text, const char *wanted, bool is_loopback)
{
	struct web_address address;
	const char *why = NULL;
	char again[160];

	if (web_address_parse(&address, text, &why) != OK)
		return false;
	web_address_text(&address, again, sizeof(again));
	return strcmp(again, wanted) == 0 && address.is_loopback == is_loopback;
}

static bool is_refused(const char *text, const char *wanted)
{
	struct web_address address;
	const char *why = NULL;

	return web_address_parse(&address, text, &why) == ERR_FORMAT && strstr(why, wanted);
}

static void test_addresses(void)
{
	char path[160];

	EXPECT(reads_as("127.0.0.1:9749", "127.0.0.1:9749", true));
	EXPECT(reads_as("localhost:80", "127.0.0.1:80", true));
	EXPECT(reads_as("127.9.9.9:0", "127.9.9.9:0", true));
	EXPECT(reads_as("[::1]:9749", "[::1]:9749", true));
	EXPECT(reads_as("[::ffff:127.0.0.1]:1", "[::ffff:127.0.0.1]:1", true));
	EXPECT(reads_as("10.0.0.1:65535", "10.0.0.1:65535", false));
	EXPECT(reads_as("0.0.0.0:1", "0.0.0.0:1", false));
	EXPECT(reads_as(":9749", "[::]:9749", false));
	EXPECT(reads_as("unix:/run/x.sock", "unix:/run/x.sock", false));
	EXPECT(is_refused("", "port") && is_refused("9749", "port"));
	EXPECT(is_refused("127.0.0.1:65536", "port") && is_refused("127.0.0.1:", "port"));
	EXPECT(is_refused("127.0.0.1:http", "port") && is_refused("127.0.0.1:-1", "port"));
	EXPECT(is_refused("example.org:80", "numeric") && is_refused("1.2.3:80", "numeric"));
	EXPECT(is_refused("::1:9749", "brackets") && is_refused("[::1:9749", "brackets"));
	EXPECT(is_refused("[]:9749", "invalid address") && is_refused("[x]:9749", "IPv6"));
	EXPECT(is_refused("unix:x.sock", "absolute") && is_refused("unix:", "absolute"));
	memset(path, 'x', sizeof(path));
	memcpy(path, "unix:/", 6);
	path[sizeof(path) - 1] = '\0';
	EXPECT(is_refused(path, "107"));
	memset(path, '1', sizeof(path) - 4);
	memcpy(path + sizeof(path) - 4, ":80", 4);
	EXPECT(is_refused(path, "invalid address"));
}

static void test_host(void)
{
	EXPECT(web_host_is_local("localhost", "") && web_host_is_local("LOCALHOST:9749", ""));
	EXPECT(web_host_is_local("127.0.0.1:1", "") && web_host_is_local("[::1]:9749", ""));
	EXPECT(web_host_is_local("node7:9749", "node7") && web_host_is_local("Node7", "node7"));
	EXPECT(!web_host_is_local("node7", "") && !web_host_is_local("", "node7"));
	EXPECT(!web_host_is_local("evil.example", "node7"));
	EXPECT(!web_host_is_local("localhost.evil.example", "node7"));
	EXPECT(!web_host_is_local("127.0.0.1.evil.example:80", "node7"));
	EXPECT(!web_host_is_local("localhost:80.evil.example", "node7"));
	EXPECT(!web_host_is_local("localhost:", "node7"));
	EXPECT(!web_host_is_local("::1", "node7"));
}

static void test_encoding(void)
{
	char text[10000], again[10000];
	z_stream stream = { 0 };
	size_t packed = 0;
	void *gzip;

	EXPECT(web_encoding_takes_gzip("gzip") && web_encoding_takes_gzip("br, GZIP;q=0.5"));
	EXPECT(web_encoding_takes_gzip("deflate , gzip ; q=1.000"));
	EXPECT(!web_encoding_takes_gzip(NULL) && !web_encoding_takes_gzip(""));
	EXPECT(!web_encoding_takes_gzip("gzip;q=0") && !web_encoding_takes_gzip("gzip; q=0.000"));
	EXPECT(!web_encoding_takes_gzip("gzipped, x-gzip") && !web_encoding_takes_gzip("*"));
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * i >> 3);
	gzip = web_encoding_gzip(text, sizeof(text), &packed);
	EXPECT_THAT("bytes are compressed", gzip && packed > 0 && packed < sizeof(text) + 64);
	stream.next_in = gzip;
	stream.avail_in = (unsigned int)packed;
	stream.next_out = (unsigned char *)again;
	stream.avail_out = sizeof(again);
	EXPECT_THAT("and can be decompressed", inflateInit2(&stream, 15 + 16) == Z_OK &&
						       inflate(&stream, Z_FINISH) == Z_STREAM_END &&
						       memcmp(text, again, sizeof(text)) == 0);
	inflateEnd(&stream);
	free(gzip);
}

static void test_names(void)
{
	struct recording_process process = { .pid = 42, .start_ticks = 777 };
	struct recording_comm comms[2] = { { .info = { .gpu = -1 } }, { .info = { .gpu = 3 } } };
	char name[AGENT_TEXTFILE_NAME], other[AGENT_TEXTFILE_NAME];

	agent_textfile_name(&process, name);
	EXPECT_THAT("no communicator yet", strcmp(name, "ringside-gpu-42-777.prom") == 0);
	process.comms = comms;
	process.comm_count = 2;
	agent_textfile_name(&process, name);
	EXPECT_THAT("the number of the GPU", strcmp(name, "ringside-gpu3-42-777.prom") == 0);
	text_copy(comms[0].info.gpu_uuid, sizeof(comms[0].info.gpu_uuid), "GPU-../a\n.b");
	agent_textfile_name(&process, name);
	EXPECT_THAT("a uuid cannot contain a path",
		    strcmp(name, "ringside-GPU-___a__b-42-777.prom") == 0);
	EXPECT(agent_textfile_is_ours(name) && agent_textfile_is_ours("ringside-gpu-1-2.prom"));
	EXPECT(agent_textfile_is_ours("ringside-gpu-1-2.prom.new"));
	EXPECT(!agent_textfile_is_ours("ringside-gpu.prom") && !agent_textfile_is_ours(""));
	EXPECT(!agent_textfile_is_ours("ringside-1-2.prom"));
	EXPECT(!agent_textfile_is_ours("ringside-gpu-1-.prom"));
	EXPECT(!agent_textfile_is_ours("ringside-gpu-1-2.prom.bak"));
	EXPECT(!agent_textfile_is_ours("my-ringside-gpu-1-2.prom"));
	EXPECT(!agent_textfile_is_ours("ringside-notes-of-2026-05.txt"));
	process.pid_namespace = 17;
	agent_textfile_name(&process, name);
	process.pid_namespace = 18;
	agent_textfile_name(&process, other);
	EXPECT_THAT("equal pids in two namespaces have two files",
		    strcmp(name, other) != 0 && agent_textfile_is_ours(name) &&
			    agent_textfile_is_ours(other));
}

static void test_unescape(void)
{
	char text[8];

	EXPECT(web_unescape(text, sizeof(text), "a%20%c3%A9") && strcmp(text, "a \xc3\xa9") == 0);
	EXPECT(web_unescape(text, sizeof(text), NULL) && text[0] == '\0');
	EXPECT(web_unescape(text, sizeof(text), "1234567") && strcmp(text, "1234567") == 0);
	EXPECT_THAT("what does not fit is not cut", !web_unescape(text, sizeof(text), "12345678"));
	EXPECT(!web_unescape(text, sizeof(text), "%") && !web_unescape(text, sizeof(text), "%4"));
	EXPECT(!web_unescape(text, sizeof(text), "%4g") &&
	       !web_unescape(text, sizeof(text), "%00"));
}

int main(void)
{
	test_addresses();
	test_host();
	test_encoding();
	test_names();
	test_unescape();
	return tap_done();
}
