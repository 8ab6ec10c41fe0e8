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

static bool is_letter(char byte)
{
	return is_capital(byte) || is_small(byte);
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

/* The word before `at` is an option: "--hf-token". */
static bool is_option(const char *value, const char *at)
{
	while (at > value &&
	       (is_letter(at[-1]) || is_digit(at[-1]) || at[-1] == '-' || at[-1] == '_'))
		at--;
	return *at == '-' && (at == value || at[-1] == ' ' || at[-1] == '"' || at[-1] == '\'');
}

/* "token=...", "Api_Key : ...", "password": "...", "--password ...". */
static bool has_assignment(const char *value)
{
	static const char *const words[] = {
		"token",      "password", "passwd",	 "pwd",		  "pass",      "passphrase",
		"secret",     "key",	  "auth",	 "authorization", "signature", "sig",
		"credential", "cookie",	  "credentials", "session",	  "jwt"
	};

	for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
		for (const char *at = value; (at = strcasestr(at, words[i])) != NULL;) {
			const char *end = at + strlen(words[i]);

			at = end + strspn(end, "\"' \\");
			if (*at == '=' || *at == ':' || strncasecmp(at, "%3d", 3) == 0)
				return true;
			if (at > end && *at != '\0' && *at != '-' && is_option(value, end))
				return true;
		}
	return false;
}

/* At the start of a word, as these are written. In a path "/hf_cache" is an ordinary name. */
static bool has_beginning(const char *value)
{
	static const struct {
		const char *text;
		unsigned char after; /* so many letters, digits, '-', '_' and '.' follow at least */
		bool is_in_paths;
	} beginnings[] = {
		{ "eyJ", 0, false },	     { "AKIA", 0, false },
		{ "ASIA", 0, false },	     { "ghp_", 0, false },
		{ "gho_", 0, false },	     { "ghu_", 0, false },
		{ "ghs_", 0, false },	     { "ghr_", 0, false },
		{ "github_pat_", 0, false }, { "glpat-", 0, false },
		{ "xox", 0, true },	     { "xapp-", 8, false },
		{ "sk-", 0, true },	     { "sk_live_", 8, false },
		{ "hf_", 0, true },	     { "ya29.", 8, false },
		{ "AIza", 30, false },	     { "SG.", 16, true },
		{ "npm_", 30, true },	     { "pypi-", 30, true },
		{ "dapi", 32, true },	     { "wandb_v1_", 8, true },
		{ "dckr_pat_", 8, false },   { "nvapi-", 16, false },
		{ "1//0", 30, false },	     { "hooks.slack.com/", 0, true },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(beginnings); i++)
		for (const char *at = value; (at = strstr(at, beginnings[i].text)) != NULL; at++) {
			char before = at == value ? ' ' : at[-1];
			size_t after = 0;

			for (const char *next = at + strlen(beginnings[i].text);
			     is_letter(*next) || is_digit(*next) || *next == '-' || *next == '_' ||
			     *next == '.';
			     next++)
				after++;
			if (!is_digit(before) && !is_letter(before) &&
			    after >= beginnings[i].after &&
			    (before != '/' || !beginnings[i].is_in_paths ||
			     strncmp(beginnings[i].text, "hooks", 5) == 0))
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

/*
 * Words that nobody typed. Names of people consist of runs of small letters or capitals, even in
 * CamelCase; in random ones such runs are short.
 */

struct word {
	const char *at;
	size_t length; /* without '=' at its end */
	bool is_padded;
	bool is_first; /* no '/' before it, or it is part of a URL */
};

struct letters {
	size_t digits, digit_runs, capitals, smalls, slashes, others;
	size_t named;	       /* in runs of three and more */
	unsigned int hex_seen; /* bit d: digit d occurs */
	bool is_hex;
};

static void count_letters(const struct word *word, struct letters *count)
{
	*count = (struct letters){ .is_hex = true };
	for (size_t i = 0, run; i < word->length; i += run) {
		bool is_run_of_capitals = is_capital(word->at[i]);
		bool (*is_same)(char) = is_run_of_capitals ? is_capital : is_small;

		run = 1;
		while (is_letter(word->at[i]) && i + run < word->length &&
		       is_same(word->at[i + run]))
			run++;
		/* A capital begins the word that follows. */
		if (is_run_of_capitals && run == 1 && i + 1 < word->length)
			while (i + run < word->length && is_small(word->at[i + run]))
				run++;
		if (is_letter(word->at[i]) && run >= 3)
			count->named += run;
	}
	for (size_t i = 0; i < word->length; i++) {
		char byte = word->at[i];
		unsigned int digit = is_digit(byte)   ? (unsigned int)(byte - '0')
				     : is_small(byte) ? (unsigned int)(byte - 'a') + 10
						      : (unsigned int)(byte - 'A') + 10;

		count->digits += is_digit(byte);
		count->digit_runs += is_digit(byte) && (i == 0 || !is_digit(word->at[i - 1]));
		count->capitals += is_capital(byte);
		count->smalls += is_small(byte);
		count->slashes += byte == '/';
		count->others += byte == '-' || byte == '_';
		if ((is_digit(byte) || is_letter(byte)) && digit < 16)
			count->hex_seen |= 1u << digit;
		else
			count->is_hex = false;
	}
}

/* What stands before it says that it is a hash: "commit 1a2b...", "sha256:...", "rev=...". */
static bool is_known_hash(const char *name, const char *value, const char *at)
{
	static const char *const names[] = { "commit", "sha",	   "sha1",     "sha256", "md5",
					     "rev",    "revision", "hash",     "digest", "git",
					     "uuid",   "id",	   "checksum", "build" };
	const char *end = at;

	while (end > value && strchr(" =:@\"'-_(", end[-1]) != NULL)
		end--;
	if (end == value) {
		value = name;
		end = name + strlen(name);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		size_t length = strlen(names[i]);

		if ((size_t)(end - value) >= length &&
		    strncasecmp(end - length, names[i], length) == 0)
			return true;
	}
	return false;
}

static bool is_random(const char *name, const char *value, const struct word *word)
{
	struct letters count;
	size_t letters, kinds;

	if (word->length < 16 || strncmp(word->at, "_Z", 2) == 0) /* C++'s mangled names */
		return false;
	count_letters(word, &count);
	if (count.others * 8 > word->length) /* short names, joined */
		return false;
	letters = count.capitals + count.smalls;
	/* Hashes in paths, as of containers and stores, are names. */
	if (count.is_hex && (count.capitals == 0 || count.smalls == 0))
		return word->length >= 32 && __builtin_popcount(count.hex_seen) >= 8 &&
		       letters >= 4 && word->is_first && !is_known_hash(name, value, word->at);
	kinds = (count.digits > 0) + (count.capitals > 1) + (count.smalls > 1);
	/* One case only, as in base32: digits are all over it. */
	if (kinds < 3 && word->length >= 32 && count.digit_runs >= 4 &&
	    letters * 2 > count.digits && count.others == 0 && word->is_first)
		return true;
	if (kinds < 3 && !word->is_padded)
		return false;
	if (word->length >= 32 && count.slashes == 0 && count.digit_runs >= 4 &&
	    count.capitals >= 4 && count.smalls >= 4)
		return true;
	if (count.named * 10 > letters * 8 || letters < 8)
		return false;
	if (word->is_padded)
		return kinds >= 2 && count.slashes * 8 <= word->length;
	if (count.slashes > 0)
		return word->length >= 32 && kinds == 3 && count.others == 0 &&
		       count.slashes * 8 <= word->length;
	return word->length >= 24;
}

static bool is_word_byte(char byte)
{
	return is_letter(byte) || is_digit(byte) || (byte != '\0' && strchr("+/-_", byte) != NULL);
}

/* "8f3c9a1e-1b2c-4d5e-8f90-123456789abc": how many bytes; 0: none. */
static size_t uuid_length(const char *at)
{
	static const unsigned char groups[] = { 8, 4, 4, 4, 12 };
	const char *start = at;

	for (size_t i = 0; i < ARRAY_LENGTH(groups); i++) {
		for (unsigned int digit = 0; digit < groups[i]; digit++, at++)
			if (!is_digit(*at) && !(*at >= 'a' && *at <= 'f') &&
			    !(*at >= 'A' && *at <= 'F'))
				return 0;
		if (i + 1 < ARRAY_LENGTH(groups) && *at++ != '-')
			return 0;
	}
	return is_digit(*at) || is_letter(*at) ? 0 : (size_t)(at - start);
}

/* "pul-" or "dop_v1_" before a key of hexadecimal digits: the key alone is looked at. */
static bool has_random_end(const char *name, const char *value, const struct word *word)
{
	for (size_t i = word->length; i > 0; i--) {
		struct word end = { .at = word->at + i,
				    .length = word->length - i,
				    .is_first = word->is_first };
		struct letters count;

		if (word->at[i - 1] != '-' && word->at[i - 1] != '_')
			continue;
		count_letters(&end, &count);
		return count.is_hex && is_random(name, value, &end);
	}
	return false;
}

static bool has_random(const char *name, const char *value)
{
	bool is_url = strstr(value, "://") != NULL;

	for (const char *at = value; *at != '\0';) {
		struct word word = { .at = at };

		while (is_word_byte(at[word.length]) && uuid_length(at + word.length) == 0)
			word.length++;
		at += word.length;
		word.is_padded =
			word.length > 0 && *at == '=' && !is_word_byte(at[1 + (at[1] == '=')]);
		word.is_first = is_url || memchr(word.at, '/', word.length) == NULL;
		/* In a path each part may be one; alone, parts are shorter than a key. */
		if (is_random(name, value, &word) || has_random_end(name, value, &word))
			return true;
		for (const char *part = word.at, *slash;
		     (slash = memchr(part, '/', (size_t)(at - part))) != NULL || part > word.at;
		     part = slash + 1) {
			struct word piece = { .at = part, .is_first = is_url };

			piece.length = (size_t)((slash != NULL ? slash : at) - part);
			if (is_random(name, value, &piece))
				return true;
			if (slash == NULL)
				break;
		}
		if (*at != '\0')
			at += uuid_length(at) > 0 ? uuid_length(at) : 1;
	}
	return false;
}

static bool is_secret(const char *name, const char *value)
{
	static const char *const words[] = { "Bearer", "Basic ", "Basic?", "Basic%20",
					     "-----BEGIN" };

	return has_any(value, words, ARRAY_LENGTH(words)) || has_assignment(value) ||
	       has_beginning(value) || has_user(value) || has_random(name, value);
}

bool secret_is_value(const char *value)
{
	return is_secret("", value);
}

bool secret_is_pair(const char *name, const char *value)
{
	return secret_is_name(name) || is_secret(name, value);
}

bool secret_is_line(const char *line, size_t length)
{
	/* Paths and texts that the user chose. Others are numbers, and names that readers need. */
	static const char *const texts[] = { "trace", "exe", "inspector", "region" };
	char text[4096], *sign;

	/* A value this long does not affect how a job communicates. */
	if (length >= sizeof(text))
		return true;
	memcpy(text, line, length);
	text[length] = '\0';
	sign = strchr(text, '=');
	if (sign == NULL)
		return false;
	*sign = '\0';
	if (strncmp(text, "env.", 4) == 0)
		return secret_is_pair(text + 4, sign + 1);
	if (strncmp(text, "label.", 6) == 0)
		return secret_is_pair(text + 6, sign + 1);
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
		if (strcmp(text, texts[i]) == 0)
			return secret_is_value(sign + 1);
	return strncmp(text, "message.", 8) == 0 && secret_is_value(sign + 1);
}
