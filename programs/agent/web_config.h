/*
 * The web configuration of Prometheus' exporters, as far as the agent takes it:
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
 * What it does not take it refuses with the line and a word why: a setting that guards something must
 * not be passed over. The language is YAML's, of it block maps with plain or quoted scalars, comments and
 * an opening "---"; lists, anchors, tags and texts over several lines are refused.
 */
#ifndef WEB_CONFIG_H
#define WEB_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "common/status.h"

enum {
	WEB_CONFIG_BYTES_MAX = 64 * 1024,
	WEB_CONFIG_TEXT = 1024, /* a value, with its terminator */
	WEB_CONFIG_USERS_MAX = 256,
	WEB_CONFIG_COST_MAX = 14, /* of bcrypt: 2^14 rounds take a second */
};

enum web_client_auth {
	WEB_CLIENT_NONE = 0,
	WEB_CLIENT_REQUEST = 1,		/* asked for, not looked at */
	WEB_CLIENT_REQUIRE_ANY = 2,	/* must be there, not looked at */
	WEB_CLIENT_VERIFY_IF_GIVEN = 3, /* must be good if it is there */
	WEB_CLIENT_REQUIRE = 4,		/* must be there and good */
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
	int min_version; /* of TLS 1.x: 0 to 3 */
	int max_version;
	char strict_transport[256]; /* "": no such header */
	struct web_user *users;
	size_t user_count;
};

/* ERR_FORMAT with a line in why, ERR_NO_SPACE (memory). Release in every case. */
enum status web_config_parse(struct web_config *config, const char *text, size_t length, char *why,
			     size_t why_size);
void web_config_release(struct web_config *config);

/* Read and parse a file; relative names in it become names beside it. ERR_SYSTEM, too: why says all. */
enum status web_config_read(struct web_config *config, const char *path, char *why,
			    size_t why_size);

#endif
