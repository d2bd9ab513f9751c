/* gnuplot.c - the one way from a script to a picture. */
#include <errno.h>
#include <unistd.h>

#include "report/figures/figures.h"

/* gnuplot's double quotes know escapes; control characters would end a line. */
void vt_gnuplot_string(struct vt_buf *b, const char *text)
{
    vt_buf_char(b, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            vt_buf_char(b, '\\');
        vt_buf_char(b, (unsigned char)*text < ' ' ? ' ' : *text);
    }
    vt_buf_char(b, '"');
}

/* ---- terminals -------------------------------------------------------- */

static void screen_terminal(struct vt_buf *b, double aspect, const char *format)
{
    if (strcmp(format, "pdf") == 0)
        vt_buf_printf(b,
                      "set terminal pdfcairo noenhanced size 20cm,%.2fcm "
                      "font 'sans,11' linewidth 1.0",
                      20 * aspect);
    else if (strcmp(format, "png") == 0)
        vt_buf_printf(b,
                      "set terminal pngcairo noenhanced size 1280,%.0f "
                      "font 'sans,14' linewidth 1.6",
                      1280 * aspect);
    else
        vt_buf_printf(b,
                      "set terminal svg noenhanced size 960,%.0f dynamic "
                      "font 'sans-serif,13' linewidth 1.2 background '#ffffff'",
                      960 * aspect);
}

/* Fonts and lines are as thick as in print, whatever the format: gnuplot counts 96
 * pixels to the inch where text is concerned. */
static void print_terminal(struct vt_buf *b, const struct vt_script *s,
                           const char *format)
{
    const double dpi = 300, font = dpi / 96, unit = dpi / 72;

    if (strcmp(format, "pdf") == 0)
        vt_buf_printf(b,
                      "set terminal pdfcairo noenhanced size %.3fin,%.3fin "
                      "font 'serif,9' fontscale 0.75",
                      s->width_in, s->height_in);
    else if (strcmp(format, "png") == 0)
        vt_buf_printf(b,
                      "set terminal pngcairo noenhanced size %.0f,%.0f font 'serif,9' "
                      "fontscale %.4f linewidth %.4f pointscale %.4f",
                      s->width_in * dpi, s->height_in * dpi, font, unit, unit);
    else
        vt_buf_printf(b,
                      "set terminal svg noenhanced size %.0f,%.0f dynamic "
                      "font 'serif,9' fontscale 1.3333 background '#ffffff'",
                      s->width_in * 96, s->height_in * 96);
}

/* ---- the program ------------------------------------------------------ */

static int gnuplot_run(const char *script_path, struct vt_err *err)
{
    struct vt_proc p = {.our_environment = true, .in_path = true};
    char complaint[VT_PROC_LINE];
    int rc;

    vt_proc_arg(&p, "gnuplot");
    vt_proc_arg(&p, script_path);
    rc = vt_proc_start(&p, err);
    if (rc == VT_EINPUT)
        rc = vt_fail(err, VT_EIO,
                     "gnuplot draws the figures and is not installed (Debian: "
                     "apt-get install gnuplot-nox)");
    else if (rc == VT_OK && (rc = vt_proc_wait(&p, 0, err)) != VT_OK) {
        vt_proc_first_line(&p, complaint);
        rc = vt_fail(err, VT_EIO, "gnuplot failed: %s", complaint);
    }
    vt_proc_stop(&p);
    return rc;
}

/* ---- pictures --------------------------------------------------------- */

/* A PDF tells when it was made; the same input is to give the same bytes. gnuplot's
 * "serif:Bold" is no font of SVG's. */
static void add_picture(struct vt_buf *out, struct vt_buf *picture, bool settle_fonts)
{
    static const char mark[] = "/CreationDate (D:", date[] = "20000101000000";
    static const struct {
        const char *from, *to;
    } face[] = {{":Bold\"", "\" font-weight=\"bold\""},
                {":Italic\"", "\" font-style=\"italic\""}};
    size_t n = sizeof(mark) - 1, digits = sizeof(date) - 1;
    const char *svg = picture->len > 0 ? picture->data : "";

    for (size_t i = 0; i + n + digits <= picture->len; i++)
        if (memcmp(picture->data + i, mark, n) == 0)
            memcpy(picture->data + i + n, date, digits);
    if (!settle_fonts)
        vt_buf_add(out, picture->data, picture->len);
    while (settle_fonts && *svg) {
        size_t i = 0, len = strcspn(svg, ":");

        vt_buf_add(out, svg, len);
        svg += len;
        while (i < VT_COUNT(face) &&
               strncmp(svg, face[i].from, strlen(face[i].from)) != 0)
            i++;
        if (i < VT_COUNT(face)) {
            vt_buf_str(out, face[i].to);
            svg += strlen(face[i].from);
        } else if (*svg) {
            vt_buf_char(out, *svg++);
        }
    }
}

int vt_script_draw(const struct vt_script *s, const char *format, struct vt_buf *out,
                   struct vt_err *err)
{
    enum { SCRIPT, PICTURE, N_FILES };
    static const char *const name[N_FILES] = {"script", "picture"};
    char dir[512], path[N_FILES][600];
    struct vt_buf script = {0}, picture = {0};
    bool is_svg = strcmp(format, "svg") == 0;
    int rc;

    if (snprintf(dir, sizeof(dir), "%s/vtwin-figure-XXXXXX", s->scratch) >=
        (int)sizeof(dir))
        return vt_fail(err, VT_EINPUT,
                       "the path of the temporary directory is too long");
    if (!mkdtemp(dir))
        return vt_fail(err, VT_EIO, "%s: %s", dir, strerror(errno));
    for (int i = 0; i < N_FILES; i++)
        snprintf(path[i], sizeof(path[i]), "%s/%s", dir, name[i]);
    if (s->aspect > 0)
        screen_terminal(&script, s->aspect, format);
    else
        print_terminal(&script, s, format);
    if (is_svg) { /* its identifiers begin so: several fit into one page */
        vt_buf_str(&script, " name '");
        for (const char *p = s->name; *p; p++)
            vt_buf_char(&script, *p == '-' ? '_' : *p);
        vt_buf_char(&script, '\'');
    }
    vt_buf_str(&script, "\nset output ");
    vt_gnuplot_string(&script, path[PICTURE]);
    vt_buf_char(&script, '\n');
    vt_buf_str(&script, s->text);
    if (!(rc = vt_write_file(path[SCRIPT], &script, err)) &&
        !(rc = gnuplot_run(path[SCRIPT], err)) &&
        !(rc = vt_read_file(path[PICTURE], (size_t)256 << 20, &picture, err))) {
        add_picture(out, &picture, is_svg && s->aspect <= 0);
        rc = out->failed ? vt_nomem(err) : VT_OK;
    }
    for (int i = 0; i < N_FILES; i++)
        unlink(path[i]);
    rmdir(dir);
    vt_buf_free(&picture);
    vt_buf_free(&script);
    return rc;
}
