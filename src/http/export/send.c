/* send.c - the exporter's thread: takes what was noted, writes it as JSON, and
 * sends it to a file or a collector. */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/export/impl.h"
#include "live/live.h"

enum {
    TRIES = 5,
    FIRST_PAUSE_MS = 250, /* then twice as long each time */
    SEND_TIMEOUT_MS = 10000,
    POLL_MS = 50,
};

/* ---- opening ------------------------------------------------------------ */

static int open_file(struct export_sink *s, const char *path, struct vt_err *err)
{
    s->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (s->fd < 0)
        return vt_fail(err, VT_EINPUT, "%s: %s", path, strerror(errno));
    return VT_OK;
}

/* Without a path it is the collector's base, below which traces have a place. */
static char *full_url(const char *endpoint)
{
    const char *host = strstr(endpoint, "://") + 3;
    size_t n = strcspn(host, "/"), len = (size_t)(host - endpoint) + n;
    bool bare = host[n] == '\0' || host[n + 1] == '\0';
    size_t cap = strlen(endpoint) + sizeof("/v1/traces");
    char *url = malloc(cap);

    if (url && bare)
        snprintf(url, cap, "%.*s/v1/traces", (int)len, endpoint);
    else if (url)
        snprintf(url, cap, "%s", endpoint);
    return url;
}

static bool add_header(struct export_sink *s, const char *line)
{
    struct curl_slist *more = curl_slist_append(s->headers, line);

    if (more)
        s->headers = more;
    return more != NULL;
}

/* "K=V,K=V" */
static bool add_headers(struct export_sink *s, const char *list)
{
    bool ok = true;

    while (list && *list && ok) {
        size_t n = strcspn(list, ","), key = strcspn(list, "=");
        struct vt_buf line = {.max = 8192};

        if (key < n) {
            vt_buf_add(&line, list, key);
            vt_buf_str(&line, ": ");
            vt_buf_add(&line, list + key + 1, n - key - 1);
            ok = !line.failed && add_header(s, line.data);
        }
        vt_buf_free(&line);
        list += n + (list[n] == ',');
    }
    return ok;
}

static size_t ignore_body(char *data, size_t size, size_t n, void *user)
{
    (void)data;
    (void)user;
    return size * n;
}

static int open_collector(struct export_sink *s, const struct export_config *c,
                          struct vt_err *err)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
    s->multi = curl_multi_init();
    s->easy = curl_easy_init();
    s->url = full_url(c->endpoint);
    /* "Expect:" would cost a round trip, or a second where it is not understood. */
    if (!s->multi || !s->easy || !s->url ||
        !add_header(s, "Content-Type: application/json") || !add_header(s, "Expect:") ||
        !add_headers(s, c->headers))
        return vt_nomem(err);
    curl_easy_setopt(s->easy, CURLOPT_URL, s->url);
    curl_easy_setopt(s->easy, CURLOPT_HTTPHEADER, s->headers);
    curl_easy_setopt(s->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(s->easy, CURLOPT_TIMEOUT_MS, (long)SEND_TIMEOUT_MS);
    curl_easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, ignore_body);
    curl_easy_setopt(s->easy, CURLOPT_USERAGENT, "vtwin/" VT_VERSION);
    return VT_OK;
}

int export_sink_open(struct export_sink *s, const struct export_config *c,
                     struct vt_err *err)
{
    const char *e = c->endpoint;

    if (strncmp(e, "file:", 5) == 0)
        return open_file(s, e + 5, err);
    if (strncmp(e, "http://", 7) == 0 || strncmp(e, "https://", 8) == 0)
        return open_collector(s, c, err);
    return vt_fail(err, VT_EINPUT,
                   "'%s' is neither http://HOST:PORT/v1/traces nor file:PATH", e);
}

void export_sink_close(struct export_sink *s)
{
    if (s->fd >= 0)
        close(s->fd);
    curl_easy_cleanup(s->easy);
    curl_multi_cleanup(s->multi);
    curl_slist_free_all(s->headers);
    free(s->url);
}

/* ---- one try ------------------------------------------------------------ */

/* One write for a line, so that it is there whole or not at all; what a full disk has
 * cut is taken back. */
static enum export_outcome write_line(int fd, const char *text, size_t len)
{
    struct stat before;
    bool known = fstat(fd, &before) == 0 && S_ISREG(before.st_mode);
    size_t done = 0;

    while (done < len) {
        ssize_t n = write(fd, text + done, len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    if (done < len && known && ftruncate(fd, before.st_size) != 0)
        return EXPORT_REFUSED;
    return done == len ? EXPORT_TAKEN : EXPORT_REFUSED;
}

static bool has_passed(const _Atomic(int64_t) *deadline)
{
    int64_t at = atomic_load(deadline);

    return at != 0 && vt_wall_ns() > at;
}

static CURLcode perform(struct export_sink *s, const _Atomic(int64_t) *deadline)
{
    CURLcode result = CURLE_ABORTED_BY_CALLBACK;
    CURLMsg *msg;
    int running = 1, left;

    if (curl_multi_add_handle(s->multi, s->easy) != CURLM_OK)
        return CURLE_FAILED_INIT;
    while (running > 0 && !has_passed(deadline)) {
        if (curl_multi_perform(s->multi, &running) != CURLM_OK)
            break;
        if (running > 0)
            curl_multi_poll(s->multi, NULL, 0, POLL_MS, NULL);
    }
    while ((msg = curl_multi_info_read(s->multi, &left)))
        if (msg->msg == CURLMSG_DONE)
            result = msg->data.result;
    curl_multi_remove_handle(s->multi, s->easy);
    return result;
}

static enum export_outcome post(struct export_sink *s, const char *text, size_t len,
                                const _Atomic(int64_t) *deadline)
{
    long status = 0;

    curl_easy_setopt(s->easy, CURLOPT_POSTFIELDS, text);
    curl_easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
    if (perform(s, deadline) != CURLE_OK)
        return EXPORT_LATER;
    curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300)
        return EXPORT_TAKEN;
    return status == 429 || status == 502 || status == 503 || status == 504
               ? EXPORT_LATER
               : EXPORT_REFUSED;
}

enum export_outcome export_send(struct export_sink *s, const char *text, size_t len,
                                const _Atomic(int64_t) *deadline)
{
    return s->fd >= 0 ? write_line(s->fd, text, len) : post(s, text, len, deadline);
}

/* ---- the thread --------------------------------------------------------- */

struct sender { /* the thread's own */
    struct export *x;
    struct export_body body;
    struct vt_buf taken;
    struct vt_rng rng;
};

/* Shortly while closing, so that what is left of the time is used. */
static void pause_for(struct export *x, uint32_t ms)
{
    vt_ns until = vt_wall_ns() + ms * VT_MS;
    struct timespec at = {.tv_sec = until / VT_SEC, .tv_nsec = until % VT_SEC};

    pthread_mutex_lock(&x->lock);
    while (atomic_load(&x->deadline_ns) == 0)
        if (pthread_cond_timedwait(&x->wake, &x->lock, &at) == ETIMEDOUT)
            break;
    pthread_mutex_unlock(&x->lock);
    if (atomic_load(&x->deadline_ns) != 0)
        vt_sleep_ns(POLL_MS * VT_MS);
}

static bool may_try_again(struct export *x, int tries)
{
    if (tries >= TRIES || has_passed(&x->deadline_ns))
        return false;
    pause_for(x, (uint32_t)FIRST_PAUSE_MS << (tries - 1));
    return !has_passed(&x->deadline_ns);
}

static void deliver(struct sender *s)
{
    struct export *x = s->x;
    enum export_outcome outcome = EXPORT_REFUSED;
    size_t n = s->body.n;

    export_put_body(&s->body, &x->names, &s->rng);
    vt_buf_char(&s->body.text, '\n');
    for (int tries = 1; !s->body.text.failed; tries++) {
        outcome =
            export_send(&x->sink, s->body.text.data, s->body.text.len, &x->deadline_ns);
        if (outcome != EXPORT_TAKEN)
            atomic_fetch_add(&x->failed, 1);
        if (outcome != EXPORT_LATER || !may_try_again(x, tries))
            break;
    }
    atomic_fetch_add(outcome == EXPORT_TAKEN ? &x->sent : &x->dropped, n);
}

static void add_record(struct sender *s, const struct export_head *head)
{
    size_t before = s->body.n;

    if (head->kind == EXPORT_A_REQUEST)
        export_put_request(&s->body, &s->x->names, (const void *)head, &s->rng);
    else
        export_put_step(&s->body, &s->x->names, (const void *)head);
    if (s->body.n == before)
        atomic_fetch_add(&s->x->dropped, 1);
    if (s->body.n >= s->x->batch || export_body_bytes(&s->body) >= EXPORT_BODY_BYTES)
        deliver(s);
}

static void send_taken(struct sender *s)
{
    for (size_t at = 0; at < s->taken.len;) {
        const struct export_head *head = (const void *)(s->taken.data + at);

        add_record(s, head);
        at += head->size;
    }
    if (s->body.n > 0)
        deliver(s);
    if (s->taken.cap > EXPORT_BODY_BYTES) /* of a burst; such memory is not kept */
        vt_buf_free(&s->taken);
    vt_buf_clear(&s->taken);
}

/* Swaps buffers once there is enough, the period is over, or the exporter closes: then
 * false, after the last. */
static bool take(struct sender *s)
{
    struct export *x = s->x;
    struct vt_buf empty = s->taken;
    vt_ns until = vt_wall_ns() + x->period_ms * VT_MS;
    struct timespec at = {.tv_sec = until / VT_SEC, .tv_nsec = until % VT_SEC};
    bool closing;

    pthread_mutex_lock(&x->lock);
    while (atomic_load(&x->deadline_ns) == 0 && x->n_queued < x->batch)
        if (pthread_cond_timedwait(&x->wake, &x->lock, &at) == ETIMEDOUT)
            break;
    closing = atomic_load(&x->deadline_ns) != 0;
    s->taken = x->queue;
    x->queue = empty;
    x->queue.max = EXPORT_QUEUE_BYTES;
    x->n_queued = 0;
    pthread_mutex_unlock(&x->lock);
    return !closing;
}

void *export_thread(void *arg)
{
    struct sender s = {.x = arg};
    bool more = true;

    vt_rng_init(&s.rng, (uint64_t)vt_wall_ns(), s.x->names.instance);
    while (more) {
        more = take(&s);
        send_taken(&s);
    }
    export_body_free(&s.body);
    vt_buf_free(&s.taken);
    return NULL;
}
