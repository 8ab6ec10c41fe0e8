#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "serve/web.h"
#include "common/attributes.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

#define HASH "$2y$10$cUCuIjgSSoSiPs.9CixZyuLFQRlcNxmaGgSDGmRBGbdrM8zX4wL6y"

static char why[512];

/* Accepts it and leaves it in *config for further checks. */
static int takes(struct web_config *config, const char *text)
{
	return web_config_parse(config, text, strlen(text), why, sizeof(why)) == OK;
}

/* Rejects it with exactly this message. */
static void expect_refused(const char *sentence, const char *text, const char *wanted)
{
	struct web_config config;
	int is_refused = !takes(&config, text) && strcmp(why, wanted) == 0;

	if (!EXPECT_THAT(sentence, is_refused))
		printf("#   said: %s\n", why);
	web_config_release(&config);
}

static void test_good(void)
{
	struct web_config config;

	EXPECT_THAT("an empty file is fine", takes(&config, "") && !config.has_tls);
	web_config_release(&config);
	EXPECT_THAT("so are only comments and an opening line",
		    takes(&config, "---\n# nothing\n\n  # more\n"));
	web_config_release(&config);
	EXPECT_THAT("all supported settings",
		    takes(&config, "tls_server_config:\r\n"
				   "  cert_file: server.crt   # beside\r\n"
				   "  key_file: 'it''s.key'\r\n"
				   "  client_ca_file: \"a \\\"b\\\".crt\"\r\n"
				   "  client_auth_type: RequireAndVerifyClientCert\r\n"
				   "  min_version: TLS13\r\n"
				   "http_server_config:\r\n"
				   "   http2: false\r\n"
				   "   headers:\r\n"
				   "     Strict-Transport-Security: max-age=5; preload\r\n"
				   "basic_auth_users:\r\n"
				   "  alice: " HASH "\r\n"
				   "  \"b b\": '" HASH "'"));
	EXPECT(config.has_tls && strcmp(config.cert_file, "server.crt") == 0);
	EXPECT(strcmp(config.key_file, "it's.key") == 0);
	EXPECT(strcmp(config.client_ca_file, "a \"b\".crt") == 0);
	EXPECT(config.client_auth == WEB_CLIENT_REQUIRE);
	EXPECT(config.min_version == 3 && config.max_version == 3);
	EXPECT(strcmp(config.strict_transport, "max-age=5; preload") == 0);
	EXPECT_EQUAL(config.user_count, 2);
	EXPECT(strcmp(config.users[1].name, "b b") == 0 && strcmp(config.users[1].hash, HASH) == 0);
	web_config_release(&config);
	EXPECT_THAT("the default minimum is TLS 1.2",
		    takes(&config, "tls_server_config:\n cert_file: a\n key_file: b#c\n") &&
			    config.min_version == 2 && config.client_auth == WEB_CLIENT_NONE);
	EXPECT_THAT("a # within a word does not start a comment",
		    strcmp(config.key_file, "b#c") == 0);
	web_config_release(&config);
	EXPECT_THAT("empty maps", takes(&config, "basic_auth_users: {}\nhttp_server_config:\n"));
	web_config_release(&config);
}

static void test_language(void)
{
	expect_refused("a tab", "tls_server_config:\n\tcert_file: x\n",
		       "line 2: tab character; use spaces");
	expect_refused("a list", "basic_auth_users:\n  - a\n",
		       "line 2: lists, anchors, tags and multi-line text are not supported; quote "
		       "text that begins with such a character");
	expect_refused("a flow map", "tls_server_config: { cert_file: x }\n",
		       "line 1: lists, anchors, tags and multi-line text are not supported; quote "
		       "text that begins with such a character");
	expect_refused("no colon", "---\ntls_server_config\n", "line 2: expected 'key: value'");
	expect_refused("no blank after the colon", "tls_server_config:x\n",
		       "line 1: expected 'key: value'");
	expect_refused("an open quote", "basic_auth_users:\n  'a: x\n",
		       "line 2: quote not closed on this line");
	expect_refused("an escape", "basic_auth_users:\n  \"a\\n\": x\n",
		       "line 2: only the escapes \\\" and \\\\ are supported");
	expect_refused("text after a quote", "basic_auth_users:\n  a: 'x' y\n",
		       "line 2: unexpected text after a closing quote");
	expect_refused("two keys on a line", "a: b: c\n",
		       "line 1: text containing ': ' must be quoted");
	expect_refused("a map below a value",
		       "tls_server_config:\n  cert_file: x\n    key_file: y\n",
		       "line 3: unexpected indentation");
	expect_refused("a ragged map", "tls_server_config:\n    cert_file: x\n  key_file: y\n",
		       "line 3: indentation does not match any line above");
	expect_refused("an indented first key", "  tls_server_config:\n",
		       "line 1: the first key must not be indented");
	expect_refused("a control character", "basic_auth_users:\n a: \x1b[31m\n",
		       "line 2: control character");
	expect_refused("an empty key", "'': x\n", "line 1: empty key");
}

/* A hash that is wrong in one place. */
static void test_hashes(void)
{
	static const struct {
		size_t place;
		char letter;
		bool is_good;
	} changes[] = { { 0, '%', false },  { 1, '3', false }, { 2, 'x', false },
			{ 3, 'x', false },  { 4, 'x', false }, { 5, 'x', false },
			{ 6, 'x', false },  { 7, '!', false }, { 30, '-', false },
			{ 59, '=', false }, { 59, 'z', true }, { 2, 'a', true },
			{ 2, 'b', true },   { 4, '0', false }, { 5, '4', true },
			{ 5, '5', false } };
	char text[200], hash[62];
	struct web_config config;

	for (size_t i = 0; i < ARRAY_LENGTH(changes); i++) {
		memcpy(hash, HASH, 61);
		hash[changes[i].place] = changes[i].letter;
		snprintf(text, sizeof(text), "basic_auth_users:\n  a: '%s'\n", hash);
		EXPECT_EQUAL(takes(&config, text), changes[i].is_good);
		web_config_release(&config);
	}
	memcpy(hash, HASH, 61);
	memcpy(hash + 4, "04", 2);
	snprintf(text, sizeof(text), "basic_auth_users:\n  a: %s\n", hash);
	EXPECT(takes(&config, text));
	web_config_release(&config);
	expect_refused("a hash that is too short", "basic_auth_users:\n  a: $2y$10$abc\n",
		       "line 2: user a: not a bcrypt hash (like $2y$10$...)");
	expect_refused("a hash that is too long", "basic_auth_users:\n  a: " HASH "x\n",
		       "line 2: user a: not a bcrypt hash (like $2y$10$...)");
	expect_refused("a user with a colon", "basic_auth_users:\n  'a:b': " HASH "\n",
		       "line 2: user names must not contain a colon");
	expect_refused("the second of two users again",
		       "basic_auth_users:\n  a: " HASH "\n  b: " HASH "\n  b: " HASH "\n",
		       "line 4: duplicate user b");
}

static void test_many_users(void)
{
	static char text[300 * 80];
	struct web_config config;

	for (int count = WEB_CONFIG_USERS_MAX; count <= WEB_CONFIG_USERS_MAX + 1; count++) {
		size_t used = (size_t)snprintf(text, sizeof(text), "basic_auth_users:\n");

		for (int i = 0; i < count; i++)
			used += (size_t)snprintf(text + used, sizeof(text) - used, " u%d: %s\n", i,
						 HASH);
		EXPECT_EQUAL(takes(&config, text), count == WEB_CONFIG_USERS_MAX);
		web_config_release(&config);
	}
	EXPECT(strcmp(why, "line 258: more than 256 users") == 0);
}

/* What a value is read as; NULL: it is refused. */
static void test_texts(void)
{
	static const char *const values[][2] = {
		{ "a", "a" },
		{ "a b", "a b" },
		{ "a   ", "a" },
		{ "a # comment", "a" },
		{ "a# no comment", "a# no comment" },
		{ "a #", "a" },
		{ "-a", "-a" },
		{ "a:b", "a:b" },
		{ "a: b", NULL },
		{ "a:", NULL },
		{ "'a'", "a" },
		{ "'a' # comment", "a" },
		{ "'a'# no comment", NULL },
		{ "'a'  ", "a" },
		{ "''''", "'" },
		{ "'a''b'", "a'b" },
		{ "'a''", NULL },
		{ "'a", NULL },
		{ "\"a\"", "a" },
		{ "\"a\\\\b\"", "a\\b" },
		{ "\"a\\\"b\"", "a\"b" },
		{ "\"a\\", NULL },
		{ "\"a\\x\"", NULL },
		{ "'a\\b'", "a\\b" },
		{ "{}", NULL },
		{ "{}a", NULL },
		{ "{} a", NULL },
		{ "{", NULL },
		{ "&a", NULL },
		{ "''", NULL },
		{ "# nothing", NULL },
	};
	struct web_config config;
	char text[200];

	for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
		bool is_good;

		snprintf(text, sizeof(text), "tls_server_config:\n  key_file: k\n  cert_file: %s",
			 values[i][0]);
		is_good = takes(&config, text);
		EXPECT_THAT(values[i][0],
			    is_good == (values[i][1] != NULL) &&
				    (!is_good || strcmp(config.cert_file, values[i][1]) == 0));
		web_config_release(&config);
	}
}

static void test_lengths(void)
{
	static char text[WEB_CONFIG_TEXT + 100];
	struct web_config config;

	for (int is_quoted = 0; is_quoted < 2; is_quoted++)
		for (int more = 0; more < 2; more++) {
			size_t used = (size_t)snprintf(
				text, sizeof(text),
				"tls_server_config:\n  key_file: k\n  cert_file: %s",
				is_quoted ? "'" : "");

			memset(text + used, 'x', (size_t)(WEB_CONFIG_TEXT - 1 + more));
			snprintf(text + used + WEB_CONFIG_TEXT - 1 + more, 3, "%s\n",
				 is_quoted ? "'" : "");
			EXPECT_EQUAL(takes(&config, text), more == 0);
			EXPECT_EQUAL(strlen(config.cert_file), more == 0 ? WEB_CONFIG_TEXT - 1 : 0);
			web_config_release(&config);
		}
}

static void test_lines(void)
{
#define NO_LISTS                                                                              \
	"lists, anchors, tags and multi-line text are not supported; quote text that begins " \
	"with such a character"
	struct web_config config;

	EXPECT_THAT("a line of blanks, and no end of the last line",
		    takes(&config, "\r\n   \nbasic_auth_users:\n  a: " HASH) &&
			    config.user_count == 1);
	web_config_release(&config);
	expect_refused("a deletion", "a\x7f: b\n", "line 1: control character");
	EXPECT_THAT("UTF-8",
		    takes(&config, "tls_server_config:\n key_file: k\n cert_file: \xc3\xa4") &&
			    strcmp(config.cert_file, "\xc3\xa4") == 0);
	web_config_release(&config);
	expect_refused("an opening line within the file", "basic_auth_users:\n---\n",
		       "line 2: " NO_LISTS);
	expect_refused("an opening line with more", "--- a\n", "line 1: " NO_LISTS);
	expect_refused("a value below a header",
		       "http_server_config:\n  headers:\n    Strict-Transport-Security: a\n"
		       "      b: c\n",
		       "line 4: unexpected indentation");
	expect_refused("a key below an empty map", "http_server_config: {}\n  http2: true\n",
		       "line 2: unexpected indentation");
	expect_refused("http2", "http_server_config:\n  http2: yes\n",
		       "line 2: http2 is true or false, not 'yes'");
	EXPECT(takes(&config, "http_server_config:\n  http2: true\nbasic_auth_users:\n"));
	web_config_release(&config);
}

static void test_tls_values(void)
{
	static const char *const names[] = { "NoClientCert", "RequestClientCert",
					     "RequireAnyClientCert", "VerifyClientCertIfGiven",
					     "RequireAndVerifyClientCert" };
	static const char *const versions[] = { "TLS10", "TLS11", "TLS12", "TLS13" };
	struct web_config config;
	char text[300];

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		snprintf(text, sizeof(text),
			 "tls_server_config:\n cert_file: a\n key_file: b\n client_auth_type: "
			 "%s\n%s",
			 names[i], i == 0 ? "" : " client_ca_file: c\n");
		EXPECT(takes(&config, text) && config.client_auth == (enum web_client_auth)i);
		web_config_release(&config);
	}
	expect_refused("another type", "tls_server_config:\n client_auth_type: None\n",
		       "line 2: client_auth_type is one of NoClientCert, RequestClientCert, "
		       "RequireAnyClientCert, VerifyClientCertIfGiven, "
		       "RequireAndVerifyClientCert, not 'None'");
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++) {
			snprintf(text, sizeof(text),
				 "tls_server_config:\n cert_file: a\n key_file: b\n"
				 " min_version: %s\n max_version: %s\n",
				 versions[i], versions[j]);
			EXPECT_EQUAL(takes(&config, text), i <= j);
			EXPECT(config.min_version == i && config.max_version == j);
			web_config_release(&config);
		}
}

static void test_meaning(void)
{
	expect_refused("an unknown section", "tls_config:\n",
		       "line 1: unknown key 'tls_config' in the file");
	expect_refused("an unknown key", "tls_server_config:\n  certfile: x\n",
		       "line 2: unknown key 'certfile' in tls_server_config");
	expect_refused("a key of another section", "http_server_config:\n  cert_file: x\n",
		       "line 2: unknown key 'cert_file' in http_server_config");
	expect_refused("a duplicate key", "basic_auth_users:\nbasic_auth_users:\n",
		       "line 2: duplicate key basic_auth_users");
	expect_refused("a value for a map", "basic_auth_users: yes\n",
		       "line 1: basic_auth_users is a map, not a value");
	expect_refused("a map below a plain key", "tls_server_config:\n  cert_file:\n    x: y\n",
		       "line 2: cert_file has no value");
	expect_refused(
		"an unsupported security setting",
		"tls_server_config:\n"
		"  cipher_suites:\n",
		"line 2: cipher_suites is not supported: the defaults of GnuTLS are used; remove "
		"it");
	expect_refused(
		"a header that the agent sets",
		"http_server_config:\n  headers:\n    X-Frame-Options: DENY\n",
		"line 3: X-Frame-Options is not supported: the agent sets this header itself");
	expect_refused("an unknown TLS version", "tls_server_config:\n  min_version: SSL3\n",
		       "line 2: min_version is one of TLS10, TLS11, TLS12, TLS13, not 'SSL3'");
	expect_refused("a password that is not a hash", "basic_auth_users:\n  a: secret\n",
		       "line 2: user a: not a bcrypt hash (like $2y$10$...)");
	expect_refused("an expensive hash",
		       "basic_auth_users:\n"
		       "  a: $2y$20$cUCuIjgSSoSiPs.9CixZyuLFQRlcNxmaGgSDGmRBGbdrM8zX4wL6y\n",
		       "line 2: user a: the bcrypt cost is 20, must be 4 to 14");
	expect_refused("a duplicate user", "basic_auth_users:\n  a: " HASH "\n  a: " HASH "\n",
		       "line 3: duplicate user a");
	expect_refused("no key", "tls_server_config:\n  cert_file: x\n",
		       "tls_server_config has no key_file");
	expect_refused("no certificate", "tls_server_config: {}\n",
		       "tls_server_config has no cert_file");
	expect_refused("client verification without a CA",
		       "tls_server_config:\n  cert_file: x\n  key_file: y\n"
		       "  client_auth_type: VerifyClientCertIfGiven\n",
		       "client_auth_type requires client_ca_file");
	expect_refused(
		"a CA without client verification",
		"tls_server_config:\n  cert_file: x\n  key_file: y\n  client_ca_file: z\n",
		"client_ca_file is given, but client_auth_type does not verify certificates");
	expect_refused("minimum above maximum version",
		       "tls_server_config:\n  cert_file: x\n  key_file: y\n"
		       "  max_version: TLS11\n",
		       "min_version is above max_version");
}

static void test_files(void)
{
	const char *directory = scratch_make();
	struct web_config config;
	char path[64], wanted[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/web.yml", directory);
	EXPECT_THAT("a missing file",
		    web_config_read(&config, path, why, sizeof(why)) == ERR_SYSTEM &&
			    strstr(why, "web.yml: No such file"));
	web_config_release(&config);
	EXPECT_THAT("a directory", web_config_read(&config, directory, why, sizeof(why)) != OK);
	web_config_release(&config);
	file = fopen(path, "w");
	fputs("tls_server_config:\n cert_file: a.crt\n key_file: /b.key\n", file);
	fclose(file);
	snprintf(wanted, sizeof(wanted), "%s/a.crt", directory);
	EXPECT_THAT("names are relative to the file",
		    web_config_read(&config, path, why, sizeof(why)) == OK &&
			    strcmp(config.cert_file, wanted) == 0 &&
			    strcmp(config.key_file, "/b.key") == 0);
	web_config_release(&config);
	file = fopen(path, "w");
	for (int i = 0; i < WEB_CONFIG_BYTES_MAX; i++)
		fputc('\n', file);
	fclose(file);
	EXPECT_THAT("64 KiB", web_config_read(&config, path, why, sizeof(why)) == OK);
	web_config_release(&config);
	file = fopen(path, "w");
	for (int i = 0; i <= WEB_CONFIG_BYTES_MAX; i++)
		fputc('\n', file);
	fclose(file);
	EXPECT_THAT("an oversized file",
		    web_config_read(&config, path, why, sizeof(why)) == ERR_FORMAT &&
			    strstr(why, "longer than 64 KiB"));
	web_config_release(&config);
}

int main(void)
{
	test_good();
	test_language();
	test_hashes();
	test_many_users();
	test_texts();
	test_lengths();
	test_lines();
	test_tls_values();
	test_meaning();
	test_files();
	return tap_done();
}
