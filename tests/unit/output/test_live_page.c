/*
 *	test_live_page             tests
 *	test_live_page DIRECTORY   writes the page's files there, and its policy, for a server of the tests
 */
#include "output/live_page.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "tests/tap.h"

static const char *const paths[] = { "/",	  "/page.css",	"/page.js",
				     "/icon.svg", "/uplot.css", "/uplot.js" };

static bool has(const char *path, const char *part)
{
	const struct live_page_file *file = live_page_file(path);

	return file && memmem(file->bytes, file->length, part, strlen(part)) != NULL;
}

static void test_files(void)
{
	for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
		const struct live_page_file *file = live_page_file(paths[i]);

		if (!EXPECT_THAT(paths[i], file != NULL))
			continue;
		EXPECT_THAT("is itself", strcmp(file->path, paths[i]) == 0);
		EXPECT_THAT("has a type", strchr(file->type, '/') != NULL);
		EXPECT_THAT("has an etag in quotes", file->etag[0] == '"' &&
							     strlen(file->etag) == 18 &&
							     file->etag[17] == '"');
	}
	EXPECT_THAT("the page is a page", has("/", "<!doctype html>") && has("/", "</html>"));
	EXPECT_THAT("the style is one", has("/page.css", "prefers-color-scheme"));
	EXPECT_THAT("the script begins with its first part and ends with its last",
		    memcmp(live_page_file("/page.js")->bytes, "'use strict';", 13) == 0 &&
			    has("/page.js", "\naskAgent();\n"));
	EXPECT_THAT("the library has its licence with it, or is missing",
		    live_page_file("/uplot.js")->length == 0 ||
			    (has("/uplot.js", "Permission is hereby granted") &&
			     has("/uplot.js", "uPlot")));
	EXPECT_THAT("nothing else is there",
		    !live_page_file("") && !live_page_file("/index.html") &&
			    !live_page_file("//") && !live_page_file("/page.js/") &&
			    !live_page_file("/../page.js") && !live_page_file("page.js") &&
			    !live_page_file("/PAGE.JS"));
}

static bool hub_has(const char *path, const char *part)
{
	const struct live_page_file *file = live_page_hub_file(path);

	return file && memmem(file->bytes, file->length, part, strlen(part)) != NULL;
}

static void test_hub(void)
{
	EXPECT(hub_has("/", "hub.js") && hub_has("/page.css", ".notice") &&
	       hub_has("/icon.svg", "svg"));
	EXPECT_THAT("its script has all parts", hub_has("/hub.js", "function makeVerdict(") &&
							hub_has("/hub.js", "\naskHub();\n"));
	EXPECT_THAT("nothing of the agent's page",
		    !live_page_hub_file("/page.js") && !live_page_hub_file("/uplot.js"));
	EXPECT_THAT("no inline script or style, nothing from elsewhere",
		    !hub_has("/", "<script>") && !hub_has("/", " onclick=") &&
			    !hub_has("/", "<style") && !hub_has("/", " style=") &&
			    !hub_has("/", "http://") && !hub_has("/hub.js", "http://") &&
			    !hub_has("/hub.js", "https://"));
	EXPECT_THAT("no HTML is made from texts",
		    !hub_has("/hub.js", "innerHTML") && !hub_has("/hub.js", "outerHTML") &&
			    !hub_has("/hub.js", "insertAdjacentHTML") &&
			    !hub_has("/hub.js", "document.write"));
}

/* The policy would refuse it: better to find it here. */
static void test_policy(void)
{
	EXPECT_THAT("no inline script",
		    !has("/", "<script>") && !has("/", " onclick=") && !has("/", "javascript:"));
	EXPECT_THAT("no inline style", !has("/", "<style") && !has("/", " style="));
	EXPECT_THAT("nothing from elsewhere",
		    !has("/", "http://") && !has("/", "https://") && !has("/page.css", "url(") &&
			    !has("/page.css", "@import") && !has("/page.js", "http://") &&
			    !has("/page.js", "https://"));
	EXPECT_THAT("no HTML is made from texts",
		    !has("/page.js", "innerHTML") && !has("/page.js", "outerHTML") &&
			    !has("/page.js", "insertAdjacentHTML") &&
			    !has("/page.js", "document.write") && !has("/page.js", "eval("));
}

static void write_file(const char *directory, const char *name, const void *bytes, size_t length)
{
	char path[1024];
	FILE *file;

	text_format(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	if (file == NULL || fwrite(bytes, 1, length, file) != length || fclose(file) != 0) {
		perror(path);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
			const struct live_page_file *file = live_page_file(paths[i]);

			write_file(argv[1], i == 0 ? "index.html" : paths[i] + 1, file->bytes,
				   file->length);
		}
		write_file(argv[1], "policy", LIVE_PAGE_POLICY, strlen(LIVE_PAGE_POLICY));
		return 0;
	}
	test_files();
	test_policy();
	test_hub();
	return tap_done();
}
