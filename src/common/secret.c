/* Recognizes secrets by words in names and by shapes of values. */
#include "common/secret.h"

#include <string.h>
#include <strings.h>

#include "common/attributes.h"

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static bool is_capital(char byte)
{
	return byte >= 'A' && byte <= 'Z';
}

static bool is_small(char byte)
{
	return byte >= 'a' && byte <= 'z';
}

static bool has_any(const char *text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcasestr(text, words[i]) != NULL)
			return true;
	return false;
}

/* InfiniBand's partition key is a table index, not a secret. */
static bool is_partition_key(const char *name)
{
	size_t length = strlen(name);

	return length > 5 && strcasecmp(name + length - 5, "_PKEY") == 0;
}

bool secret_is_name(const char *name)
{
	static const char *const words[] = { "TOKEN",	"SECRET",    "PASS",   "PWD",	 "KEY",
					     "CRED",	"AUTH",	     "JWT",    "BEARER", "COOKIE",
					     "SESSION", "SIGNATURE", "PRIVATE" };

	return has_any(name, words, ARRAY_LENGTH(words)) && !is_partition_key(name);
}

/* "token=...", "Api_Key : ...", "password": "...". */
static bool has_assignment(const char *value)
{
	static const char *const words[] = { "token",  "password",    "passwd",	 "pwd",
					     "pass",   "passphrase",  "secret",	 "key",
					     "auth",   "signature",   "sig",	 "credential",
					     "cookie", "credentials", "session", "jwt" };

	for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
		for (const char *at = value; (at = strcasestr(at, words[i])) != NULL;) {
			at += strlen(words[i]);
			at += strspn(at, "\"' \\");
			if (*at == '=' || *at == ':' || strncasecmp(at, "%3d", 3) == 0)
				return true;
		}
	return false;
}

/* At the start of a word, as these are written. In a path "/hf_cache" is an ordinary name. */
static bool has_beginning(const char *value)
{
	static const char *const words[] = { "eyJ",  "AKIA", "ASIA", "ghp_",	    "gho_",
					     "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-",
					     "xox",  "sk-",  "hf_" };
	enum { PATH_MAY_HAVE = 10 }; /* from this index on */

	for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
		for (const char *at = value; (at = strstr(at, words[i])) != NULL; at++) {
			char before = at == value ? ' ' : at[-1];

			if (!is_digit(before) && !is_capital(before) && !is_small(before) &&
			    (before != '/' || i < PATH_MAY_HAVE))
				return true;
		}
	return false;
}

/*
 * "name:password@host", with or without a scheme, also if a part is empty. A name alone does not
 * count.
 */
static bool has_user(const char *value)
{
	const char *colon = strchr(value, ':');

	return (colon != NULL && strchr(colon, '@') != NULL) || strstr(value, "%40") != NULL;
}

/* A long mix of letters, digits and symbols without blanks or slashes: not typed by a person. */
static bool is_random(const char *value)
{
	size_t length = strlen(value), digits = 0, capitals = 0, smalls = 0;

	if (length < 32 || strpbrk(value, " /,:;=.%[]") != NULL)
		return false;
	for (const char *at = value; *at != '\0'; at++) {
		digits += is_digit(*at);
		capitals += is_capital(*at);
		smalls += is_small(*at);
	}
	return digits >= 4 && capitals >= 4 && smalls >= 4;
}

bool secret_is_value(const char *value)
{
	static const char *const words[] = { "Bearer",	 "Basic ",	  "Basic?",
					     "Basic%20", "Authorization", "-----BEGIN" };

	return has_any(value, words, ARRAY_LENGTH(words)) || has_assignment(value) ||
	       has_beginning(value) || has_user(value) || is_random(value);
}

bool secret_is_line(const char *line, size_t length)
{
	char text[4096], *sign;

	if (length < 4 || memcmp(line, "env.", 4) != 0)
		return false;
	/* A value this long does not affect how a job communicates. */
	if (length >= sizeof(text))
		return true;
	memcpy(text, line, length);
	text[length] = '\0';
	sign = strchr(text, '=');
	if (sign == NULL)
		return false;
	*sign = '\0';
	return secret_is_name(text + 4) || secret_is_value(sign + 1);
}
