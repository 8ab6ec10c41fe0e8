/*
 * HTTP basic authentication against bcrypt hashes, inside a loop that must not stall.
 *
 * bcrypt takes 50 ms and more by design. So a pair that was right once is remembered, as a keyed digest
 * of user, password and hash: a scraper costs one bcrypt, and a changed hash is not remembered. What is
 * not remembered is checked with bcrypt, whether or not the user exists, but at most a fifth of the time
 * goes into that, and an address that was wrong waits for a second: others are told to come again.
 */
#ifndef WEB_AUTH_H
#define WEB_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "programs/agent/web_config.h"

enum {
	WEB_AUTH_REMEMBERED = 64,
	WEB_AUTH_ADDRESSES = 64,
	WEB_AUTH_TEXT = 512, /* "user:password", with its terminator */
};

enum web_verdict {
	WEB_AUTH_GOOD = 0,
	WEB_AUTH_WRONG = 1, /* or missing */
	WEB_AUTH_LATER = 2, /* not checked: too many were wrong */
};

struct web_auth {
	uint8_t secret[32];
	uint8_t good[WEB_AUTH_REMEMBERED][32]; /* all zero: none */
	size_t next_good;
	struct {
		uint8_t address[16];
		uint64_t until_ns;
	} wrong[WEB_AUTH_ADDRESSES];
	size_t next_wrong;
	uint64_t free_ns; /* no bcrypt before */
	uint64_t checks;  /* bcrypts so far */
	void *crypt;	  /* crypt(3)'s scratch */
};

/* ERR_SYSTEM when there is no randomness, or no bcrypt in this system's crypt (errno ENOSYS). */
enum status web_auth_init(struct web_auth *auth);
void web_auth_release(struct web_auth *auth);

/* `header` is the value of Authorization, NULL: none was sent. now_ns is monotonic. */
enum web_verdict web_auth_check(struct web_auth *auth, const struct web_config *config,
				const char *header, const uint8_t address[static 16],
				uint64_t now_ns);

/* "Basic <base64>" into "user:password"; false when it is anything else. */
bool web_auth_decode(const char *header, char to[static WEB_AUTH_TEXT]);

#endif
