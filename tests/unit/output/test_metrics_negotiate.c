#include "output/metrics.h"
#include "tests/tap.h"

#include <string.h>

#define DELIMITED      \
	"application/" \
	"vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

static void asks(const char *sentence, const char *accept, enum metrics_format wanted)
{
	EXPECT_THAT(sentence, metrics_negotiate(accept) == wanted);
}

static void test_servers(void)
{
	asks("Prometheus 2.42 gets OpenMetrics",
	     "application/openmetrics-text;version=1.0.0,application/openmetrics-text;"
	     "version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
	     METRICS_OPENMETRICS);
	asks("Prometheus 2.42 with native histograms gets protocol buffers",
	     DELIMITED ",application/openmetrics-text;version=1.0.0;q=0.8,"
		       "application/openmetrics-text;version=0.0.1;q=0.75,"
		       "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
	     METRICS_PROTOBUF);
	asks("a server that knows only the first OpenMetrics gets text",
	     "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
	     METRICS_TEXT);
	asks("Prometheus 3 with escaping gets OpenMetrics",
	     "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
	     "application/openmetrics-text;version=0.0.1;q=0.4,"
	     "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
	     "text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
	     METRICS_OPENMETRICS);
	asks("a browser gets text", "text/html,application/xhtml+xml,*/*;q=0.8", METRICS_TEXT);
	asks("curl gets text", "*/*", METRICS_TEXT);
	asks("no header at all gets text", NULL, METRICS_TEXT);
}

static void test_weights(void)
{
	asks("the larger weight wins, wherever it stands",
	     "text/plain;q=0.4, application/openmetrics-text;q=0.41", METRICS_OPENMETRICS);
	asks("the first wins where weights are equal", "text/plain, application/openmetrics-text",
	     METRICS_TEXT);
	asks("weight 0 is no", "application/openmetrics-text;q=0, text/plain;q=0.1", METRICS_TEXT);
	asks("thousandths count", DELIMITED ";q=0.998,application/openmetrics-text;q=0.999",
	     METRICS_OPENMETRICS);
	asks("a weight that is none is not taken", "application/openmetrics-text;q=2,*/*;q=0.1",
	     METRICS_TEXT);
	asks("a weight of letters is not taken", "application/openmetrics-text;q=x", METRICS_TEXT);
}

static void test_forms(void)
{
	asks("blanks, capitals and quotes do not matter",
	     " Application/OpenMetrics-Text ; Version=\"1.0.0\" ; Q=1 ", METRICS_OPENMETRICS);
	asks("protocol buffers that are not delimited are not ours",
	     "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
	     "encoding=text",
	     METRICS_TEXT);
	asks("other messages are not ours",
	     "application/vnd.google.protobuf;proto=other;encoding=delimited", METRICS_TEXT);
	asks("an unknown version is not ours", "application/openmetrics-text;version=2.0.0",
	     METRICS_TEXT);
	asks("nonsense gets text", ";;,,=;q=,;q", METRICS_TEXT);
	asks("an empty header gets text", "", METRICS_TEXT);
	asks("what nobody has gets text", "image/png", METRICS_TEXT);
}

static void test_content_types(void)
{
	for (int format = METRICS_TEXT; format <= METRICS_PROTOBUF; format++)
		EXPECT_THAT("what is sent is what would be asked for",
			    metrics_negotiate(metrics_content_type((enum metrics_format)format)) ==
				    (enum metrics_format)format);
	EXPECT(strcmp(metrics_content_type(METRICS_TEXT),
		      "text/plain; version=0.0.4; charset=utf-8") == 0);
}

int main(void)
{
	test_servers();
	test_weights();
	test_forms();
	test_content_types();
	return tap_done();
}
