#include "programs/agent/web_host.h"

#include <string.h>
#include <strings.h>

#include "common/attributes.h"

static bool is_port(const char *text)
{
	return text[0] == '\0' || (text[0] == ':' && text[1] != '\0' &&
				   text[1 + strspn(text + 1, "0123456789")] == '\0');
}

static bool is_name(const char *host, const char *name)
{
	size_t length = strlen(name);

	return length > 0 && strncasecmp(host, name, length) == 0 && is_port(host + length);
}

bool web_host_is_local(const char *host, const char *own_name)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (is_name(host, names[i]))
			return true;
	return is_name(host, own_name);
}
