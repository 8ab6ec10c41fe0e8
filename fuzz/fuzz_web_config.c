/* The agent's web configuration: the input as a file, and what a client sends with it. */
#include <stdlib.h>
#include <string.h>

#include "serve/web.h"
#include "fuzz/fuzz_main.h"

static void check(const struct web_config *config)
{
	if (config->has_tls && (config->cert_file[0] == '\0' || config->key_file[0] == '\0'))
		abort();
	if (config->min_version < 0 || config->max_version > 3 || config->user_count > 256)
		abort();
	if (config->client_auth >= WEB_CLIENT_VERIFY_IF_GIVEN && config->client_ca_file[0] == '\0')
		abort();
	for (size_t i = 0; i < config->user_count; i++)
		if (strlen(config->users[i].hash) != 60 || config->users[i].name[0] == '\0' ||
		    strchr(config->users[i].name, ':'))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of the exact size, so that reads past the end are caught. */
	char *text = malloc(size + 1);
	struct web_config config;
	char why[200] = "";

	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	web_encoding_takes_gzip(text);
	web_host_is_local(text, "node");
	text = realloc(text, size == 0 ? 1 : size);
	if (web_config_parse(&config, text, size, why, sizeof(why)) == OK)
		check(&config);
	else if (why[0] == '\0' || strlen(why) >= sizeof(why))
		abort();
	web_config_release(&config);
	free(text);
	return 0;
}
