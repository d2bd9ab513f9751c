/* tap_peer.c - what a recorder adds to a message's way: a frontend and an engine, in
 * threads with a ZeroMQ context each, talk over loopback TCP directly and through
 * `vtwin record`, in turns. See bench/tap.
 *
 * usage: tap_peer VTWIN DIRECTORY SECONDS MESSAGES_PER_SECOND REPEATS [FLAGS OF RECORD]
 *
 * The engine runs 16 requests; every message has a token for each and the scheduler's
 * statistics, about 1 kB. A request that has its tokens, 128 on average, ends, and the
 * frontend adds the next one. Latency is from just before a message is sent to just
 * after it was received, by one clock. */
#define _DEFAULT_SOURCE /* wait4 */

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tests/wire/engine.h"

enum { SLOTS = 16, TOKENS = 128, PROMPT = 200, MAX_FLAGS = 16, ID = 32 };

extern char **environ;

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "tap_peer: %s\n", what);
    exit(3);
}

static void must(int rc, const struct vt_err *err)
{
    if (rc != VT_OK)
        die(err->msg);
}

static vt_ns now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * VT_SEC + t.tv_nsec;
}

/* ---- samples ---------------------------------------------------------- */

struct samples {
    double *us;
    size_t n, cap;
};

static void add_sample(struct samples *s, double us)
{
    struct vt_err err;

    must(vt_grow(&s->us, &s->cap, s->n + 1, sizeof(*s->us), &err), &err);
    s->us[s->n++] = us;
}

/* ---- the engine ------------------------------------------------------- */

struct engine {
    struct scripted e;
    const char *address;
    double rate; /* output messages per second */
    atomic_bool stop;
    pthread_mutex_t lock;
    char (*added)[ID]; /* ids waiting for a slot, a ring */
    size_t head, n, cap;
    struct samples adds;
    size_t sent;
};

struct slot {
    char id[ID];
    uint32_t tokens, last;
};

static void *take_requests(void *arg)
{
    struct engine *e = arg;
    struct vt_arena a = {0};
    struct vt_err err;

    while (!atomic_load(&e->stop)) {
        struct wire_request w;
        const void *bytes;
        size_t len;
        vt_ns at;

        must(scripted_take(&e->e, 0, 20, &err), &err);
        at = now_ns();
        if (e->e.in.n < 2)
            continue;
        bytes = sock_data(&e->e.in, 1, &len);
        vt_arena_reset(&a);
        must(wire_request_read(&w, &a, bytes, len, &err), &err);
        add_sample(&e->adds, (double)at * 1e-3 - w.arrival_time * 1e6);
        pthread_mutex_lock(&e->lock);
        if (e->n == e->cap)
            die("too many requests");
        snprintf(e->added[(e->head + e->n++) % e->cap], ID, "%.*s", (int)w.id.len,
                 (const char *)w.id.at);
        pthread_mutex_unlock(&e->lock);
    }
    vt_arena_free(&a);
    return NULL;
}

static bool fill_slot(struct engine *e, struct slot *s)
{
    bool any;

    pthread_mutex_lock(&e->lock);
    any = e->n > 0;
    if (any) {
        memcpy(s->id, e->added[e->head], ID);
        e->head = (e->head + 1) % e->cap;
        e->n--;
        s->tokens = 0;
        s->last = TOKENS / 2 + (uint32_t)vt_hash_bytes(s->id, ID, 0) % TOKENS;
    }
    pthread_mutex_unlock(&e->lock);
    return any;
}

static uint32_t make_outputs(struct engine *e, struct slot *slot, struct wire_output *o)
{
    static const uint32_t token = 1234;
    uint32_t n = 0;

    for (int i = 0; i < SLOTS; i++) {
        struct slot *s = &slot[i];

        if (s->id[0] == '\0' && !fill_slot(e, s))
            continue;
        o[n] = (struct wire_output){.id = {(const uint8_t *)s->id, strlen(s->id)},
                                    .token = &token,
                                    .n_tokens = 1,
                                    .finish = WIRE_UNFINISHED};
        if (s->tokens == 0) {
            o[n].has_prefill = true;
            o[n].prefill = (struct wire_prefill){.prompt = PROMPT, .computed = PROMPT};
        }
        if (++s->tokens == s->last)
            o[n].finish = WIRE_LENGTH;
        n++;
    }
    return n;
}

static void free_slots(struct slot *slot)
{
    for (int i = 0; i < SLOTS; i++)
        if (slot[i].tokens == slot[i].last)
            slot[i].id[0] = '\0';
}

static void sleep_until(vt_ns t)
{
    struct timespec until = {.tv_sec = t / VT_SEC, .tv_nsec = t % VT_SEC};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        ;
}

/* A message that is due while the last one was made goes at once: nothing is lost to
 * the measurement. */
static void send_outputs(struct engine *e, const struct vt_wire_line *line)
{
    struct slot slot[SLOTS] = {0};
    struct wire_output o[SLOTS];
    vt_ns start = now_ns();
    struct vt_err err;

    for (uint64_t i = 0; !atomic_load(&e->stop); i++) {
        struct wire_outputs w = {.output = o,
                                 .has_stats = true,
                                 .stats = {.running = SLOTS, .kv_usage = 0.25},
                                 .wave_complete = -1,
                                 .start_wave = -1};

        sleep_until(start + (vt_ns)((double)i * 1e9 / e->rate));
        w.n_outputs = make_outputs(e, slot, o);
        w.timestamp = (double)now_ns() * 1e-9;
        must(scripted_outputs(&e->e, 0, line, &w, &err), &err);
        e->sent++;
        free_slots(slot);
    }
}

static struct vt_bytes registration(struct vt_buf *b, const char *version)
{
    struct wire_ready r = {.max_model_len = 32768,
                           .num_gpu_blocks = 10000,
                           .block_size = 16,
                           .vllm_version = version,
                           .world_size = 1,
                           .data_parallel_size = 1};

    vt_buf_clear(b);
    wire_ready_write(b, &r);
    return (struct vt_bytes){b->data, b->len};
}

static void *run_engine(void *arg)
{
    struct engine *e = arg;
    struct vt_buf b = {0};
    pthread_t taker;
    struct vt_err err;

    prctl(PR_SET_TIMERSLACK, 1UL); /* or sleeps end 50 us late */
    must(scripted_open(&e->e, 0, e->address, &err), &err);
    must(scripted_join(&e->e, 10000, registration(&b, "0.26.0"), NULL, &err), &err);
    vt_buf_free(&b);
    if (pthread_create(&taker, NULL, take_requests, e) != 0)
        die("no thread");
    send_outputs(e, vt_wire_line_find("0.26"));
    pthread_join(taker, NULL);
    scripted_close(&e->e);
    return NULL;
}

/* ---- the recorder ----------------------------------------------------- */

struct recorder {
    pid_t pid; /* 0: none */
    int out;   /* its stderr */
    char address[SOCK_ADDRESS];
    double cpu_s;
};

/* It says where it waits for engines in its first line. */
static void read_address(struct recorder *r)
{
    char line[1024], *at;
    size_t n = 0;

    while (n + 1 < sizeof(line) && read(r->out, line + n, 1) == 1 && line[n] != '\n')
        n++;
    line[n] = '\0';
    at = strstr(line, "tcp://");
    if (!at)
        die(line);
    snprintf(r->address, sizeof(r->address), "%.*s", (int)strcspn(at, ", "), at);
}

static void start_recorder(struct recorder *r, char *binary, char *dir,
                           const char *frontend, char **flags, int n_flags)
{
    static char words[][32] = {"record",
                               "--trace-out",
                               "--frontend-handshake",
                               "--engine-handshake",
                               "tcp://127.0.0.1:*",
                               "--overwrite"};
    char trace[512], handshake[SOCK_ADDRESS];
    char *argv[8 + MAX_FLAGS + 1] = {binary,   words[0],  words[1], trace,
                                     words[2], handshake, words[3], words[4]};
    posix_spawn_file_actions_t actions;
    int fd[2], n = 8;

    argv[n++] = words[5];
    for (int i = 0; i < n_flags && i < MAX_FLAGS - 1; i++)
        argv[n++] = flags[i];
    snprintf(trace, sizeof(trace), "%s/trace.jsonl", dir);
    snprintf(handshake, sizeof(handshake), "%s", frontend);
    if (pipe(fd) != 0)
        die("no pipe");
    fcntl(fd[0], F_SETFD, FD_CLOEXEC);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd[1], 2);
    if (posix_spawn(&r->pid, binary, &actions, NULL, argv, environ) != 0)
        die("cannot start vtwin");
    posix_spawn_file_actions_destroy(&actions);
    close(fd[1]);
    r->out = fd[0];
    read_address(r);
}

static void stop_recorder(struct recorder *r)
{
    struct rusage used;
    int status;
    char c;

    if (r->pid == 0)
        return;
    kill(r->pid, SIGTERM);
    while (read(r->out, &c, 1) == 1)
        fputc(c, stderr);
    close(r->out);
    if (wait4(r->pid, &status, 0, &used) != r->pid || status != 0)
        die("the recorder failed");
    r->cpu_s = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
               1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* ---- the frontend ----------------------------------------------------- */

struct run {
    struct samples outputs, lasts, adds; /* lasts: outputs that end a request */
    double seconds, cpu_s;
    size_t messages;
};

static void add_request(struct vt_frontend *f, uint64_t number)
{
    uint32_t prompt[PROMPT];
    char id[ID], external[ID / 2];
    struct vt_frontend_request r = {.id = id,
                                    .external_id = external,
                                    .prompt = prompt,
                                    .n_prompt = PROMPT,
                                    .max_tokens = 2 * TOKENS,
                                    .temperature = 0.6};
    struct vt_err err;

    for (uint32_t i = 0; i < PROMPT; i++)
        prompt[i] = (uint32_t)(number * 31 + i * 7) % 32000;
    snprintf(external, sizeof(external), "cmpl-%08x", (uint32_t)number);
    snprintf(id, sizeof(id), "%s-%08x", external, (uint32_t)vt_mix64(number));
    r.arrival_time = (double)now_ns() * 1e-9; /* the clock that the engine reads */
    must(vt_frontend_add(f, 0, 0, &r, &err), &err);
}

static void converse(struct vt_frontend *f, struct run *r, double seconds)
{
    vt_ns from = now_ns() + VT_SEC / 2, until = from + (vt_ns)(seconds * 1e9);
    uint64_t number = 0;
    struct vt_err err;

    while (number < 2 * SLOTS)
        add_request(f, number++);
    for (vt_ns now = 0; now < until;) {
        const struct vt_frontend_message *m;
        bool ends;

        must(vt_frontend_next(f, 100, &m, &err), &err);
        now = now_ns();
        if (!m)
            continue;
        ends = false;
        for (uint32_t i = 0; i < m->n_outputs; i++)
            if (m->output[i].finish_reason) {
                add_request(f, number++);
                ends = true;
            }
        if (m->at <= from) /* both sides warm up */
            continue;
        add_sample(&r->outputs, (double)m->at * 1e-3 - m->timestamp * 1e6);
        if (ends)
            add_sample(&r->lasts, (double)m->at * 1e-3 - m->timestamp * 1e6);
    }
}

static void run_once(struct run *r, bool through, double seconds, double rate,
                     char **argv, int n_flags)
{
    struct vt_frontend_config c = {.handshake = "tcp://127.0.0.1:*",
                                   .line = vt_wire_line_find("0.26")};
    struct recorder rec = {0};
    struct engine e = {.rate = rate * TOKENS / (TOKENS + SLOTS), .cap = 4096};
    struct vt_frontend *f;
    pthread_t thread;
    struct vt_err err;

    *r = (struct run){.seconds = seconds};
    must(vt_frontend_open(&f, &c, &err), &err);
    e.address = vt_frontend_address(f);
    if (through) {
        start_recorder(&rec, argv[1], argv[2], e.address, argv + 6, n_flags);
        e.address = rec.address;
    }
    e.added = calloc(e.cap, sizeof(*e.added));
    pthread_mutex_init(&e.lock, NULL);
    if (!e.added || pthread_create(&thread, NULL, run_engine, &e) != 0)
        die("no thread");
    must(vt_frontend_accept(f, 10000, &err), &err);
    converse(f, r, seconds);
    atomic_store(&e.stop, true);
    pthread_join(thread, NULL);
    vt_frontend_close(f);
    stop_recorder(&rec);
    r->cpu_s = rec.cpu_s;
    r->adds = e.adds;
    r->messages = e.sent + e.adds.n;
    free(e.added);
}

/* ---- the table -------------------------------------------------------- */

struct quantiles {
    double p50, p99;
};

static struct quantiles quantiles(struct samples *s)
{
    vt_sort_f64(s->us, s->n);
    return (struct quantiles){vt_quantile(s->us, s->n, 50),
                              vt_quantile(s->us, s->n, 99)};
}

static void report(const char *name, struct run *r, struct quantiles *outputs,
                   struct quantiles *lasts)
{
    struct quantiles a = quantiles(&r->adds);

    *outputs = quantiles(&r->outputs);
    *lasts = quantiles(&r->lasts);
    printf("%-12s %9.0f %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f", name,
           (double)r->messages / (r->seconds + 0.5), outputs->p50, outputs->p99,
           lasts->p50, lasts->p99, a.p50, a.p99);
    if (r->cpu_s > 0)
        printf(" %8.0f%%", 100 * r->cpu_s / (r->seconds + 0.5));
    printf("\n");
    fflush(stdout);
    free(r->outputs.us);
    free(r->lasts.us);
    free(r->adds.us);
}

struct span { /* of one quantile over the repeats */
    double best, worst;
};

static void widen(struct span *s, double v, bool first)
{
    s->best = first || v < s->best ? v : s->best;
    s->worst = first || v > s->worst ? v : s->worst;
}

/* Whatever else the machine does only adds: the best run of each kind tells most. */
static void conclude(const char *what, const char *name, struct span direct,
                     struct span recorded)
{
    printf("added to %s, %s: %.1f us (direct %.1f to %.1f, recorded %.1f to %.1f)\n",
           what, name, recorded.best - direct.best, direct.best, direct.worst,
           recorded.best, recorded.worst);
}

int main(int argc, char **argv)
{
    static const char *const what[] = {"outputs", "outputs", "last ones", "last ones"};
    struct span span[2][4] = {0}; /* direct and recorded; p50, p99 of both kinds */
    double seconds, rate;
    int repeats;

    if (argc < 6)
        die("usage: tap_peer VTWIN DIRECTORY SECONDS MESSAGES_PER_SECOND REPEATS");
    seconds = strtod(argv[3], NULL);
    rate = strtod(argv[4], NULL);
    repeats = (int)strtol(argv[5], NULL, 10);
    printf("%-12s %9s %9s %9s %9s %9s %9s %9s %9s\n", "us", "messages", "output",
           "output", "last one", "last one", "request", "request", "recorder");
    printf("%-12s %9s %9s %9s %9s %9s %9s %9s %9s\n", "", "per s", "p50", "p99", "p50",
           "p99", "p50", "p99", "CPU");
    for (int i = 0; i < 2 * repeats; i++) {
        bool through = i % 2 == 1;
        struct quantiles o, last;
        struct run r;

        run_once(&r, through, seconds, rate, argv, argc - 6);
        report(through ? "recorded" : "direct", &r, &o, &last);
        widen(&span[through][0], o.p50, i < 2);
        widen(&span[through][1], o.p99, i < 2);
        widen(&span[through][2], last.p50, i < 2);
        widen(&span[through][3], last.p99, i < 2);
    }
    printf("\n");
    for (int i = 0; i < 4; i++)
        conclude(what[i], i % 2 ? "p99" : "p50", span[0][i], span[1][i]);
    return 0;
}
