/* What a web server needs besides HTTP: configuration, addresses, compression, passwords. Reads arbitrary bytes. */
#ifndef WEB_H
#define WEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/status.h"

/*
 * The web configuration of Prometheus exporters, as far as the agent supports it:
 *
 *	tls_server_config:
 *	  cert_file: server.crt                  # relative to this file
 *	  key_file: server.key
 *	  client_auth_type: RequireAndVerifyClientCert
 *	  client_ca_file: clients.crt
 *	  min_version: TLS13
 *	http_server_config:
 *	  http2: false
 *	  headers:
 *	    Strict-Transport-Security: max-age=86400
 *	basic_auth_users:
 *	  prometheus: $2y$10$...                 # bcrypt
 *
 * Anything else is rejected with its line and a reason: a security setting must not be ignored. Supported YAML is
 * block maps with plain or quoted scalars, comments and an opening "---"; lists, anchors, tags and multi-line text
 * are rejected.
 */

enum {
	WEB_CONFIG_BYTES_MAX = 64 * 1024,
	WEB_CONFIG_TEXT = 1024, /* a value with its terminator */
	WEB_CONFIG_USERS_MAX = 256,
	WEB_CONFIG_COST_MAX = 14, /* of bcrypt: 2^14 rounds take a second */
};

enum web_client_auth {
	WEB_CLIENT_NONE = 0,
	WEB_CLIENT_REQUEST = 1,		/* requested, not verified */
	WEB_CLIENT_REQUIRE_ANY = 2,	/* required, not verified */
	WEB_CLIENT_VERIFY_IF_GIVEN = 3, /* verified if given */
	WEB_CLIENT_REQUIRE = 4,		/* required and verified */
};

struct web_user {
	char name[128];
	char hash[64]; /* bcrypt, 60 characters */
};

struct web_config {
	bool has_tls;
	char cert_file[WEB_CONFIG_TEXT];
	char key_file[WEB_CONFIG_TEXT];
	char client_ca_file[WEB_CONFIG_TEXT];
	enum web_client_auth client_auth;
	int min_version; /* x of TLS 1.x: 0 to 3 */
	int max_version;
	char strict_transport[256]; /* "": no such header */
	struct web_user *users;
	size_t user_count;
};

/* ERR_FORMAT with a message in `why`, ERR_NO_SPACE (memory). Must be released even if it fails. */
enum status web_config_parse(struct web_config *config, const char *text, size_t length, char *why,
			     size_t why_size);
void web_config_release(struct web_config *config);

/* Reads and parses a file; file names in it are relative to it. Also ERR_SYSTEM, with a message in `why`. */
enum status web_config_read(struct web_config *config, const char *path, char *why,
			    size_t why_size);

/* A listen address as on the command line: "127.0.0.1:9749", "[::1]:9749", ":9749", "unix:/path". */

struct web_address {
	struct sockaddr_storage socket;
	socklen_t length;
	bool is_unix;
	bool is_loopback; /* only reachable from this host */
	bool is_any;	  /* ":9749": all addresses, both families */
};

/* Addresses are numeric: no name except "localhost" is resolved. ERR_FORMAT with *why (static). */
enum status web_address_parse(struct web_address *address, const char *text, const char **why);

/* The same for a socket that is already bound. */
void web_address_of(struct web_address *address, const struct sockaddr_storage *socket,
		    socklen_t length);

/* 0: a Unix socket, or the system chooses. */
unsigned int web_address_port(const struct web_address *address);

/* "127.0.0.1:9749", "unix:/path". */
void web_address_text(const struct web_address *address, char *to, size_t size);

/*
 * Protection against DNS rebinding: a web site can make a browser connect to 127.0.0.1 under the site's own name and
 * read the answer. The Host header still has that name. So a loopback listener only answers to loopback names and the
 * name of this host.
 */

/* `host` as in the header: a name or address; a port is ignored, because tunnels change it. Allowed are localhost,
 * 127.0.0.1, [::1] and own_name, ignoring case. */
bool web_host_is_local(const char *host, const char *own_name);

/* A value of a query string, with %XX decoded; the server leaves it as it was sent. False: it is too long, a NUL, or
 * not escaped correctly. NULL is "". */
bool web_unescape(char *to, size_t size, const char *from);

/* Compression of answers. */

/* Whether an Accept-Encoding header accepts gzip; false for NULL. */
bool web_encoding_takes_gzip(const char *header);

/* A gzip stream, fast rather than small. NULL: out of memory. The caller frees it. */
void *web_encoding_gzip(const void *bytes, size_t length, size_t *packed);

/*
 * HTTP basic authentication against bcrypt hashes, in an event loop that must not block.
 *
 * bcrypt takes 50 ms and more by design. So a correct pair is cached as a keyed digest of user, password and hash: a
 * scraper costs one bcrypt, and a changed hash is not in the cache. Other pairs are checked with bcrypt, whether or not
 * the user exists, one after the other and for at most half of the time, by a child of the caller. Requests wait for their
 * turn; who is next is the caller's choice, by what is known about connection and address.
 */

enum {
	WEB_AUTH_REMEMBERED = 64,
	WEB_AUTH_ADDRESSES = 64,
	WEB_AUTH_TEXT = 512, /* "user:password" with its terminator */
};

enum web_verdict {
	WEB_AUTH_GOOD = 0,
	WEB_AUTH_WRONG = 1, /* or missing */
	WEB_AUTH_LATER = 2, /* not checked: it is not its turn */
	WEB_AUTH_TURN = 3,  /* its turn has come: web_auth_compare(), then web_auth_end() */
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
	uint64_t checks;  /* bcrypt calls so far */
	void *crypt;	  /* scratch memory of crypt(3) */

	/* The pair whose turn it is. */
	char password[WEB_AUTH_TEXT];
	char hash[64];
	uint8_t digest[32]; /* all zero: unknown */
	bool is_known;	    /* there is such a user */
};

/* ERR_SYSTEM without randomness, or without bcrypt in the system's crypt (errno ENOSYS). */
enum status web_auth_init(struct web_auth *auth);
void web_auth_release(struct web_auth *auth);

/* `header` is the value of Authorization, NULL: none was sent; is_turn: no other request waits before this one. now_ns is
 * monotonic. */
enum web_verdict web_auth_check(struct web_auth *auth, const struct web_config *config,
				const char *header, bool is_turn, uint64_t now_ns);

/* Compares the pair whose turn it is: this is what takes time. */
bool web_auth_compare(struct web_auth *auth);
/* Notes the result and forgets the pair. */
enum web_verdict web_auth_end(struct web_auth *auth, bool is_right,
			      const uint8_t address[static 16], uint64_t cost_ns, uint64_t now_ns);

/* A request that waits. A connection that has sent a wrong password goes after those that have not, an address that has
 * sent one in the last second after others, and then whoever came first: guessing on the same connections does not keep
 * others out, and on new ones it delays them by one check per connection that an address may have. */
struct web_turn {
	const uint8_t *address; /* [16] */
	uint32_t wrong;		/* passwords that its connection has sent */
	uint64_t since_ns;
};
bool web_auth_goes_before(const struct web_auth *auth, const struct web_turn *one,
			  const struct web_turn *other, uint64_t now_ns);

/* Did this address send a wrong password in the last second? */
bool web_auth_was_wrong(const struct web_auth *auth, const uint8_t address[static 16],
			uint64_t now_ns);

/* Decodes "Basic <base64>" to "user:password"; false for anything else. */
bool web_auth_decode(const char *header, char to[static WEB_AUTH_TEXT]);

#endif
