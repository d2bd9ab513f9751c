/* limits.c - latency limits on the command line, and how a run kept them. */
#include "cli/cmd/limits.h"

static const struct limit_name {
    const char *name, *key, *shown;
    size_t limit; /* in vt_slo */
    size_t value; /* in vt_summary: its statistics */
} names[] = {
#define LIMIT(n, k, s, f) \
    {n, k, s, offsetof(struct vt_slo, f##_p99), offsetof(struct vt_summary, f)}
    LIMIT("ttft-p99", "ttft_p99", "TTFT p99", ttft),
    LIMIT("tpot-p99", "tpot_p99", "TPOT p99", tpot),
    LIMIT("itl-p99", "itl_p99", "ITL p99", itl),
    LIMIT("e2e-p99", "e2e_p99", "E2E p99", e2e),
    LIMIT("e2el-p99", NULL, NULL, e2e), /* vLLM's name */
};

static double limit_of(const struct vt_slo *slo, const struct limit_name *n)
{
    return *(const double *)(const void *)((const char *)slo + n->limit);
}

static double value_of(const struct vt_summary *s, const struct limit_name *n)
{
    return ((const struct vt_stat *)(const void *)((const char *)s + n->value))->p99;
}

/* ---- the flag --------------------------------------------------------------- */

static int read_one(struct vt_slo *slo, const char *text, size_t len,
                    struct vt_err *err)
{
    size_t name = strcspn(text, "=,");

    for (size_t i = 0; i < VT_COUNT(names) && name < len; i++) {
        char flag[64];

        if (!vt_is_text(names[i].name, text, name))
            continue;
        snprintf(flag, sizeof(flag), "--slo %s=", names[i].name);
        return opt_limit(flag, text + name + 1, len - name - 1,
                         (double *)(void *)((char *)slo + names[i].limit), err);
    }
    return vt_fail(err, VT_EINPUT,
                   "--slo: '%.*s' is not ttft-p99=TIME, tpot-p99=TIME, itl-p99=TIME or "
                   "e2e-p99=TIME",
                   (int)len, text);
}

int limits_read(const struct opt_row *row, const char *text, void *field,
                struct vt_err *err)
{
    struct limits_named *l = field;
    int rc = VT_OK;

    (void)row;
    *l = (struct limits_named){.given = true};
    while (rc == VT_OK) {
        size_t len = strcspn(text, ",");

        rc = read_one(&l->at, text, len, err);
        if (text[len] == '\0')
            break;
        text += len + 1;
    }
    return rc;
}

/* ---- what came of it --------------------------------------------------------- */

static double share_kept(const struct limits_kept *k)
{
    return k->requests > 0 ? (double)k->kept / (double)k->requests : 0;
}

static double goodput(const struct limits_kept *k)
{
    return k->duration_s > 0 ? (double)k->kept / k->duration_s : 0;
}

void limits_table(struct vt_buf *b, const struct vt_slo *slo,
                  const struct limits_kept *k)
{
    const char *between = "";

    vt_buf_str(b, "limits       ");
    for (size_t i = 0; i < VT_COUNT(names); i++) {
        double limit = limit_of(slo, &names[i]), got = value_of(k->run, &names[i]);

        if (!names[i].shown || !(limit > 0))
            continue;
        vt_buf_printf(b, "%s%s %.1f of %g ms %s", between, names[i].shown, got, limit,
                      got > limit ? "BROKEN" : "kept");
        between = ", ";
    }
    vt_buf_printf(b, "\nattainment   %.2f %% of requests, goodput %.3f req/s\n",
                  100 * share_kept(k), goodput(k));
}

void limits_json(struct vt_jw *w, const struct vt_slo *slo, const struct limits_kept *k)
{
    vt_jw_map(w, "slo");
    vt_jw_row(w, "limits_ms");
    for (size_t i = 0; i < VT_COUNT(names); i++)
        if (names[i].key && limit_of(slo, &names[i]) > 0)
            vt_jw_f64(w, names[i].key, limit_of(slo, &names[i]));
    vt_jw_end(w);
    vt_jw_bool(w, "kept", vt_slo_broken(slo, k->run, NULL) == NULL);
    vt_jw_f64(w, "attainment", share_kept(k));
    vt_jw_f64(w, "goodput_req_per_s", goodput(k));
    vt_jw_end(w);
}

int limits_check(const struct vt_slo *slo, const struct vt_summary *run,
                 struct vt_err *err)
{
    const char *broken = vt_slo_broken(slo, run, NULL);

    for (size_t i = 0; broken && i < VT_COUNT(names); i++)
        if (names[i].shown && strcmp(names[i].shown, broken) == 0)
            return vt_fail(err, VT_ECHECK, "%s is %.1f ms, above the limit of %g ms",
                           broken, value_of(run, &names[i]), limit_of(slo, &names[i]));
    return VT_OK;
}
