/* web.c - HTTP exchanges, counted as prometheus-fastapi-instrumentator does. */
#include "http/metrics/table.h"

#include "live/live.h"

/* Routes are few; a bound all the same, since methods come from peers. */
enum { ROWS_MAX = 512 };

void metrics_web_close(struct metrics_web *w)
{
    for (int k = 0; k < HTTP_LISTS; k++) {
        for (size_t i = 0; i < w->rows[k].n; i++)
            free(w->rows[k].row[i].handler);
        free(w->rows[k].row);
    }
}

/* ---- counting ----------------------------------------------------------- */

const char *metrics_method(const char *method)
{
    static const char *const known[] = {"POST", "GET",     "HEAD",
                                        "PUT",  "OPTIONS", "DELETE"};

    for (size_t i = 0; i < VT_COUNT(known); i++)
        if (strcmp(method, known[i]) == 0)
            return known[i];
    return "OTHER";
}

/* Methods are compared by address: metrics_method() gives them. */
static void count_exchange(struct metrics_http_rows *r, const char *handler,
                           const char *method, char status, double v)
{
    struct metrics_http_row *row = NULL;
    char *name = NULL;
    int k = 0;

    for (size_t i = 0; i < r->n && !row; i++)
        if (r->row[i].method == method && r->row[i].status == status &&
            strcmp(r->row[i].handler, handler) == 0)
            row = &r->row[i];
    if (!row) {
        if (r->n >= ROWS_MAX ||
            vt_grow(&r->row, &r->cap, r->n + 1, sizeof(*row), NULL) != VT_OK ||
            !(name = strdup(handler)))
            return; /* no memory: a count is lost, nothing else */
        row = &r->row[r->n++];
        *row = (struct metrics_http_row){.handler = name,
                                         .method = method,
                                         .status = status,
                                         .created = vt_unix_s()};
    }
    row->n++;
    row->sum += v;
    for (; metrics_bounds_http[k] > 0; k++)
        if (v <= metrics_bounds_http[k])
            break;
    row->bucket[k]++;
}

void metrics_http(struct metrics *m, const char *handler, const char *method,
                  int status, double seconds, size_t bytes_in, size_t bytes_out)
{
    static const char *const passed_over[] = {"/metrics", "/health",  "/load",
                                              "/ping",    "/version", "/server_info"};
    const char *known = metrics_method(method);
    struct metrics_web *w = &m->web;

    /* Anywhere in the route, so /v1/load_lora_adapter is one of them, as there. */
    for (size_t i = 0; i < VT_COUNT(passed_over); i++)
        if (strstr(handler, passed_over[i]))
            return;
    count_exchange(&w->rows[HTTP_REQUESTS], handler, known, (char)('0' + status / 100),
                   1);
    count_exchange(&w->rows[HTTP_SIZE_IN], handler, NULL, 0, (double)bytes_in);
    count_exchange(&w->rows[HTTP_SIZE_OUT], handler, NULL, 0, (double)bytes_out);
    count_exchange(&w->rows[HTTP_SECONDS], handler, known, 0, seconds);
    metrics_observe(&w->highr, seconds);
}

/* ---- writing ------------------------------------------------------------ */

static void put_row(struct vt_buf *b, const char *name, const char *suffix,
                    const struct metrics_http_row *r, const char *le, double v)
{
    vt_buf_printf(b, "%s%s{handler=", name, suffix);
    metrics_put_label(b, r->handler);
    if (le)
        vt_buf_printf(b, ",le=\"%s\"", le);
    if (r->method)
        vt_buf_printf(b, ",method=\"%s\"", r->method);
    if (r->status)
        vt_buf_printf(b, ",status=\"%cxx\"", r->status);
    metrics_put_line(b, "}", "", v);
}

static const struct {
    const char *name, *type, *help;
} family[HTTP_LISTS] = {
    [HTTP_REQUESTS] = {"http_requests", "counter",
                       "Requests by route, method and status."},
    [HTTP_SIZE_IN] = {"http_request_size_bytes", "summary",
                      "Content-Length of requests."},
    [HTTP_SIZE_OUT] = {"http_response_size_bytes", "summary",
                       "Content-Length of responses."},
    [HTTP_SECONDS] = {"http_request_duration_seconds", "histogram",
                      "Time of requests by route and method, coarsely."},
};

static void put_rows(struct vt_buf *b, const struct metrics_web *w,
                     enum metrics_http_list k)
{
    static const char *const le[] = {"0.1", "0.5", "1.0", "+Inf"};
    const struct metrics_http_rows *r = &w->rows[k];
    const char *name = family[k].name, *help = family[k].help;

    metrics_put_head(b, name, k == HTTP_REQUESTS ? "_total" : "", help, family[k].type);
    for (size_t i = 0; i < r->n; i++) {
        const struct metrics_http_row *row = &r->row[i];
        uint64_t sum = 0;

        if (k == HTTP_REQUESTS) {
            put_row(b, name, "_total", row, NULL, row->n);
            continue;
        }
        for (size_t j = 0; k == HTTP_SECONDS && j < VT_COUNT(le); j++) {
            sum += row->bucket[j];
            put_row(b, name, "_bucket", row, le[j], (double)sum);
        }
        put_row(b, name, "_count", row, NULL, row->n);
        put_row(b, name, "_sum", row, NULL, row->sum);
    }
    if (r->n == 0)
        return;
    metrics_put_head(b, name, "_created", help, "gauge");
    for (size_t i = 0; i < r->n; i++)
        put_row(b, name, "_created", &r->row[i], NULL, r->row[i].created);
}

void metrics_web_put(const struct metrics_web *w, double created, struct vt_buf *b)
{
    put_rows(b, w, HTTP_REQUESTS);
    put_rows(b, w, HTTP_SIZE_IN);
    put_rows(b, w, HTTP_SIZE_OUT);
    metrics_put_histogram(b, "http_request_duration_highr_seconds",
                          "Time of all requests, finely.", &w->highr, created);
    put_rows(b, w, HTTP_SECONDS);
}
