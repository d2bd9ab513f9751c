/* text.c - the text of /metrics. All but the numbers is made once, when
 * opening: a scrape copies it and fills in what changes. */
#include "http/metrics/table.h"

#include <math.h>

/* ---- numbers and words -------------------------------------------------- */

/* Python writes exponents from 10^16 on; prometheus_client does from a million. */
static void put_real(struct vt_buf *b, double v)
{
    char digit[40];
    size_t from = b->len + (v < 0), n = 0;
    const char *dot;
    int exponent;

    vt_buf_py_f64(b, v);
    if (b->failed || !(fabs(v) >= 1e6 && fabs(v) < 1e16))
        return;
    dot = strchr(b->data + from, '.');
    exponent = (int)(dot - (b->data + from)) - 1;
    for (const char *p = b->data + from; *p && n < sizeof(digit); p++)
        if (p != dot)
            digit[n++] = *p;
    while (n > 1 && digit[n - 1] == '0')
        n--;
    b->len = from;
    vt_buf_char(b, digit[0]);
    if (n > 1)
        vt_buf_char(b, '.');
    vt_buf_add(b, digit + 1, n - 1);
    vt_buf_printf(b, "e+%02d", exponent);
}

void metrics_put(struct vt_buf *b, double v)
{
    if (v >= 0 && v < 1e6 && v == (double)(uint32_t)v) {
        vt_buf_u64(b, (uint32_t)v);
        vt_buf_add(b, ".0", 2);
    } else if (isnan(v)) {
        vt_buf_str(b, "NaN");
    } else if (isinf(v)) {
        vt_buf_str(b, v > 0 ? "+Inf" : "-Inf");
    } else {
        put_real(b, v);
    }
}

void metrics_put_label(struct vt_buf *b, const char *value)
{
    vt_buf_char(b, '"');
    for (; *value; value++) {
        if (*value == '\n') {
            vt_buf_str(b, "\\n");
            continue;
        }
        if (*value == '"' || *value == '\\')
            vt_buf_char(b, '\\');
        vt_buf_char(b, *value);
    }
    vt_buf_char(b, '"');
}

void metrics_put_head(struct vt_buf *b, const char *name, const char *suffix,
                      const char *help, const char *type)
{
    vt_buf_printf(b, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name,
                  suffix, type);
}

void metrics_put_histogram(struct vt_buf *b, const char *name, const char *help,
                           const struct metrics_hist *h, double created)
{
    uint64_t sum = 0;

    metrics_put_head(b, name, "", help, "histogram");
    for (int i = 0; i == 0 || !isinf(h->bound[i - 1]); i++) {
        vt_buf_printf(b, "%s_bucket{le=\"", name);
        metrics_put(b, h->bound[i]);
        sum += h->bucket[i];
        metrics_put_line(b, "\"}", "", (double)sum);
    }
    metrics_put_line(b, name, "_count", (double)sum);
    metrics_put_line(b, name, "_sum", h->sum);
    metrics_put_head(b, name, "_created", help, "gauge");
    metrics_put_line(b, name, "_created", created);
}

/* ---- making the text ---------------------------------------------------- */

struct maker {
    struct metrics *m;
    struct vt_buf *b;
    struct vt_err *err;
    int rc;
};

static void add_hole(struct maker *k, enum metrics_hole_kind kind, const void *value)
{
    struct metrics *m = k->m;

    if (k->rc == VT_OK)
        k->rc =
            vt_grow(&m->hole, &m->cap_holes, m->n_holes + 1, sizeof(*m->hole), k->err);
    if (k->rc == VT_OK)
        m->hole[m->n_holes++] = (struct metrics_hole){k->b->len, kind, value};
    vt_buf_char(k->b, '\n');
}

struct labels { /* of a sample; names in alphabetical order */
    const char *engine, *extra, *value, *le;
};

static void put_pair(struct vt_buf *b, const char *name, const char *value)
{
    if (!value)
        return;
    if (b->data[b->len - 1] != '{')
        vt_buf_char(b, ',');
    vt_buf_printf(b, "%s=", name);
    metrics_put_label(b, value);
}

static void put_sample(struct maker *k, const char *name, const char *suffix,
                       const struct labels *l)
{
    struct vt_buf *b = k->b;
    bool early = l->extra && strcmp(l->extra, "model_name") < 0;

    vt_buf_printf(b, "%s%s{", name, suffix);
    if (b->failed)
        return;
    put_pair(b, "engine", l->engine);
    if (early)
        put_pair(b, l->extra, l->value);
    put_pair(b, "le", l->le);
    put_pair(b, "model_name", k->m->config.name[0]);
    if (l->extra && !early)
        put_pair(b, l->extra, l->value);
    vt_buf_str(b, "} ");
}

static void put_histogram(struct maker *k, const struct metrics_family *f,
                          const struct metrics_hist *h, struct labels l)
{
    struct vt_buf le = {.max = 64};

    for (int i = 0; i < METRICS_BOUNDS; i++) {
        vt_buf_clear(&le);
        metrics_put(&le, h->bound[i]);
        l.le = le.failed ? "" : le.data;
        put_sample(k, f->name, "_bucket", &l);
        add_hole(k, i == 0 ? METRICS_FIRST : METRICS_NEXT, &h->bucket[i]);
        if (isinf(h->bound[i]))
            break;
    }
    if (le.failed)
        k->b->failed = true;
    vt_buf_free(&le);
    l.le = NULL;
    put_sample(k, f->name, "_count", &l);
    add_hole(k, METRICS_COUNT, NULL);
    put_sample(k, f->name, "_sum", &l);
    add_hole(k, METRICS_VALUE, &h->sum);
}

/* What is done for every value of a family's label and every engine. */
enum pass { PASS_VALUES, PASS_CREATED };

static void put_engines(struct maker *k, const struct metrics_family *f, enum pass pass,
                        const char *value, int index)
{
    uint32_t n = f->once ? 1 : k->m->config.n_engines;

    for (uint32_t i = 0; i < n; i++) {
        struct metrics_engine *e = &k->m->engine[i];
        char number[16];
        struct labels l = {f->once ? NULL : number, f->label, value, NULL};

        snprintf(number, sizeof(number), "%u", i);
        if (pass == PASS_CREATED) {
            put_sample(k, f->name, "_created", &l);
            metrics_put(k->b, k->m->created);
            vt_buf_char(k->b, '\n');
        } else if (f->kind == METRICS_HISTOGRAM) {
            put_histogram(k, f, &e->hist[f->first + index], l);
        } else {
            put_sample(k, f->name, f->kind == METRICS_COUNTER ? "_total" : "", &l);
            add_hole(k, METRICS_VALUE,
                     f->values && !*f->values ? &e->accepted[index]
                                              : &e->scalar[f->first + index]);
        }
    }
}

static void put_pass(struct maker *k, const struct metrics_family *f, enum pass pass)
{
    const char *at = f->values;
    int index = 0;

    if (!f->label) {
        put_engines(k, f, pass, NULL, 0);
        return;
    }
    for (uint32_t i = 0; !*at && i < k->m->config.engine.num_spec_tokens; i++) {
        char number[16];

        snprintf(number, sizeof(number), "%u", i);
        put_engines(k, f, pass, number, (int)i);
    }
    for (; *at; index++) {
        char word[32];
        size_t len = strcspn(at, " ");

        snprintf(word, sizeof(word), "%.*s", (int)len, at);
        put_engines(k, f, pass, word, index);
        at += len + (at[len] == ' ');
    }
}

/* ---- the cache's configuration ------------------------------------------ */

static void put_size_or_none(struct vt_buf *b, uint32_t size)
{
    if (size > 0)
        vt_buf_u64(b, size);
    else
        vt_buf_str(b, "None");
}

static void put_gib_or_none(struct vt_buf *b, double bytes)
{
    if (bytes > 0)
        vt_buf_py_f64(b, bytes / 0x1p30);
    else
        vt_buf_str(b, "None");
}

static void put_retention(struct vt_buf *b, uint32_t interval)
{
    if (interval == VT_RETENTION_DENSE)
        vt_buf_str(b, "None");
    else
        vt_buf_u64(b, interval == VT_RETENTION_DEFAULT ? 0 : interval);
}

static void put_config(struct vt_buf *b, const struct vt_serve_config *c,
                       const char *name, uint32_t engine)
{
    struct vt_kv_facts kv = vt_kv_facts(&c->engine);

    if (strcmp(name, "block_size") == 0)
        vt_buf_u64(b, kv.block_size);
    else if (strcmp(name, "whole_block_size") == 0)
        put_size_or_none(b, kv.whole_block_size);
    else if (strcmp(name, "state_block_size") == 0)
        put_size_or_none(b, kv.state_block_size);
    else if (strcmp(name, "window") == 0)
        put_size_or_none(b, kv.window);
    else if (strcmp(name, "mamba_mode") == 0)
        vt_buf_str(b, c->engine.mamba_cache_mode == VT_MAMBA_ALIGN ? "align" : "none");
    else if (strcmp(name, "retention") == 0)
        put_retention(b, c->engine.prefix_cache_retention_interval);
    else if (strcmp(name, "offloading_size") == 0)
        put_gib_or_none(b, c->engine.offload.cpu_bytes_to_use);
    else if (strcmp(name, "prefix_caching") == 0)
        vt_buf_str(b, c->engine.enable_prefix_caching ? "True" : "False");
    else if (strcmp(name, "engine") == 0)
        vt_buf_u64(b, engine);
    else if (strcmp(name, "utilization") == 0)
        vt_buf_py_f64(b, c->gpu_memory_utilization);
    else if (strcmp(name, "concurrency") == 0)
        vt_buf_py_f64(b, kv.max_concurrency);
    else if (strcmp(name, "tokens") == 0)
        vt_buf_u64(b, kv.tokens);
    else
        vt_buf_u64(b, c->engine.num_gpu_blocks);
}

static void put_info(struct maker *k, uint32_t engine)
{
    char comma = '{';

    vt_buf_str(k->b, "vllm:cache_config_info");
    for (size_t i = 0; i < metrics_n_infos; i++) {
        const struct metrics_info *info = &metrics_info[i];

        if (!api_lines_have(info->lines, k->m->line))
            continue;
        vt_buf_printf(k->b, "%c%s=\"", comma, info->label);
        comma = ',';
        if (info->value[0] == '@')
            put_config(k->b, &k->m->config, info->value + 1, engine);
        else
            vt_buf_str(k->b, info->value);
        vt_buf_char(k->b, '"');
    }
    vt_buf_str(k->b, "} 1.0\n");
}

int metrics_prepare(struct metrics *m, struct vt_err *err)
{
    static const char *const type[] = {"gauge", "counter", "histogram"};
    const bool there[] = {
        [METRICS_ALWAYS] = true,
        [METRICS_SINCE_032] = m->line >= API_LINE_032,
        [METRICS_WITH_DRAFTS] = m->config.engine.num_spec_tokens > 0,
        [METRICS_WITH_OFFLOAD] = m->config.engine.offload.num_cpu_blocks > 0,
        [METRICS_WITH_THRESHOLD] = m->config.engine.offload.num_cpu_blocks > 0 &&
                                   m->config.engine.offload.store_threshold >= 2,
        [METRICS_WITH_PULLS] = m->config.engine.remote.on,
        [METRICS_PULLS_032] = m->config.engine.remote.on && m->line >= API_LINE_032,
        [METRICS_FETCHES_032] =
            m->line >= API_LINE_032 &&
            (m->config.engine.offload.num_cpu_blocks > 0 ||
             (m->config.engine.remote.on && m->config.engine.remote.pulls)),
    };
    struct maker k = {m, &m->text, err, VT_OK};

    for (size_t i = 0; i < metrics_n_families; i++) {
        const struct metrics_family *f = &metrics_family[i];

        if (!there[f->when])
            continue;
        metrics_put_head(k.b, f->name, f->kind == METRICS_COUNTER ? "_total" : "",
                         f->help, type[f->kind]);
        put_pass(&k, f, PASS_VALUES);
        if (f->kind == METRICS_GAUGE)
            continue;
        metrics_put_head(k.b, f->name, "_created", f->help, "gauge");
        put_pass(&k, f, PASS_CREATED);
    }
    if (m->config.max_loras > 0)
        metrics_put_head(k.b, "vllm:lora_requests_info", "", "LoRA adapters at work.",
                         "gauge");
    m->lora_at = k.b->len;
    metrics_put_head(k.b, "vllm:cache_config_info", "", "The cache's configuration.",
                     "gauge");
    for (uint32_t i = 0; i < m->config.n_engines; i++)
        put_info(&k, i);
    if (k.rc == VT_OK && k.b->failed)
        k.rc = vt_nomem(err);
    return k.rc;
}

/* ---- filling it in ------------------------------------------------------ */

static void put_filled(const struct metrics *m, struct vt_buf *b)
{
    uint64_t sum = 0;
    size_t from = 0;

    for (size_t i = 0; i < m->n_holes; i++) {
        const struct metrics_hole *h = &m->hole[i];

        vt_buf_add(b, m->text.data + from, h->at - from);
        from = h->at;
        if (h->kind == METRICS_FIRST)
            sum = 0;
        if (h->kind == METRICS_FIRST || h->kind == METRICS_NEXT)
            sum += *(const uint64_t *)h->value;
        metrics_put(b,
                    h->kind == METRICS_VALUE ? *(const double *)h->value : (double)sum);
    }
    vt_buf_add(b, m->text.data + from, m->lora_at - from);
    for (uint32_t i = 0; i < m->n_loras && m->config.max_loras > 0; i++) {
        vt_buf_printf(b,
                      "vllm:lora_requests_info{max_lora=\"%u\",running_lora_adapters=",
                      m->config.max_loras);
        metrics_put_label(b, m->lora[i].running);
        vt_buf_str(b, ",waiting_lora_adapters=");
        metrics_put_label(b, m->lora[i].waiting);
        metrics_put_line(b, "}", "", m->lora[i].unix_s);
    }
    vt_buf_add(b, m->text.data + m->lora_at, m->text.len - m->lora_at);
}

void metrics_write(struct metrics *m, struct vt_buf *b, double unix_s)
{
    if (m->n_loras > 0 && unix_s > m->lora[m->lora_now].unix_s)
        m->lora[m->lora_now].unix_s = unix_s;
    metrics_put_process(b, m->boot_s);
    put_filled(m, b);
    metrics_web_put(&m->web, m->created, b);
    metrics_put_histogram(b, "vtwin:lateness_seconds",
                          "How late tokens left, for want of a faster machine.",
                          &m->late, m->created);
}
