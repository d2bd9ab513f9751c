/* server.c - the page and its API on 127.0.0.1.
 *
 * A browser sends requests for any site that is open in it, so being bound to this
 * machine is no protection: a name that somebody points here (DNS rebinding) shows in
 * Host, a page of another origin in Origin and Sec-Fetch-Site, and both are refused. */
#include <stdlib.h>
#include <string.h>

#include "explore/parts.h"
#include "live/live.h"
#include "net/net.h"
#include "page/page.h"

enum { HEAD_BYTES = 16384, BODY_BYTES = 1024, CONNECTIONS = 256 };
#define UNSENT_BYTES ((size_t)128 << 20)

struct asked { /* a question that is not answered yet */
    struct explore *e;
    struct net_conn *conn;
    const struct question *question;
    struct vt_buf command; /* for people */
    struct work *work;
};

struct explore {
    const struct vt_explore *x;
    struct net *net;
    struct works *works;
    struct vt_buf start; /* /api/v1/start */
};

/* ---- answers ---------------------------------------------------------------- */

/* Nothing from elsewhere runs in the page, and the page runs in nothing else. */
static const struct net_header guards[] = {
    {"cache-control", "no-store"},
    {"x-content-type-options", "nosniff"},
    {"referrer-policy", "no-referrer"},
    {"cross-origin-resource-policy", "same-origin"},
    {"content-security-policy",
     "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
     "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
     "frame-ancestors 'none'"},
};

static void answer(struct net_conn *c, int status, const char *type, const char *file,
                   const char *body, size_t len)
{
    struct net_header header[VT_COUNT(guards) + 1];
    struct net_reply r = {.status = status,
                          .type = type,
                          .header = header,
                          .n_headers = VT_COUNT(guards),
                          .body = body,
                          .len = len,
                          .bare = true};
    char saved[128];

    memcpy(header, guards, sizeof(guards));
    if (file) {
        snprintf(saved, sizeof(saved), "attachment; filename=\"%s\"", file);
        header[r.n_headers++] = (struct net_header){"content-disposition", saved};
    }
    net_answer(c, &r);
}

static void answer_buf(struct net_conn *c, int status, struct vt_buf *b)
{
    if (b->failed)
        answer(c, 500, NULL, NULL, NULL, 0);
    else
        answer(c, status, "application/json", NULL, b->data, b->len);
    vt_buf_free(b);
}

/* {"error": why}, and the command line that it is about. */
static void answer_error(struct net_conn *c, int status, const char *command,
                         const char *why, size_t len)
{
    struct vt_buf b = {0};
    struct vt_jw w;

    vt_jw_init(&w, &b, NULL);
    vt_jw_map(&w, NULL);
    vt_jw_strn(&w, "error", why, len);
    if (command)
        vt_jw_str(&w, "command", command);
    vt_jw_end(&w);
    vt_buf_char(&b, '\n');
    answer_buf(c, status, &b);
}

static void refuse(struct net_conn *c, int status, const char *why)
{
    answer_error(c, status, NULL, why, strlen(why));
}

/* ---- what a command said ------------------------------------------------------ */

/* The next line of what it said, without who says it; false: there is none. */
static bool next_line(const char **at, const char *end, const char **line, size_t *len)
{
    static const char name[] = "vtwin: ";
    const char *stop;

    while (*at < end && **at == '\n')
        ++*at;
    if (*at == end)
        return false;
    stop = memchr(*at, '\n', (size_t)(end - *at));
    stop = stop ? stop : end;
    *line = *at;
    *len = (size_t)(stop - *at);
    *at = stop;
    if (*len > strlen(name) && memcmp(*line, name, strlen(name)) == 0) {
        *line += strlen(name);
        *len -= strlen(name);
    }
    return true;
}

/* The last line is why it failed, the others are notes. */
static void put_said(struct vt_jw *w, const struct work_answer *a)
{
    const char *at = a->said, *end = a->said + a->said_len, *line, *last = NULL;
    size_t len, last_len = 0;

    vt_jw_list(w, "notes");
    while (next_line(&at, end, &line, &len)) {
        if (last)
            vt_jw_strn(w, NULL, last, last_len);
        last = line;
        last_len = len;
    }
    if (last && a->status == 0)
        vt_jw_strn(w, NULL, last, last_len);
    vt_jw_end(w);
    if (last && a->status != 0)
        vt_jw_strn(w, "error", last, last_len);
}

static void answer_envelope(const struct asked *k, const struct work_answer *a)
{
    size_t len = a->out_len;
    struct vt_buf b = {0};
    struct vt_jw w;

    while (len > 0 && a->out[len - 1] == '\n')
        len--;
    vt_jw_init(&w, &b, NULL);
    vt_jw_map(&w, NULL);
    vt_jw_str(&w, "command", k->command.data);
    vt_jw_i64(&w, "exit_status", a->status);
    put_said(&w, a);
    vt_jw_raw(&w, "answer", a->out, len); /* as it was printed, byte for byte */
    vt_jw_end(&w);
    vt_buf_char(&b, '\n');
    answer_buf(k->conn, 200, &b);
}

static void free_asked(void *user)
{
    struct asked *k = user;

    vt_buf_free(&k->command);
    free(k);
}

/* Face of work_done. Exit status 1 is an answer too: the limits are not kept. */
static void take_answer(void *user, const struct work_answer *a)
{
    struct asked *k = user;
    const char *at = a->said, *end = a->said + a->said_len, *line,
               *why = "it was killed";
    size_t len, why_len = strlen(why);

    if (a->out_len > 0 && (a->status == 0 || a->status == 1)) {
        if (k->question->file)
            answer(k->conn, 200, k->question->type, k->question->file, a->out,
                   a->out_len);
        else
            answer_envelope(k, a);
    } else {
        while (next_line(&at, end, &line, &len)) {
            why = line;
            why_len = len;
        }
        answer_error(k->conn, a->status == 1 || a->status == 2 ? 400 : 500,
                     k->command.data, why, why_len);
    }
    free_asked(k);
}

/* ---- requests ---------------------------------------------------------------- */

/* "127.0.0.1", "localhost" or "[::1]", with any port: a tunnel may have its own. */
static bool is_this_machine(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};

    for (size_t i = 0; host && i < VT_COUNT(names); i++) {
        size_t len = strlen(names[i]);

        if (strncmp(host, names[i], len) == 0 &&
            (host[len] == '\0' ||
             (host[len] == ':' &&
              host[len + 1 + strspn(host + len + 1, "0123456789")] == '\0')))
            return true;
    }
    return false;
}

/* NULL: it may be answered. */
static const char *why_not(const struct net_request *r)
{
    static const char scheme[] = "http://";
    const char *host = net_header_value(r, "host");
    const char *origin = net_header_value(r, "origin");
    const char *site = net_header_value(r, "sec-fetch-site");
    bool api = strncmp(r->path, "/api/", 5) == 0;

    if (!is_this_machine(host))
        return "the name in Host is not this machine's";
    if (origin && (strncmp(origin, scheme, strlen(scheme)) != 0 ||
                   strcmp(origin + strlen(scheme), host) != 0))
        return "a page of another origin asks";
    if (api && site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return "a page of another site asks";
    return NULL;
}

static void ask(struct explore *e, struct net_conn *c, const struct question *q,
                const char *query)
{
    struct asked *k = calloc(1, sizeof(*k));
    struct argv_words argv = {0};
    struct vt_err err = {0};
    int rc = k ? question_argv(&argv, e->x, q, query, &err) : vt_nomem(&err);

    if (rc == VT_OK) {
        *k = (struct asked){.e = e, .conn = c, .question = q};
        argv_text(&k->command, &argv);
        rc = k->command.failed ? vt_nomem(&err)
                               : work_start(&k->work, e->works, &argv, q->writes,
                                            take_answer, k, &err);
    }
    argv_free(&argv);
    if (rc == VT_OK) {
        net_set_data(c, k);
        return;
    }
    refuse(c, rc == VT_EINPUT ? 400 : rc == VT_ECHECK ? 503 : 500, err.msg);
    if (k)
        free_asked(k);
}

static const struct vt_builtin *find_file(const char *name)
{
    for (size_t i = 0; i < explore_file_count; i++)
        if (strcmp(explore_file_table[i].name, name) == 0)
            return &explore_file_table[i];
    return NULL;
}

static bool answer_file(struct net_conn *c, const char *path)
{
    const struct vt_builtin *f;
    const struct {
        const char *path, *type, *text;
    } shared[] = {{"/page.js", "text/javascript; charset=utf-8", vt_page_script()},
                  {"/page.css", "text/css; charset=utf-8", vt_page_style()}};

    for (size_t i = 0; i < VT_COUNT(shared); i++)
        if (strcmp(path, shared[i].path) == 0) {
            answer(c, 200, shared[i].type, NULL, shared[i].text,
                   strlen(shared[i].text));
            return true;
        }
    f = find_file(strcmp(path, "/") == 0 ? "explore.html" : path + 1);
    if (!f)
        return false;
    answer(c, 200,
           vt_is_named(f->name, ".js")    ? "text/javascript; charset=utf-8"
           : vt_is_named(f->name, ".css") ? "text/css; charset=utf-8"
                                          : "text/html; charset=utf-8",
           NULL, f->text, f->len);
    return true;
}

/* Face of net_handler.request. */
static void on_request(void *user, struct net_conn *c, const struct net_request *r)
{
    struct explore *e = user;
    const char *why = why_not(r);
    const struct question *q = question_find(r->path);

    net_set_data(c, NULL);
    if (why)
        refuse(c, 403, why);
    else if (strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0)
        refuse(c, 405, "GET is all there is");
    else if (q)
        ask(e, c, q, r->query);
    else if (strcmp(r->path, "/api/v1/start") == 0)
        answer(c, 200, "application/json", NULL, e->start.data, e->start.len);
    else if (!answer_file(c, r->path))
        refuse(c, 404, "there is no such page");
}

/* Face of net_handler.gone: nobody waits for the answer any more. */
static void on_gone(void *user, struct net_conn *c)
{
    struct asked *k = net_data(c);

    (void)user;
    if (!k)
        return;
    work_cancel(k->work);
    free_asked(k);
}

static void on_refused(void *user, int status)
{
    (void)user;
    (void)status;
}

static void on_works(void *user)
{
    struct explore *e = user;

    works_hear(e->works);
}

/* ---- the whole ------------------------------------------------------------------ */

static int open_explore(struct explore *e, struct vt_err *err)
{
    const struct net_config config = {
        .host = "127.0.0.1",
        .port = e->x->port,
        .max_body_bytes = BODY_BYTES,
        .max_header_bytes = HEAD_BYTES,
        .max_unsent_bytes = UNSENT_BYTES,
        .max_connections = CONNECTIONS,
        .header_timeout_ns = 10 * VT_SEC,
        .body_timeout_ns = 30 * VT_SEC,
        .idle_timeout_ns = 120 * VT_SEC,
    };
    const struct net_handler handler = {
        .user = e, .request = on_request, .gone = on_gone, .refused = on_refused};
    int rc = question_start(&e->start, e->x, err);

    if (rc || (rc = works_open(&e->works, e->x, err)) ||
        (rc = net_open(&e->net, &config, &handler, err)))
        return rc;
    return net_watch(e->net, works_fd(e->works), on_works, e, err);
}

int vt_explore(const struct vt_explore *x, struct vt_err *err)
{
    struct explore e = {.x = x};
    char url[64];
    int rc = open_explore(&e, err);

    if (rc == VT_OK) {
        snprintf(url, sizeof(url), "http://127.0.0.1:%u/", net_port(e.net));
        x->ready(x->user, url);
    }
    while (rc == VT_OK && !x->stopped(x->user)) {
        rc = net_wait(e.net, vt_wall_ns() + VT_SEC, false, err);
        net_flush(e.net);
    }
    /* Whoever waits for an answer is cut off. */
    works_close(e.works, free_asked);
    net_close(e.net);
    vt_buf_free(&e.start);
    return rc;
}
