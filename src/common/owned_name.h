/*
 * Names of jobs of several users. The first one keeps the name, others are "NAME (uid 1000)". What looks like that is
 * only made here, so its uid is always true: a user who chooses such a name gets the own one behind it.
 */
#ifndef OWNED_NAME_H
#define OWNED_NAME_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

enum { OWNED_NAME_MOST = 100 }; /* bytes of a name before its uid */

/* The uid at the end of a name; -1: it has none. *length: of what stands before it. */
static inline int64_t owned_name_uid(const char *name, size_t *length)
{
	const char *at = strrchr(name, '(');
	long long uid = -1;
	int end = 0;

	*length = strlen(name);
	if (at == NULL || at < name + 2 || at[-1] != ' ' ||
	    sscanf(at, "(uid %lld)%n", &uid, &end) != 1 || end == 0 || at[end] != '\0' || uid < 0)
		return -1;
	*length = (size_t)(at - 1 - name);
	return uid;
}

/* The name without its owner, if it has that. */
static inline void owned_name_strip(char *name, int64_t owner)
{
	size_t length;

	if (owner >= 0 && owned_name_uid(name, &length) == owner)
		name[length] = '\0';
}

/* Would somebody read a uid in it? With a blank at the end, other blanks or other brackets it is another name, and looks the same. */
static inline bool owned_name_shows_uid(const char *name)
{
	for (const char *at = strcasestr(name, "uid"); at != NULL; at = strcasestr(at + 1, "uid"))
		if ((at == name || !isalnum((unsigned char)at[-1])) &&
		    at[3 + strcspn(at + 3, "0123456789")] != '\0')
			return true;
	return false;
}

/* May it be taken for somebody else's? Then the owner must be shown. */
static inline bool owned_name_is_taken(const char *name, int64_t owner)
{
	size_t length;

	return owner >= 0 && owned_name_uid(name, &length) != owner && owned_name_shows_uid(name);
}

static inline void owned_name_make(char *to, size_t size, const char *name, int64_t owner)
{
	text_format(to, size, "%.*s (uid %lld)", OWNED_NAME_MOST, name, (long long)owner);
}

/* Is it this one, whether its owner is shown or not? */
static inline bool owned_name_is(const char *name, int64_t owner, const char *asked)
{
	char base[256], own[300];

	if (strcmp(name, asked) == 0)
		return true;
	if (owner < 0 || !text_copy(base, sizeof(base), name))
		return false;
	owned_name_strip(base, owner);
	owned_name_make(own, sizeof(own), base, owner);
	return strcmp(own, asked) == 0;
}

#endif
