/* fit_link.c - the link to the host's memory, from transfers that spans tell of. */
#include <math.h>

#include "cli/cmd/fit.h"

/* No link to a host is faster, whatever the GPU. */
static const double MOST_GBS = 200;
/* A data sheet's rate may be rounded. */
static const double BEYOND = 1.1;

static const char *const ways[] = {"loads", "stores"};

/* What a block takes on one GPU; 0: not known. */
static double block_bytes_of(const struct fit_job *j, const struct fit_options *o)
{
    const struct vt_meta *m = vt_fit_engine(j->fit);
    struct fit_engine e = fit_engine_of(o, m);
    struct vt_engine_config c;
    struct vt_kv_wish wish = {.tp = e.tp};
    struct vt_arch arch;
    struct vt_err ignored;
    uint64_t bytes;

    if (!e.model || vt_arch_load(&arch, e.model, &ignored) != VT_OK)
        return 0;
    wish.arch = &arch;
    vt_engine_config_init(&c);
    vt_engine_config_take(&c, m);
    return vt_kv_groups(&c, &wish, &bytes, &ignored) == VT_OK ? (double)bytes : 0;
}

/* By the GPU's data sheet, where it is known. */
static int check_rates(const struct fit_job *j, const struct fit_options *o,
                       struct vt_err *err)
{
    const char *name = fit_engine_of(o, vt_fit_engine(j->fit)).gpu;
    struct vt_gpu gpu;
    struct vt_err ignored;
    bool known = name && vt_gpu_find(&gpu, name, o->hw, &ignored) == VT_OK &&
                 gpu.pcie_gbs > 0 && gpu.name[0] != 'G'; /* Grace has another link */
    double most = known ? gpu.pcie_gbs / 2 : MOST_GBS;

    for (int i = 0; i < 2; i++)
        if (j->link.gbs[i] > (known ? BEYOND : 1) * most)
            return vt_fail(err, VT_ECHECK,
                           "%s from and to the host move %.0f GB/s, but %s moves no "
                           "more than %.0f one way: is the model another one?",
                           ways[i], j->link.gbs[i], known ? gpu.name : "no link", most);
    return VT_OK;
}

int fit_link(struct fit_job *j, const struct fit_options *o, struct vt_err *err)
{
    struct vt_fit_link *l = &j->link;
    double block_bytes = block_bytes_of(j, o);
    int rc = vt_fit_link(l, j->fit, block_bytes, err);

    if (rc != VT_OK || l->n[0] + l->n[1] == 0)
        return rc;
    if (!(block_bytes > 0)) {
        vt_buf_str(&j->notes, "transfers state blocks, and nobody what one takes: "
                              "--hf-config does; nothing is learned of the link\n");
        return VT_OK;
    }
    if (!(l->setup_us > 0)) {
        if (fmax(l->error[0], l->error[1]) > 0)
            vt_buf_printf(
                &j->notes,
                "transfers took what no bandwidth explains (off by %.0f %% in "
                "the median); nothing is learned of the link\n",
                100 * fmax(l->error[0], l->error[1]));
        else
            vt_buf_printf(&j->notes,
                          "%zu loads and %zu stores are too few, or all of one size; "
                          "nothing is learned of the link\n",
                          l->n[0], l->n[1]);
        return VT_OK;
    }
    for (int i = 0; i < 2; i++)
        if (!(l->gbs[i] > 0))
            vt_buf_printf(&j->notes,
                          "%zu %s are too few to learn their bandwidth from\n", l->n[i],
                          ways[i]);
    return check_rates(j, o, err);
}

void fit_link_put(struct vt_buf *b, const struct fit_job *j)
{
    const struct vt_fit_link *l = &j->link;
    const struct vt_step_params *p = &j->params;

    if (!(l->setup_us > 0))
        return;
    vt_buf_str(b, "link     ");
    for (int i = 0; i < 2; i++)
        if (l->gbs[i] > 0)
            vt_buf_printf(b, " %zu %s at %.1f GB/s, off by %.1f %%;", l->n[i], ways[i],
                          l->gbs[i], 100 * l->error[i]);
    vt_buf_printf(b, " %.0f us each", l->setup_us);
    if (l->duplex > 0)
        vt_buf_printf(b, ", %.2f of it while both are busy", l->duplex);
    vt_buf_char(b, '\n');
    if (p->host_move > 0)
        vt_buf_printf(b, "          handed over in %.0f us each and %.1f us a block\n",
                      p->host_move, p->host_move_block);
}

const struct vt_offload *fit_link_found(const struct fit_job *j, struct vt_offload *to)
{
    if (!(j->link.setup_us > 0))
        return NULL;
    *to = (struct vt_offload){.load_gbs = j->link.gbs[0],
                              .store_gbs = j->link.gbs[1],
                              .setup_us = j->link.setup_us,
                              .duplex = j->link.duplex,
                              .host_us = j->params.host_move,
                              .host_block_us = j->params.host_move_block};
    return to;
}
