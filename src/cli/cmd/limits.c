/* limits.c - latency limits on the command line, and how a run kept them. */
#include "cli/cmd/limits.h"

/* ---- the flag --------------------------------------------------------------- */

static bool is_key(const char *key, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] != (key[i] == '_' ? '-' : key[i]))
            return false;
    return key[len] == '\0';
}

static size_t find_limit(const char *text, size_t len)
{
    size_t i = 0;

    if (vt_is_text("e2el-p99", text, len)) /* vLLM's name */
        return VT_SLO_E2E;
    while (i < VT_SLO_LIMITS && !is_key(vt_slo_rows[i].key, text, len))
        i++;
    return i;
}

static int read_one(struct vt_slo *slo, const char *text, size_t len,
                    struct vt_err *err)
{
    size_t name = strcspn(text, "=,"), i = find_limit(text, name);
    char flag[64];

    if (i == VT_SLO_LIMITS || name >= len)
        return vt_fail(err, VT_EINPUT,
                       "--slo: '%.*s' is not ttft-p99=TIME, tpot-p99=TIME, "
                       "itl-p99=TIME or e2e-p99=TIME",
                       (int)len, text);
    snprintf(flag, sizeof(flag), "--slo %.*s=", (int)name, text);
    return opt_limit(flag, text + name + 1, len - name - 1, vt_slo_limit(slo, i), err);
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
    for (size_t i = 0; i < VT_SLO_LIMITS; i++) {
        double limit = vt_slo_at(slo, i), got = vt_slo_value(k->run, i);

        if (!(limit > 0))
            continue;
        vt_buf_printf(b, "%s%s %.1f of %g ms %s", between, vt_slo_rows[i].name, got,
                      limit, got > limit ? "BROKEN" : "kept");
        between = ", ";
    }
    vt_buf_printf(b, "\nattainment   %.2f %% of requests, goodput %.3f req/s\n",
                  100 * share_kept(k), goodput(k));
}

void limits_json(struct vt_jw *w, const struct vt_slo *slo, const struct limits_kept *k)
{
    vt_jw_map(w, "slo");
    vt_jw_row(w, "limits_ms");
    for (size_t i = 0; i < VT_SLO_LIMITS; i++)
        if (vt_slo_at(slo, i) > 0)
            vt_jw_f64(w, vt_slo_rows[i].key, vt_slo_at(slo, i));
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

    if (!broken)
        return VT_OK;
    return vt_fail(err, VT_ECHECK, "%s is %.1f ms, above the limit of %g ms", broken,
                   vt_slo_value(run, vt_slo_find(broken)),
                   vt_slo_at(slo, vt_slo_find(broken)));
}
