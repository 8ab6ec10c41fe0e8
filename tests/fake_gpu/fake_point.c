#include "tests/fake_gpu/fake_point.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/order.h"

uint64_t fake_setting(const char *name, uint64_t standard)
{
	static const char units[] = "KMG";
	const char *value = getenv(name), *unit;
	uint64_t number;
	char *end;

	if (value == NULL || *value == '\0')
		return standard;
	number = strtoull(value, &end, 10);
	unit = *end != '\0' ? strchr(units, *end) : NULL;
	return unit != NULL ? number << (10 * (unit - units + 1)) : number;
}

static int point_try(const char *text, size_t length, uint32_t *calls, int standard)
{
	const char *colon = memchr(text, ':', length);
	uint32_t nth = 1;

	if (colon != NULL) {
		char *end;

		nth = (uint32_t)strtoul(colon + 1, &end, 10);
		if (*end == ':')
			standard = (int)strtol(end + 1, NULL, 10);
	}
	return add_relaxed(calls, 1) + 1 == nth || nth == 0 ? standard : 0;
}

static void stop_where_told(const char *function)
{
	const char *told = getenv("FAKE_GPU_STOP"), *rank = getenv("RANK");
	size_t name = strlen(function);

	if (told != NULL && rank != NULL && strncmp(told, function, name) == 0 &&
	    told[name] == ':' && strcmp(told + name + 1, rank) == 0)
		(void)raise(SIGSTOP);
}

int fake_point(const char *variable, const char *function, uint32_t calls[FAKE_POINTS],
	       int standard)
{
	const char *text = getenv(variable);
	int result = 0;

	stop_where_told(function);
	for (int i = 0; text != NULL && *text != '\0' && i < FAKE_POINTS; i++) {
		size_t length = strcspn(text, ","), name = strcspn(text, ":,");

		if (strlen(function) == name && strncmp(text, function, name) == 0 && result == 0)
			result = point_try(text, length, &calls[i], standard);
		text += length + (text[length] == ',');
	}
	return result;
}
