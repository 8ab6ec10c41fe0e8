/* Passwords: crypt(3), what was checked before, and limits for guessing. */
#include "serve/web.h"

#include <crypt.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "common/text.h"

/* Share of time for bcrypt, and how long other addresses go first after a wrong password. */
enum { SHARE_OF_TIME = 2 };
static const uint64_t penalty_ns = 1000000000;

/* ---- base64 ---------------------------------------------------------------------------------- */

static int hex_digit(char letter)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = letter ? strchr(digits, letter) : NULL;

	return found ? (int)(found - digits) : -1;
}

bool web_auth_decode(const char *header, char to[static WEB_AUTH_TEXT])
{
	unsigned int bits = 0, gathered = 0;
	size_t used = 0, letters = 0;

	if (strncasecmp(header, "Basic ", 6) != 0)
		return false;
	for (header += 6; *header == ' ';)
		header++;
	for (; hex_digit(*header) >= 0; header++, letters++) {
		gathered = gathered << 6 | (unsigned int)hex_digit(*header);
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		if (used + 1 == WEB_AUTH_TEXT)
			return false;
		to[used] = (char)(gathered >> bits & 0xff);
		if (to[used++] == '\0')
			return false;
	}
	to[used] = '\0';
	/* Padded to a multiple of four, or not at all. */
	letters += strspn(header, "=");
	return header[strspn(header, "=")] == '\0' && strspn(header, "=") <= 2 &&
	       (letters % 4 == 0 || *header == '\0') && bits < 6 &&
	       (gathered & ((1u << bits) - 1)) == 0 && strchr(to, ':') != NULL;
}

/* ---- cache of correct pairs --------------------------------------------------------------------- */

/* The cache key of a pair and its hash. False: GnuTLS failed. */
static bool digest_of(const struct web_auth *auth, const char *pair, const char *hash,
		      uint8_t digest[static 32])
{
	uint8_t text[WEB_AUTH_TEXT + 64] = { 0 };
	int result;

	memcpy(text, pair, strlen(pair));
	memcpy(text + WEB_AUTH_TEXT, hash, strnlen(hash, 64));
	result = gnutls_hmac_fast(GNUTLS_MAC_SHA256, auth->secret, sizeof(auth->secret), text,
				  sizeof(text), digest);
	explicit_bzero(text, sizeof(text));
	return result == GNUTLS_E_SUCCESS;
}

static bool is_remembered(const struct web_auth *auth, const uint8_t digest[static 32])
{
	bool is_found = false;

	for (size_t i = 0; i < WEB_AUTH_REMEMBERED; i++)
		is_found |= gnutls_memcmp(auth->good[i], digest, 32) == 0;
	return is_found;
}

static void auth_remember(struct web_auth *auth, const uint8_t digest[static 32])
{
	memcpy(auth->good[auth->next_good], digest, 32);
	auth->next_good = (auth->next_good + 1) % WEB_AUTH_REMEMBERED;
}

/* ---- wrong attempts ---------------------------------------------------------------------------- */

bool web_auth_was_wrong(const struct web_auth *auth, const uint8_t address[static 16],
			uint64_t now_ns)
{
	for (size_t i = 0; i < WEB_AUTH_ADDRESSES; i++)
		if (now_ns < auth->wrong[i].until_ns &&
		    memcmp(auth->wrong[i].address, address, 16) == 0)
			return true;
	return false;
}

bool web_auth_goes_before(const struct web_auth *auth, const struct web_turn *one,
			  const struct web_turn *other, uint64_t now_ns)
{
	bool was_wrong = web_auth_was_wrong(auth, one->address, now_ns);

	if ((one->wrong > 0) != (other->wrong > 0))
		return one->wrong == 0;
	if (was_wrong != web_auth_was_wrong(auth, other->address, now_ns))
		return !was_wrong;
	return one->since_ns < other->since_ns;
}

static void note_wrong(struct web_auth *auth, const uint8_t address[static 16], uint64_t now_ns)
{
	size_t slot = auth->next_wrong;

	memcpy(auth->wrong[slot].address, address, 16);
	auth->wrong[slot].until_ns = now_ns + penalty_ns;
	auth->next_wrong = (slot + 1) % WEB_AUTH_ADDRESSES;
}

/* ---- checking ---------------------------------------------------------------------------------- */

enum status web_auth_init(struct web_auth *auth)
{
	struct crypt_data *scratch = calloc(1, sizeof(*scratch));
	const char *probe;

	*auth = (struct web_auth){ .crypt = scratch };
	if (scratch == NULL)
		return ERR_NO_SPACE;
	if (getrandom(auth->secret, sizeof(auth->secret), 0) != (ssize_t)sizeof(auth->secret))
		return ERR_SYSTEM;
	probe = crypt_r("", "$2b$04$......................", scratch);
	if (probe == NULL || strlen(probe) != 60) {
		errno = ENOSYS;
		return ERR_SYSTEM;
	}
	return OK;
}

void web_auth_release(struct web_auth *auth)
{
	free(auth->crypt);
	explicit_bzero(auth, sizeof(*auth));
}

bool web_auth_compare(struct web_auth *auth)
{
	struct crypt_data *scratch = auth->crypt;
	const char *made;
	bool is_right;

	scratch->initialized = 0;
	made = crypt_r(auth->password, auth->hash, scratch);
	is_right = made && strlen(made) == strlen(auth->hash) &&
		   gnutls_memcmp(made, auth->hash, strlen(auth->hash)) == 0;
	explicit_bzero(scratch, sizeof(*scratch));
	return is_right && auth->is_known;
}

enum web_verdict web_auth_end(struct web_auth *auth, bool is_right,
			      const uint8_t address[static 16], uint64_t cost_ns, uint64_t now_ns)
{
	static const uint8_t unknown[32];

	auth->checks++;
	auth->free_ns = now_ns + cost_ns * (SHARE_OF_TIME - 1);
	if (!is_right)
		note_wrong(auth, address, now_ns);
	else if (memcmp(auth->digest, unknown, 32) != 0)
		auth_remember(auth, auth->digest);
	explicit_bzero(auth->password, sizeof(auth->password));
	return is_right ? WEB_AUTH_GOOD : WEB_AUTH_WRONG;
}

/* The user named before the colon; NULL: unknown. */
static const struct web_user *find_user(const struct web_config *config, const char *pair)
{
	size_t length = strcspn(pair, ":");

	for (size_t i = 0; i < config->user_count; i++)
		if (strlen(config->users[i].name) == length &&
		    memcmp(config->users[i].name, pair, length) == 0)
			return &config->users[i];
	return NULL;
}

static enum web_verdict check_pair(struct web_auth *auth, const struct web_config *config,
				   const char *pair, bool is_turn, uint64_t now_ns)
{
	const struct web_user *user = find_user(config, pair);
	/* An unknown user takes as long as the first user. */
	const char *hash = user ? user->hash : config->users[0].hash;
	uint8_t digest[32];
	bool has_digest = digest_of(auth, pair, hash, digest);

	if (has_digest && is_remembered(auth, digest))
		return WEB_AUTH_GOOD;
	if (!is_turn || now_ns < auth->free_ns)
		return WEB_AUTH_LATER;
	text_copy(auth->password, sizeof(auth->password), strchr(pair, ':') + 1);
	text_copy(auth->hash, sizeof(auth->hash), hash);
	memset(auth->digest, 0, sizeof(auth->digest));
	if (has_digest)
		memcpy(auth->digest, digest, sizeof(digest));
	auth->is_known = user != NULL;
	return WEB_AUTH_TURN;
}

enum web_verdict web_auth_check(struct web_auth *auth, const struct web_config *config,
				const char *header, bool is_turn, uint64_t now_ns)
{
	enum web_verdict verdict = WEB_AUTH_WRONG;
	char pair[WEB_AUTH_TEXT];

	if (header && config->user_count > 0 && web_auth_decode(header, pair))
		verdict = check_pair(auth, config, pair, is_turn, now_ns);
	explicit_bzero(pair, sizeof(pair));
	return verdict;
}
