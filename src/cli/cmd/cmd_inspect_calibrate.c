/* cmd_inspect_calibrate.c - vtwin inspect calibrate: a capture against a model, with a
 * verdict. */
#include "cli/cmd/inspect.h"

static int dump_samples(struct inspect_case *c, const char *path, struct vt_err *err)
{
    static const char *const names[] = {"source", "replay", "knobfit"};
    const struct vt_view *v[3];
    struct vt_buf b = {0};
    int rc = inspect_add_knob_fit(c, err);

    if (rc == VT_OK) {
        v[0] = &c->captured;
        v[1] = &c->model[0].view;
        v[2] = &c->model[c->n - 1].view;
        rc = vt_samples_json(&b, v, names, VT_COUNT(v), err);
    }
    if (rc == VT_OK)
        rc = vt_write_file(path, &b, err);
    vt_buf_free(&b);
    return rc;
}

static int check_band(const struct inspect_case *c, bool json, struct vt_err *err)
{
    struct vt_buf b = {0};
    struct vt_band x;
    int rc = vt_within(err, vt_band(&x, &c->captured, &c->model[0].view, err), "%s",
                       c->path);

    if (rc != VT_OK)
        return rc;
    x.captured = c->path;
    if (json)
        vt_band_json(&b, &x);
    else
        vt_band_table(&b, &x);
    rc = cli_print(&b, err);
    if (rc == VT_OK && !x.pass)
        rc = vt_fail(err, VT_ECHECK,
                     "the model's band is farther from the capture's than a second "
                     "run's would be");
    return rc;
}

/* tolerance: below 0: as far as a second run would be. */
static int check_all(const struct inspect_case *c, double tolerance, bool json,
                     struct vt_err *err)
{
    struct vt_calibration k;
    struct vt_buf b = {0};
    int rc = vt_calibrate(&k, &c->captured, &c->model[0].view, tolerance, err);

    if (rc != VT_OK)
        return rc;
    k.captured = c->path;
    if (json)
        vt_calibration_json(&b, &k);
    else
        vt_calibration_table(&b, &k);
    rc = cli_print(&b, err);
    if (rc != VT_OK || k.pass)
        return rc;
    if (tolerance < 0)
        return vt_fail(
            err, VT_ECHECK,
            "the model is farther from the capture than a second run would be");
    return vt_fail(err, VT_ECHECK, "the model is farther from the capture than %g %%",
                   100 * tolerance);
}

int inspect_calibrate(const struct opt_args *a, struct vt_err *err)
{
    const struct inspect_options *o = a->options;
    double tolerance = opt_given(a, &o->tolerance) ? o->tolerance : -1;
    struct cli_report report;
    struct inspect_case c;
    int rc;

    if ((rc = opt_exclude(a, &o->band, &o->tolerance, err)))
        return rc;
    if ((rc = inspect_case_open(&c, inspect_trace(a, &report), a, err)) ||
        (rc = inspect_add_given(&c, o, err)))
        goto out;
    if (c.n > 1) {
        rc = vt_fail(err, VT_EINPUT, "calibrate takes one --profile or --latency");
        goto out;
    }
    if (o->dump_samples && (rc = dump_samples(&c, o->dump_samples, err)))
        goto out;
    rc =
        o->band ? check_band(&c, o->json, err) : check_all(&c, tolerance, o->json, err);
out:
    inspect_case_close(&c);
    return rc;
}
