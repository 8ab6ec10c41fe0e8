/*
 * The file in which rank 0 says where it can be met. One line for each of its addresses, the same token in
 * each: HOST:PORT TOKEN, an IPv6 address in brackets.
 *
 *	127.0.0.1:40123 9f86d081884c7d65
 */
#ifndef HUB_CARD_H
#define HUB_CARD_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum { HUB_CARD_ADDRESSES = 16, HUB_CARD_HOST = 256, HUB_CARD_BYTES = 8192 };

struct hub_card {
	size_t count;
	char hosts[HUB_CARD_ADDRESSES][HUB_CARD_HOST];
	int port;
	uint64_t token;
};

/* Reads "host:port" and "[::1]:port"; ERR_FORMAT. */
enum status hub_card_address(const char *text, size_t length, char host[static HUB_CARD_HOST],
			     int *port);

enum status hub_card_parse(struct hub_card *card, const char *text, size_t length);

/* Written whole or not at all, mode 0600. ERR_SYSTEM: errno. */
enum status hub_card_write(const struct hub_card *card, const char *path);

/* ERR_SYSTEM: errno (ENOENT: not there yet). ERR_RANGE: it is another user's, no plain file, or too long.
 * ERR_FORMAT. */
enum status hub_card_read(struct hub_card *card, const char *path);

#endif
