/* Prometheus' web configuration: a small part of YAML. */
#include "serve/web.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/file.h"
#include "common/text.h"

enum { WEB_YAML_KEY = 128, WEB_YAML_VALUE = 1024, WEB_YAML_DEPTH = 4 };

struct web_yaml {
	const char *at;
	const char *end;
	unsigned int line;		      /* of the pair, from 1 */
	const char *problem;		      /* static; NULL: none */
	unsigned int indents[WEB_YAML_DEPTH]; /* of the open maps */
	unsigned int depth;		      /* of the pair: 0 for the outermost map */
	bool may_nest;			      /* the last pair had no value */
	bool has_begun;
	char key[WEB_YAML_KEY];
	char value[WEB_YAML_VALUE];
	bool has_value; /* false: a map or nothing follows; the same for "{}" */
};

static void web_yaml_init(struct web_yaml *yaml, const char *text, size_t length)
{
	*yaml = (struct web_yaml){ .at = text, .end = text + length };
}

static bool yaml_fail(struct web_yaml *yaml, const char *problem)
{
	yaml->problem = problem;
	return false;
}

/* The rest of a line after a value may be a comment. */
static bool is_over(const char *at, const char *end)
{
	bool has_blank = false;

	for (; at < end && *at == ' '; at++)
		has_blank = true;
	return at == end || (*at == '#' && has_blank);
}

/* A quoted scalar: *at is on the opening quote, and afterwards behind the closing one. */
static bool yaml_quoted(struct web_yaml *yaml, const char **at, const char *end, char *to,
			size_t size)
{
	char quote = *(*at)++;
	size_t used = 0;

	for (; *at < end; ++*at) {
		char byte = **at;

		if (byte == quote && quote == '\'' && *at + 1 < end && (*at)[1] == '\'') {
			++*at;
		} else if (byte == quote) {
			++*at;
			to[used] = '\0';
			return true;
		} else if (byte == '\\' && quote == '"') {
			if (++*at == end || (**at != '"' && **at != '\\'))
				return yaml_fail(yaml,
						 "only the escapes \\\" and \\\\ are supported");
			byte = **at;
		}
		if (used + 1 >= size)
			return yaml_fail(yaml, "text too long");
		to[used++] = byte;
	}
	return yaml_fail(yaml, "quote not closed on this line");
}

/* Ends at `stop` before a blank or line end, at a comment, or at the end of the line. */
static bool yaml_plain(struct web_yaml *yaml, const char **at, const char *end, char stop, char *to,
		       size_t size)
{
	size_t used = 0;

	if (*at < end && strchr("&*!|>%@`[]{},?-", **at) && !(stop == '\0' && **at == '-'))
		return yaml_fail(yaml,
				 "lists, anchors, tags and multi-line text are not supported; "
				 "quote text that begins with such a character");
	for (; *at < end; ++*at) {
		bool is_last = *at + 1 == end || (*at)[1] == ' ';

		if (**at == stop && is_last)
			break;
		if (stop == '\0' && **at == ':' && is_last)
			return yaml_fail(yaml, "text containing ': ' must be quoted");
		if (**at == '#' && used > 0 && (*at)[-1] == ' ')
			break;
		if (used + 1 >= size)
			return yaml_fail(yaml, "text too long");
		to[used++] = **at;
	}
	while (used > 0 && to[used - 1] == ' ')
		used--;
	to[used] = '\0';
	return true;
}

static bool yaml_take_key(struct web_yaml *yaml, const char **at, const char *end)
{
	bool is_good = **at == '"' || **at == '\''
			       ? yaml_quoted(yaml, at, end, yaml->key, sizeof(yaml->key))
			       : yaml_plain(yaml, at, end, ':', yaml->key, sizeof(yaml->key));

	if (!is_good)
		return false;
	if (*at == end || **at != ':' || (*at + 1 < end && (*at)[1] != ' '))
		return yaml_fail(yaml, "expected 'key: value'");
	if (yaml->key[0] == '\0')
		return yaml_fail(yaml, "empty key");
	++*at;
	return true;
}

static bool yaml_take_value(struct web_yaml *yaml, const char *at, const char *end)
{
	yaml->value[0] = '\0';
	yaml->has_value = false;
	yaml->may_nest = false;
	if (is_over(at, end)) {
		yaml->may_nest = true;
		return true;
	}
	while (*at == ' ')
		at++;
	if (end - at >= 2 && memcmp(at, "{}", 2) == 0 && is_over(at + 2, end))
		return true;
	yaml->has_value = true;
	if (*at == '"' || *at == '\'') {
		if (!yaml_quoted(yaml, &at, end, yaml->value, sizeof(yaml->value)))
			return false;
		return is_over(at, end) || yaml_fail(yaml, "unexpected text after a closing quote");
	}
	return yaml_plain(yaml, &at, end, '\0', yaml->value, sizeof(yaml->value));
}

/* The map that a pair with this indentation belongs to. */
static bool take_indent(struct web_yaml *yaml, unsigned int indent)
{
	if (!yaml->has_begun) {
		yaml->has_begun = true;
		yaml->indents[0] = indent;
		return indent == 0 || yaml_fail(yaml, "the first key must not be indented");
	}
	if (indent > yaml->indents[yaml->depth]) {
		if (!yaml->may_nest)
			return yaml_fail(yaml, "unexpected indentation");
		if (yaml->depth + 1 == WEB_YAML_DEPTH)
			return yaml_fail(yaml, "maps are nested too deeply");
		yaml->indents[++yaml->depth] = indent;
		return true;
	}
	while (yaml->depth > 0 && indent < yaml->indents[yaml->depth])
		yaml->depth--;
	return indent == yaml->indents[yaml->depth] ||
	       yaml_fail(yaml, "indentation does not match any line above");
}

/* Printable, or a byte of UTF-8. */
static bool is_text(struct web_yaml *yaml, const char *at, const char *end)
{
	for (; at < end; at++) {
		if (*at == '\t')
			return yaml_fail(yaml, "tab character; use spaces");
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return yaml_fail(yaml, "control character");
	}
	return true;
}

/* The next pair; false at the end, or on an error in `problem` at `line`. */
static bool web_yaml_next(struct web_yaml *yaml)
{
	while (yaml->problem == NULL && yaml->at < yaml->end) {
		const char *start = yaml->at, *at;
		const char *end = memchr(start, '\n', (size_t)(yaml->end - start));

		yaml->line++;
		yaml->at = end ? end + 1 : yaml->end;
		if (end == NULL)
			end = yaml->end;
		if (end > start && end[-1] == '\r')
			end--;
		if (!is_text(yaml, start, end))
			return false;
		for (at = start; at < end && *at == ' ';)
			at++;
		if (at == end || *at == '#')
			continue;
		if (!yaml->has_begun && end - start >= 3 && memcmp(start, "---", 3) == 0 &&
		    is_over(start + 3, end))
			continue;
		return take_indent(yaml, (unsigned int)(at - start)) &&
		       yaml_take_key(yaml, &at, end) && yaml_take_value(yaml, at, end);
	}
	return false;
}

/* The section of the file that a pair is in. */
enum section { ROOT = 0, TLS = 1, HTTP = 2, HEADERS = 3, USERS = 4, SECTIONS = 5 };

struct parser {
	struct web_config *config;
	struct web_yaml yaml;
	enum section sections[WEB_YAML_DEPTH]; /* the open map at each depth */
	unsigned int seen;		       /* bit k: keys[k] was there */
	char *why;
	size_t why_size;
};

enum key_kind {
	KEY_SECTION, /* a map: `at` is which section */
	KEY_TEXT,    /* into the configuration, `at` and `size` */
	KEY_VERSION, /* the same, an int */
	KEY_CLIENT_AUTH,
	KEY_HTTP2,
	KEY_REFUSED,
};

#define TEXT_AT(member) \
	KEY_TEXT, offsetof(struct web_config, member), sizeof(((struct web_config *)NULL)->member)

static const char ours[] = "the agent sets this header itself";
static const char priorities[] = "the defaults of GnuTLS are used; remove it";
static const char in_files[] = "certificates and keys are only read from files";

static const struct {
	enum section section;
	const char *name;
	enum key_kind kind;
	size_t at;
	size_t size;
	const char *refused; /* reason why it is not supported */
} keys[] = {
	{ ROOT, "tls_server_config", KEY_SECTION, TLS, 0, NULL },
	{ ROOT, "http_server_config", KEY_SECTION, HTTP, 0, NULL },
	{ ROOT, "basic_auth_users", KEY_SECTION, USERS, 0, NULL },
	{ TLS, "cert_file", TEXT_AT(cert_file), NULL },
	{ TLS, "key_file", TEXT_AT(key_file), NULL },
	{ TLS, "client_ca_file", TEXT_AT(client_ca_file), NULL },
	{ TLS, "client_auth_type", KEY_CLIENT_AUTH, 0, 0, NULL },
	{ TLS, "min_version", KEY_VERSION, offsetof(struct web_config, min_version), 0, NULL },
	{ TLS, "max_version", KEY_VERSION, offsetof(struct web_config, max_version), 0, NULL },
	{ TLS, "cert", KEY_REFUSED, 0, 0, in_files },
	{ TLS, "key", KEY_REFUSED, 0, 0, in_files },
	{ TLS, "client_ca", KEY_REFUSED, 0, 0, in_files },
	{ TLS, "client_allowed_sans", KEY_REFUSED, 0, 0, "client names are not checked" },
	{ TLS, "cipher_suites", KEY_REFUSED, 0, 0, priorities },
	{ TLS, "prefer_server_cipher_suites", KEY_REFUSED, 0, 0, priorities },
	{ TLS, "curve_preferences", KEY_REFUSED, 0, 0, priorities },
	{ HTTP, "http2", KEY_HTTP2, 0, 0, NULL },
	{ HTTP, "headers", KEY_SECTION, HEADERS, 0, NULL },
	{ HEADERS, "Strict-Transport-Security", TEXT_AT(strict_transport), NULL },
	{ HEADERS, "Content-Security-Policy", KEY_REFUSED, 0, 0, ours },
	{ HEADERS, "X-Content-Type-Options", KEY_REFUSED, 0, 0, ours },
	{ HEADERS, "X-Frame-Options", KEY_REFUSED, 0, 0, ours },
	{ HEADERS, "X-XSS-Protection", KEY_REFUSED, 0, 0, "obsolete" },
};
_Static_assert(ARRAY_LENGTH(keys) <= 32, "seen has a bit per key");

static const char *const section_names[SECTIONS] = {
	[ROOT] = "the file",   [TLS] = "tls_server_config",  [HTTP] = "http_server_config",
	[HEADERS] = "headers", [USERS] = "basic_auth_users",
};

static enum status PRINTF_LIKE(2, 3) config_refuse(struct parser *parser, const char *format, ...)
{
	char what[256];
	va_list values;

	va_start(values, format);
	vsnprintf(what, sizeof(what), format, values);
	va_end(values);
	text_format(parser->why, parser->why_size, "line %u: %s", parser->yaml.line, what);
	return ERR_FORMAT;
}

/* ---- values ---------------------------------------------------------------------------------- */

static enum status take_text(struct parser *parser, char *to, size_t size)
{
	const struct web_yaml *yaml = &parser->yaml;

	if (!yaml->has_value || yaml->value[0] == '\0')
		return config_refuse(parser, "%s has no value", yaml->key);
	if (!text_copy(to, size, yaml->value))
		return config_refuse(parser, "the value of %s is too long", yaml->key);
	return OK;
}

static enum status take_version(struct parser *parser, int *version)
{
	static const char *const names[] = { "TLS10", "TLS11", "TLS12", "TLS13" };

	for (int i = 0; i < 4; i++)
		if (strcmp(parser->yaml.value, names[i]) == 0) {
			*version = i;
			return OK;
		}
	return config_refuse(parser, "%s is one of TLS10, TLS11, TLS12, TLS13, not '%s'",
			     parser->yaml.key, parser->yaml.value);
}

static enum status take_client_auth(struct parser *parser)
{
	static const char *const names[] = {
		[WEB_CLIENT_NONE] = "NoClientCert",
		[WEB_CLIENT_REQUEST] = "RequestClientCert",
		[WEB_CLIENT_REQUIRE_ANY] = "RequireAnyClientCert",
		[WEB_CLIENT_VERIFY_IF_GIVEN] = "VerifyClientCertIfGiven",
		[WEB_CLIENT_REQUIRE] = "RequireAndVerifyClientCert",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (strcmp(parser->yaml.value, names[i]) == 0) {
			parser->config->client_auth = (enum web_client_auth)i;
			return OK;
		}
	return config_refuse(parser,
			     "client_auth_type is one of NoClientCert, RequestClientCert, "
			     "RequireAnyClientCert, VerifyClientCertIfGiven, "
			     "RequireAndVerifyClientCert, not '%s'",
			     parser->yaml.value);
}

/* "$2y$10$" and 53 letters of bcrypt's own base64. */
static bool is_bcrypt(const char *hash, int *cost)
{
	static const char letters[] =
		"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

	if (strlen(hash) != 60 || hash[0] != '$' || hash[1] != '2' || !strchr("aby", hash[2]) ||
	    hash[3] != '$' || strspn(hash + 4, "0123456789") != 2 || hash[6] != '$' ||
	    strspn(hash + 7, letters) != 53)
		return false;
	*cost = (hash[4] - '0') * 10 + hash[5] - '0';
	return true;
}

static enum status take_user(struct parser *parser)
{
	struct web_config *config = parser->config;
	const struct web_yaml *yaml = &parser->yaml;
	struct web_user *user;
	int cost = 0;

	for (size_t i = 0; i < config->user_count; i++)
		if (strcmp(config->users[i].name, yaml->key) == 0)
			return config_refuse(parser, "duplicate user %s", yaml->key);
	if (strchr(yaml->key, ':'))
		return config_refuse(parser, "user names must not contain a colon");
	if (!is_bcrypt(yaml->value, &cost))
		return config_refuse(parser, "user %s: not a bcrypt hash (like $2y$10$...)",
				     yaml->key);
	if (cost < 4 || cost > WEB_CONFIG_COST_MAX)
		return config_refuse(parser, "user %s: the bcrypt cost is %d, must be 4 to %d",
				     yaml->key, cost, WEB_CONFIG_COST_MAX);
	if (config->user_count == WEB_CONFIG_USERS_MAX)
		return config_refuse(parser, "more than %d users", WEB_CONFIG_USERS_MAX);
	if (!list_grow(&config->users, config->user_count, sizeof(*user)))
		return ERR_NO_SPACE;
	user = &config->users[config->user_count++];
	text_copy(user->name, sizeof(user->name), yaml->key);
	text_copy(user->hash, sizeof(user->hash), yaml->value);
	return OK;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* A map follows this key. */
static enum status open_section(struct parser *parser, enum section section)
{
	const struct web_yaml *yaml = &parser->yaml;

	if (yaml->has_value)
		return config_refuse(parser, "%s is a map, not a value", yaml->key);
	parser->sections[yaml->depth + 1] = section;
	return OK;
}

static enum status config_take_key(struct parser *parser, size_t key)
{
	struct web_config *config = parser->config;
	const char *value = parser->yaml.value;
	void *to = (char *)config + keys[key].at;

	switch (keys[key].kind) {
	case KEY_SECTION:
		config->has_tls |= keys[key].at == TLS;
		return open_section(parser, (enum section)keys[key].at);
	case KEY_TEXT:
		return take_text(parser, to, keys[key].size);
	case KEY_VERSION:
		return take_version(parser, to);
	case KEY_CLIENT_AUTH:
		return take_client_auth(parser);
	case KEY_HTTP2:
		/* HTTP/2 is optional for clients; the agent does not offer it. */
		if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
			return OK;
		return config_refuse(parser, "http2 is true or false, not '%s'", value);
	case KEY_REFUSED:
		break;
	}
	return config_refuse(parser, "%s is not supported: %s", parser->yaml.key,
			     keys[key].refused);
}

static enum status take_pair(struct parser *parser)
{
	const struct web_yaml *yaml = &parser->yaml;
	enum section section = parser->sections[yaml->depth];

	if (yaml->depth > 0 && section == ROOT)
		return config_refuse(parser, "%s: unexpected indentation", yaml->key);
	/* There is nothing below this key, unless it opens a section. */
	if (yaml->depth + 1 < WEB_YAML_DEPTH)
		parser->sections[yaml->depth + 1] = ROOT;
	if (section == USERS)
		return take_user(parser);
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		if (keys[i].section != section || strcmp(keys[i].name, yaml->key) != 0)
			continue;
		if (parser->seen & 1u << i)
			return config_refuse(parser, "duplicate key %s", yaml->key);
		parser->seen |= 1u << i;
		return config_take_key(parser, i);
	}
	return config_refuse(parser, "unknown key '%s' in %s", yaml->key, section_names[section]);
}

/* Checks that need the whole configuration. */
static enum status check_whole(const struct web_config *config, char *why, size_t why_size)
{
	const char *problem = NULL;
	bool verifies = config->client_auth == WEB_CLIENT_VERIFY_IF_GIVEN ||
			config->client_auth == WEB_CLIENT_REQUIRE;

	if (config->has_tls && config->cert_file[0] == '\0')
		problem = "tls_server_config has no cert_file";
	else if (config->has_tls && config->key_file[0] == '\0')
		problem = "tls_server_config has no key_file";
	else if (config->min_version > config->max_version)
		problem = "min_version is above max_version";
	else if (verifies && config->client_ca_file[0] == '\0')
		problem = "client_auth_type requires client_ca_file";
	else if (config->client_ca_file[0] && config->client_auth == WEB_CLIENT_NONE)
		problem = "client_ca_file is given, but client_auth_type does not verify "
			  "certificates";
	if (problem == NULL)
		return OK;
	text_format(why, why_size, "%s", problem);
	return ERR_FORMAT;
}

enum status web_config_parse(struct web_config *config, const char *text, size_t length, char *why,
			     size_t why_size)
{
	struct parser parser = { .config = config, .why = why, .why_size = why_size };
	enum status status = OK;

	*config = (struct web_config){ .min_version = 2, .max_version = 3 };
	text_copy(why, why_size, "out of memory");
	web_yaml_init(&parser.yaml, text, length);
	while (status == OK && web_yaml_next(&parser.yaml))
		status = take_pair(&parser);
	if (status == OK && parser.yaml.problem)
		status = config_refuse(&parser, "%s", parser.yaml.problem);
	if (status == OK)
		status = check_whole(config, why, why_size);
	return status;
}

void web_config_release(struct web_config *config)
{
	free(config->users);
	config->users = NULL;
	config->user_count = 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* `name` relative to the directory of `path`, unless it is absolute. */
static bool make_beside(char name[static WEB_CONFIG_TEXT], const char *path)
{
	const char *slash = strrchr(path, '/');
	char whole[WEB_CONFIG_TEXT];

	if (name[0] == '\0' || name[0] == '/' || slash == NULL)
		return true;
	return text_format(whole, sizeof(whole), "%.*s%s", (int)(slash + 1 - path), path, name) &&
	       text_copy(name, WEB_CONFIG_TEXT, whole);
}

enum status web_config_read(struct web_config *config, const char *path, char *why, size_t why_size)
{
	int fd = file_open(AT_FDCWD, path, true);
	enum status status = ERR_SYSTEM;
	char what[512], *text;
	size_t length = 0;

	*config = (struct web_config){ 0 };
	text = fd != -1 ? file_read_whole(fd, WEB_CONFIG_BYTES_MAX, &length) : NULL;
	if (text != NULL) {
		status = web_config_parse(config, text, length, what, sizeof(what));
		text_format(why, why_size, "%s: %s", path, what);
	} else if (errno == EFBIG) {
		text_format(why, why_size, "%s is longer than 64 KiB", path);
		status = ERR_FORMAT;
	} else {
		text_format(why, why_size, "cannot read %s: %s", path, strerror(errno));
		status = errno == ENOMEM ? ERR_NO_SPACE : ERR_SYSTEM;
	}
	if (fd != -1)
		close(fd);
	if (status == OK &&
	    (!make_beside(config->cert_file, path) || !make_beside(config->key_file, path) ||
	     !make_beside(config->client_ca_file, path))) {
		text_format(why, why_size, "%s: file name too long", path);
		status = ERR_FORMAT;
	}
	free(text);
	return status;
}
