/* item.c - a message on its way to the recorder, and what is told meanwhile. */
#include "wire/tap/tap.h"

/* Small messages are copied: one that is held keeps all of libzmq's buffer alive that
 * it came in, which is many times its size. */
enum { COPY_MAX = 4096 };

struct tap_stamp tap_stamp(void)
{
    return (struct tap_stamp){vt_wall_ns(), vt_unix_ns()};
}

struct tap_item *tap_item_new(struct sock_msg *in)
{
    size_t bytes = sock_msg_bytes(in), room = bytes <= COPY_MAX ? bytes : 0;
    struct tap_item *item;
    uint8_t *to;

    if (in->n > UINT32_MAX)
        return NULL;
    item = malloc(sizeof(*item) + in->n * sizeof(item->frame[0]) + room);
    if (!item)
        return NULL;
    *item = (struct tap_item){.n_frames = (uint32_t)in->n};
    item->cost = sizeof(*item) + in->n * (sizeof(item->frame[0]) + sizeof(zmq_msg_t)) +
                 bytes + COPY_MAX / 16;
    if (bytes > COPY_MAX && !(item->held = malloc(in->n * sizeof(*item->held)))) {
        free(item);
        return NULL;
    }
    to = (uint8_t *)&item->frame[in->n];
    for (size_t i = 0; i < in->n; i++) {
        size_t len;
        const void *from = sock_data(in, i, &len);

        if (item->held) {
            zmq_msg_init(&item->held[i]);
            zmq_msg_move(&item->held[i], &in->frame[i]);
            from = zmq_msg_data(&item->held[i]);
        } else if (len > 0) {
            from = memcpy(to, from, len);
            to += len;
        }
        item->frame[i] = (struct mp_span){from, len};
    }
    return item;
}

void tap_item_free(struct tap_item *item)
{
    if (item->held)
        for (uint32_t i = 0; i < item->n_frames; i++)
            zmq_msg_close(&item->held[i]);
    free(item->held);
    free(item);
}

void tap_tell(struct tap_log *log, const char *fmt, ...)
{
    struct vt_err line; /* for its text: one line, whatever names hold */
    char text[sizeof(line.msg)];
    va_list args;

    if (!log->config->log)
        return;
    va_start(args, fmt);
    if (vsnprintf(text, sizeof(text), fmt, args) < 0)
        text[0] = '\0';
    va_end(args);
    vt_fail(&line, VT_OK, "%s", text);
    pthread_mutex_lock(&log->lock);
    log->config->log(log->config->user, line.msg);
    pthread_mutex_unlock(&log->lock);
}
