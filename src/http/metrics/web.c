/* web.c - HTTP exchanges, counted as prometheus-fastapi-instrumentator does. */
#include "http/metrics/table.h"

#include "live/live.h"

/* Routes are few; a bound all the same, since methods come from peers. */
enum { ROWS_MAX = 512 };

void metrics_web_open(struct metrics_web *w, double created)
{
    metrics_pad(w->highr_bound, metrics_bounds_highr);
    w->highr.bound = w->highr_bound;
    w->created = created;
}

void metrics_web_close(struct metrics_web *w)
{
    for (int k = 0; k < HTTP_LISTS; k++) {
        for (size_t i = 0; i < w->rows[k].n; i++)
            free(w->rows[k].row[i].handler);
        free(w->rows[k].row);
    }
}

/* ---- counting ----------------------------------------------------------- */

/* Anywhere in the route, so /v1/load_lora_adapter is one of them, as there. */
static bool is_passed_over(const char *handler)
{
    static const char *const part[] = {"/metrics", "/health",  "/load",
                                       "/ping",    "/version", "/server_info"};

    for (size_t i = 0; i < VT_COUNT(part); i++)
        if (strstr(handler, part[i]))
            return true;
    return false;
}

static const char *known_method(const char *method)
{
    static const char *const known[] = {"POST", "GET",   "HEAD",  "OPTIONS", "DELETE",
                                        "PUT",  "PATCH", "TRACE", "CONNECT"};

    for (size_t i = 0; i < VT_COUNT(known); i++)
        if (strcmp(method, known[i]) == 0)
            return known[i];
    return "OTHER";
}

static struct metrics_http_row *new_row(struct metrics_http_rows *r,
                                        const char *handler, const char *method,
                                        char status)
{
    struct metrics_http_row row = {
        .method = method, .status = status, .created = vt_unix_s()};

    if (r->n >= ROWS_MAX ||
        vt_grow(&r->row, &r->cap, r->n + 1, sizeof(row), NULL) != VT_OK)
        return NULL;
    row.handler = strdup(handler);
    if (!row.handler)
        return NULL;
    r->row[r->n] = row;
    return &r->row[r->n++];
}

/* Methods are compared by address: known_method() gives them. */
static void count_exchange(struct metrics_http_rows *r, const char *handler,
                           const char *method, char status, double v)
{
    struct metrics_http_row *row = NULL;
    int k = 0;

    for (size_t i = 0; i < r->n && !row; i++)
        if (r->row[i].method == method && r->row[i].status == status &&
            strcmp(r->row[i].handler, handler) == 0)
            row = &r->row[i];
    if (!row)
        row = new_row(r, handler, method, status);
    if (!row) /* no memory: a count is lost, nothing else */
        return;
    row->n++;
    row->sum += v;
    for (; metrics_bounds_http[k] > 0; k++)
        if (v <= metrics_bounds_http[k])
            break;
    row->bucket[k]++;
}

void metrics_web_note(struct metrics_web *w, const char *handler, const char *method,
                      int status, double seconds, size_t bytes_in, size_t bytes_out)
{
    const char *known = known_method(method);

    if (is_passed_over(handler))
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

static void put_buckets(struct vt_buf *b, const char *name,
                        const struct metrics_http_row *row)
{
    static const char *const le[] = {"0.1", "0.5", "1.0", "+Inf"};
    uint64_t sum = 0;

    for (size_t k = 0; k < VT_COUNT(le); k++) {
        sum += row->bucket[k];
        put_row(b, name, "_bucket", row, le[k], (double)sum);
    }
}

static void put_rows(struct vt_buf *b, const struct metrics_web *w,
                     enum metrics_http_list k)
{
    const struct metrics_http_rows *r = &w->rows[k];
    const char *name = family[k].name, *help = family[k].help;

    metrics_put_head(b, name, k == HTTP_REQUESTS ? "_total" : "", help, family[k].type);
    for (size_t i = 0; i < r->n; i++) {
        const struct metrics_http_row *row = &r->row[i];

        if (k == HTTP_REQUESTS) {
            put_row(b, name, "_total", row, NULL, row->n);
            continue;
        }
        if (k == HTTP_SECONDS)
            put_buckets(b, name, row);
        put_row(b, name, "_count", row, NULL, row->n);
        put_row(b, name, "_sum", row, NULL, row->sum);
    }
    if (r->n == 0)
        return;
    metrics_put_head(b, name, "_created", help, "gauge");
    for (size_t i = 0; i < r->n; i++)
        put_row(b, name, "_created", &r->row[i], NULL, r->row[i].created);
}

static void put_highr(struct vt_buf *b, const struct metrics_web *w)
{
    static const char name[] = "http_request_duration_highr_seconds";
    static const char help[] = "Time of all requests, finely.";
    uint64_t sum = 0;

    metrics_put_head(b, name, "", help, "histogram");
    for (int i = 0; i == 0 || metrics_bounds_highr[i - 1] > 0; i++) {
        vt_buf_printf(b, "%s_bucket{le=\"", name);
        metrics_put(b, w->highr_bound[i]);
        sum += w->highr.bucket[i];
        metrics_put_line(b, "\"}", "", (double)sum);
    }
    metrics_put_line(b, name, "_count", (double)sum);
    metrics_put_line(b, name, "_sum", w->highr.sum);
    metrics_put_head(b, name, "_created", help, "gauge");
    metrics_put_line(b, name, "_created", w->created);
}

void metrics_web_put(const struct metrics_web *w, struct vt_buf *b)
{
    put_rows(b, w, HTTP_REQUESTS);
    put_rows(b, w, HTTP_SIZE_IN);
    put_rows(b, w, HTTP_SIZE_OUT);
    put_highr(b, w);
    put_rows(b, w, HTTP_SECONDS);
}
