/* Certificates and what is asked of clients, for libmicrohttpd with GnuTLS. */
#ifndef AGENT_TLS_H
#define AGENT_TLS_H

#include <stddef.h>

#include "common/status.h"
#include "programs/agent/web_config.h"

struct agent_tls {
	char *cert; /* PEM */
	char *key;
	char *client_ca; /* NULL: none */
	char priorities[128];
	enum web_client_auth client_auth;
};

/* Reads the files and tries them out. On failure why says all and nothing needs release. */
enum status agent_tls_load(struct agent_tls *tls, const struct web_config *config, char *why,
			   size_t why_size);
void agent_tls_release(struct agent_tls *tls);

/* What a new session asks of its client; `session` is GnuTLS' own. */
void agent_tls_session(const struct agent_tls *tls, void *session);

#endif
