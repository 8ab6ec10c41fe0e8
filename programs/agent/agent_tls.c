#include "programs/agent/agent_tls.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/text.h"

enum { PEM_BYTES_MAX = 1024 * 1024 };

/* A whole file as a text. */
static char *read_pem(const char *path, char *why, size_t why_size)
{
	char *text = calloc(1, PEM_BYTES_MAX + 1), *fitting;
	int fd = file_open(AT_FDCWD, path, true);
	size_t length = 0;

	if (text == NULL || fd == -1 ||
	    file_pread_some(fd, text, PEM_BYTES_MAX, 0, &length) != OK) {
		text_format(why, why_size, "cannot read %s: %s", path,
			    text ? strerror(errno) : "not enough memory");
		free(text);
		text = NULL;
	}
	if (fd != -1)
		close(fd);
	fitting = text ? realloc(text, length + 1) : NULL;
	return fitting ? fitting : text;
}

static gnutls_datum_t datum_of(char *text)
{
	return (gnutls_datum_t){ (unsigned char *)text, (unsigned int)strlen(text) };
}

/* libmicrohttpd does not say what is wrong with a certificate, so GnuTLS is asked. */
static enum status try_out(const struct agent_tls *tls, const struct web_config *config, char *why,
			   size_t why_size)
{
	gnutls_datum_t cert = datum_of(tls->cert), key = datum_of(tls->key), ca;
	gnutls_certificate_credentials_t credentials;
	int code;

	if (gnutls_certificate_allocate_credentials(&credentials) != GNUTLS_E_SUCCESS) {
		text_format(why, why_size, "not enough memory");
		return ERR_NO_SPACE;
	}
	code = gnutls_certificate_set_x509_key_mem(credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
	if (code < 0) {
		text_format(why, why_size, "%s with %s: %s", config->cert_file, config->key_file,
			    gnutls_strerror(code));
	} else if (tls->client_ca) {
		ca = datum_of(tls->client_ca);
		code = gnutls_certificate_set_x509_trust_mem(credentials, &ca, GNUTLS_X509_FMT_PEM);
		if (code == 0)
			code = GNUTLS_E_NO_CERTIFICATE_FOUND;
		if (code < 0)
			text_format(why, why_size, "%s: %s", config->client_ca_file,
				    gnutls_strerror(code));
	}
	gnutls_certificate_free_credentials(credentials);
	return code < 0 ? ERR_FORMAT : OK;
}

enum status agent_tls_load(struct agent_tls *tls, const struct web_config *config, char *why,
			   size_t why_size)
{
	enum status status = ERR_SYSTEM;

	*tls = (struct agent_tls){ .client_auth = config->client_auth };
	text_format(tls->priorities, sizeof(tls->priorities), "NORMAL:-VERS-ALL");
	for (int version = config->max_version; version >= config->min_version; version--) {
		size_t used = strlen(tls->priorities);

		text_format(tls->priorities + used, sizeof(tls->priorities) - used,
			    ":+VERS-TLS1.%d", version);
	}
	tls->cert = read_pem(config->cert_file, why, why_size);
	if (tls->cert)
		tls->key = read_pem(config->key_file, why, why_size);
	if (tls->key && config->client_ca_file[0])
		tls->client_ca = read_pem(config->client_ca_file, why, why_size);
	if (tls->key && (tls->client_ca || !config->client_ca_file[0]))
		status = try_out(tls, config, why, why_size);
	if (status != OK)
		agent_tls_release(tls);
	return status;
}

void agent_tls_release(struct agent_tls *tls)
{
	if (tls->key)
		explicit_bzero(tls->key, strlen(tls->key));
	free(tls->cert);
	free(tls->key);
	free(tls->client_ca);
	*tls = (struct agent_tls){ 0 };
}

/* Gives back 0, or a code that ends the handshake. */
static int verify_client(gnutls_session_t session)
{
	gnutls_typed_vdata_st purpose = { GNUTLS_DT_KEY_PURPOSE_OID,
					  (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT, 0 };
	unsigned int problems = 0;

	if (gnutls_certificate_verify_peers(session, &purpose, 1, &problems) < 0 || problems != 0)
		return GNUTLS_E_CERTIFICATE_ERROR;
	return 0;
}

static int verify_if_given(gnutls_session_t session)
{
	unsigned int count = 0;

	return gnutls_certificate_get_peers(session, &count) ? verify_client(session) : 0;
}

void agent_tls_session(const struct agent_tls *tls, void *session)
{
	gnutls_session_t to = session;

	switch (tls->client_auth) {
	case WEB_CLIENT_NONE:
		break;
	case WEB_CLIENT_REQUEST:
		gnutls_certificate_server_set_request(to, GNUTLS_CERT_REQUEST);
		break;
	case WEB_CLIENT_REQUIRE_ANY:
		gnutls_certificate_server_set_request(to, GNUTLS_CERT_REQUIRE);
		break;
	case WEB_CLIENT_VERIFY_IF_GIVEN:
		gnutls_certificate_server_set_request(to, GNUTLS_CERT_REQUEST);
		gnutls_session_set_verify_function(to, verify_if_given);
		break;
	case WEB_CLIENT_REQUIRE:
		gnutls_certificate_server_set_request(to, GNUTLS_CERT_REQUIRE);
		gnutls_session_set_verify_function(to, verify_client);
		break;
	}
}
