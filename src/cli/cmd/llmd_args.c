/* llmd_args.c - a command line of llm-d-inference-sim in this program's words: serve
 * --compat llm-d. Its sleeps are the knobs of a latency model; what it bounds is
 * bounded as it does it. */
#include <stdio.h>

#include "cli/cmd/vllm.h"

/* What a flag becomes. */
enum way {
    KNOB,    /* of --latency knob:; a duration, milliseconds if it has no unit */
    FACTOR,  /* the same, a plain number */
    FLAG,    /* as it is, under another name */
    SWITCH,  /* the same, without a value */
    PERCENT, /* a share of 1 here */
    NAME,    /* what the model is called, unless --served-model-name says it */
    ADAPTER, /* {"name": ..., "path": ...} */
    TAKEN,   /* as itself */
};

static const struct meaning {
    const char *name, *here;
    enum way way;
} meanings[] = {
    {"time-to-first-token", "time_to_first_token", KNOB},
    {"time-to-first-token-std-dev", "time_to_first_token_std_dev", KNOB},
    {"inter-token-latency", "inter_token_latency", KNOB},
    {"inter-token-latency-std-dev", "inter_token_latency_std_dev", KNOB},
    {"prefill-overhead", "prefill_overhead", KNOB},
    {"prefill-time-per-token", "prefill_time_per_token", KNOB},
    {"prefill-time-std-dev", "prefill_time_std_dev", KNOB},
    {"kv-cache-transfer-latency", "kv_cache_transfer_latency", KNOB},
    {"kv-cache-transfer-latency-std-dev", "kv_cache_transfer_latency_std_dev", KNOB},
    {"kv-cache-transfer-time-per-token", "kv_cache_transfer_time_per_token", KNOB},
    {"kv-cache-transfer-time-std-dev", "kv_cache_transfer_time_std_dev", KNOB},
    {"time-factor-under-load", "time_factor_under_load", FACTOR},
    {"model", NULL, NAME},
    {"lora-modules", "lora-modules", ADAPTER},
    {"kv-cache-size", "num-gpu-blocks", FLAG},
    {"enable-kvcache", "enable-kv-cache-events", SWITCH},
    {"zmq-endpoint", "kv-events-endpoint", FLAG},
    {"hash-seed", "block-hash-seed", FLAG},
    {"failure-injection-rate", "failure-injection-rate", PERCENT},
    {"default-embedding-dimensions", "embedding-dimensions", FLAG},
    {"max-request-body-size-mb", "max-request-body-mb", FLAG},
    {"log-http", "log-requests", SWITCH},
    {"port", NULL, TAKEN},
    {"served-model-name", NULL, TAKEN},
    {"max-loras", NULL, TAKEN},
    {"max-model-len", NULL, TAKEN},
    {"max-num-seqs", NULL, TAKEN},
    {"mode", NULL, TAKEN},
    {"seed", NULL, TAKEN},
    {"block-size", NULL, TAKEN},
    {"dataset-path", NULL, TAKEN},
    {"failure-types", NULL, TAKEN},
    {"kv-events-replay-endpoint", NULL, TAKEN},
    {"ssl-certfile", NULL, TAKEN},
    {"ssl-keyfile", NULL, TAKEN},
    {"enable-request-id-headers", NULL, TAKEN},
    {"enable-prefix-caching", NULL, TAKEN},
    {"no-enable-prefix-caching", NULL, TAKEN},
    {"tensor-parallel-size", NULL, TAKEN},
    {"enforce-eager", NULL, TAKEN},
};

struct llmd {
    struct opt_words to;
    struct vt_buf knobs;
    const char *model; /* its name */
    bool named, seqs, len;
};

static const struct meaning *find(const char *name, size_t len)
{
    for (size_t i = 0; i < VT_COUNT(meanings); i++)
        if (vt_is_text(meanings[i].name, name, len))
            return &meanings[i];
    return NULL;
}

static int put_knob(struct llmd *l, const struct meaning *m, const char *value,
                    struct vt_err *err)
{
    double ms;
    bool good = m->way == FACTOR ? vt_parse_f64(value, strlen(value), &ms)
                                 : vt_parse_time(value, strlen(value), VT_MS, &ms);

    if (!good)
        return vt_fail(err, VT_EINPUT, "--%s: '%s' is no %s", m->name, value,
                       m->way == FACTOR ? "number" : "time");
    vt_buf_printf(&l->knobs, "%s%s=%.9g", l->knobs.len > 0 ? "," : "", m->here, ms);
    return VT_OK;
}

static int put_adapter(struct llmd *l, const char *value, struct vt_err *err)
{
    const char *name = NULL, *path = NULL;
    const struct vt_node *map;
    int rc;

    if (value[0] != '{')
        return opt_word_put(&l->to, err, "--lora-modules=%s", value);
    if ((rc = vt_json_parse(l->to.arena, value, strlen(value), 1, &map, err)) ||
        (rc = vt_get_str(map, "name", VT_REQUIRED, &name, err)) ||
        (rc = vt_get_str(map, "path", VT_OPTIONAL, &path, err)))
        return vt_within(err, rc, "--lora-modules");
    return opt_word_put(&l->to, err, "--lora-modules=%s=%s", name, path ? path : name);
}

static int put_percent(struct llmd *l, const struct meaning *m, const char *value,
                       struct vt_err *err)
{
    double percent;

    if (!vt_parse_f64(value, strlen(value), &percent) || percent < 0 || percent > 100)
        return vt_fail(err, VT_EINPUT, "--%s: '%s' is no percentage", m->name, value);
    return opt_word_put(&l->to, err, "--%s=%.9g", m->here, percent / 100);
}

static int put_meaning(struct llmd *l, const struct meaning *m, const char *value,
                       struct vt_err *err)
{
    l->named |= strcmp(m->name, "served-model-name") == 0;
    l->seqs |= strcmp(m->name, "max-num-seqs") == 0;
    l->len |= strcmp(m->name, "max-model-len") == 0;
    switch (m->way) {
    case KNOB:
    case FACTOR:
        return put_knob(l, m, value, err);
    case SWITCH:
        return opt_word_put(&l->to, err, "--%s", m->here);
    case PERCENT:
        return put_percent(l, m, value, err);
    case NAME:
        l->model = value;
        return VT_OK;
    case ADAPTER:
        return put_adapter(l, value, err);
    case FLAG:
        return opt_word_put(&l->to, err, "--%s=%s", m->here, value);
    case TAKEN:
        break;
    }
    return value ? opt_word_put(&l->to, err, "--%s=%s", m->name, value)
                 : opt_word_put(&l->to, err, "--%s", m->name);
}

static bool takes_none(const struct meaning *m)
{
    return m->way == SWITCH || strncmp(m->name, "enable-", 7) == 0 ||
           strncmp(m->name, "no-", 3) == 0 || strcmp(m->name, "enforce-eager") == 0;
}

/* argv[*i] is a flag. Those of other meaning here are told apart by their place in the
 * table of foreign ones: llm-d/NAME. */
static int take_flag(struct llmd *l, int argc, const char *const *argv, int *i,
                     struct vt_err *err)
{
    const char *name = argv[*i] + 2, *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const char *value = equals ? equals + 1 : NULL;
    const struct meaning *m = find(name, len);

    if (!m)
        return vllm_is_llmd(name, len) ? opt_word_put(&l->to, err, "--llm-d/%s", name)
                                       : opt_word_add(&l->to, argv[*i], err);
    if (takes_none(m))
        return put_meaning(l, m, NULL, err);
    if (!value && *i + 1 < argc)
        value = argv[++*i];
    if (!value)
        return vt_fail(err, VT_EINPUT, "--%s needs a value", m->name);
    return put_meaning(l, m, value, err);
}

/* What it has where nobody says otherwise. */
static int put_standards(struct llmd *l, struct vt_err *err)
{
    int rc = opt_word_put(&l->to, err, "--latency=knob:%s",
                          l->knobs.len > 0 ? l->knobs.data : "time_to_first_token=0");

    if (l->knobs.failed)
        rc = vt_nomem(err);
    if (rc == VT_OK && l->model && !l->named)
        rc = opt_word_put(&l->to, err, "--served-model-name=%s", l->model);
    if (rc == VT_OK && !l->seqs)
        rc = opt_word_put(&l->to, err, "--max-num-seqs=5");
    if (rc == VT_OK && !l->len)
        rc = opt_word_put(&l->to, err, "--max-model-len=1024");
    return rc;
}

int llmd_rewrite(struct vt_arena *arena, int *argc, const char *const **argv,
                 struct vt_err *err)
{
    struct llmd l = {.to = {.arena = arena}};
    int rc = opt_word_put(&l.to, err, "--host=0.0.0.0");

    for (int i = 0; i < *argc && rc == VT_OK; i++) {
        const char *arg = (*argv)[i];

        if (strncmp(arg, "-v", 2) == 0) { /* a level of words, which may stand alone */
            i +=
                arg[2] == '\0' && i + 1 < *argc && strspn((*argv)[i + 1], "0123456789");
            rc = opt_word_add(&l.to, "--verbose", err);
        } else if (strncmp(arg, "--", 2) == 0) {
            rc = take_flag(&l, *argc, *argv, &i, err);
        } else {
            rc = opt_word_add(&l.to, arg, err);
        }
    }
    if (rc == VT_OK)
        rc = put_standards(&l, err);
    vt_buf_free(&l.knobs);
    *argc = (int)l.to.n;
    *argv = l.to.word;
    return rc;
}
