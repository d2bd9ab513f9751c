/* serving.h - a small server in threads, for tests of the client: answers the k-th
 * request with the k-th script, the last one again and again. */
#ifndef VT_TEST_SERVING_H
#define VT_TEST_SERVING_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/net.h"

enum { SERVING_MAX = 64 };

struct script {
    const char *bytes; /* the whole response; NULL: none, silence */
    int pause_ms;      /* before it */
    bool close_after;  /* without having said so */
    size_t piece;      /* bytes at a time; 0: all at once */
};

struct serving {
    int listener;
    uint16_t port;
    pthread_t thread, each[SERVING_MAX];
    size_t n_each;
    int fd[SERVING_MAX];
    const struct script *script;
    size_t n_scripts;
    SSL_CTX *tls; /* NULL: none */
    pthread_mutex_t lock;
    char *request[SERVING_MAX]; /* heap: head and body */
    size_t n_requests;
    int now, peak; /* being answered */
};

struct serving_one {
    struct serving *s;
    int fd;
};

static inline ssize_t serving_io(SSL *ssl, int fd, char *p, size_t n, bool out)
{
    if (ssl)
        return out ? SSL_write(ssl, p, (int)n) : SSL_read(ssl, p, (int)n);
    return out ? send(fd, p, n, MSG_NOSIGNAL) : recv(fd, p, n, 0);
}

/* One request, head and body; NULL: the peer has gone. */
static inline char *serving_read(SSL *ssl, int fd)
{
    struct vt_buf b = {0};
    char bytes[4096], *end = NULL;
    size_t whole = 0;

    while (!end || b.len < whole) {
        ssize_t n = serving_io(ssl, fd, bytes, sizeof(bytes), false);
        char *length;

        if (n <= 0) {
            vt_buf_free(&b);
            return NULL;
        }
        vt_buf_add(&b, bytes, (size_t)n);
        end = strstr(b.data, "\r\n\r\n");
        length = end ? strstr(b.data, "Content-Length: ") : NULL;
        if (end)
            whole = (size_t)(end + 4 - b.data) +
                    (length ? strtoul(length + 16, NULL, 10) : 0);
    }
    return b.data;
}

static inline bool serving_write(SSL *ssl, int fd, const struct script *k)
{
    size_t len = strlen(k->bytes), step = k->piece > 0 ? k->piece : len;
    char *copy = strdup(k->bytes);

    for (size_t at = 0; at < len; at += step) {
        size_t n = len - at < step ? len - at : step;

        if (serving_io(ssl, fd, copy + at, n, true) <= 0)
            break;
        if (k->piece > 0)
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    free(copy);
    return !k->close_after;
}

static inline const struct script *serving_begin(struct serving *s, char *request)
{
    const struct script *k;

    pthread_mutex_lock(&s->lock);
    k = &s->script[s->n_requests < s->n_scripts ? s->n_requests : s->n_scripts - 1];
    if (s->n_requests < SERVING_MAX)
        s->request[s->n_requests++] = request;
    else
        free(request);
    if (++s->now > s->peak)
        s->peak = s->now;
    pthread_mutex_unlock(&s->lock);
    return k;
}

static inline void *serving_each(void *user)
{
    struct serving_one *o = user;
    SSL *ssl = o->s->tls ? SSL_new(o->s->tls) : NULL;
    bool on = !ssl || (SSL_set_fd(ssl, o->fd) == 1 && SSL_accept(ssl) == 1);
    char *request;

    while (on && (request = serving_read(ssl, o->fd))) {
        const struct script *k = serving_begin(o->s, request);

        nanosleep(&(struct timespec){.tv_sec = k->pause_ms / 1000,
                                     .tv_nsec = k->pause_ms % 1000 * 1000000L},
                  NULL);
        pthread_mutex_lock(&o->s->lock);
        o->s->now--; /* before the answer, which may bring the next one */
        pthread_mutex_unlock(&o->s->lock);
        if (k->bytes)
            on = serving_write(ssl, o->fd, k);
    }
    SSL_free(ssl);
    shutdown(o->fd, SHUT_RDWR);
    free(o);
    return NULL;
}

static inline void *serving_accept(void *user)
{
    struct serving *s = user;
    int fd;

    while ((fd = accept(s->listener, NULL, NULL)) >= 0) {
        struct serving_one *o = malloc(sizeof(*o));

        if (!o || s->n_each == SERVING_MAX)
            abort();
        *o = (struct serving_one){s, fd};
        s->fd[s->n_each] = fd;
        pthread_create(&s->each[s->n_each++], NULL, serving_each, o);
    }
    return NULL;
}

static inline void serving_start(struct serving *s, const struct script *script,
                                 size_t n)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(a);

    s->script = script;
    s->n_scripts = n;
    pthread_mutex_init(&s->lock, NULL);
    s->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(s->listener, 64), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&a, &len), 0);
    s->port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serving_accept, s), 0);
}

/* Before what its threads have written is read. */
static inline void serving_look(struct serving *s)
{
    pthread_mutex_lock(&s->lock);
    pthread_mutex_unlock(&s->lock);
}

static inline void serving_stop(struct serving *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
    for (size_t i = 0; i < s->n_each; i++) {
        shutdown(s->fd[i], SHUT_RDWR);
        pthread_join(s->each[i], NULL);
        close(s->fd[i]);
    }
    for (size_t i = 0; i < s->n_requests; i++)
        free(s->request[i]);
    SSL_CTX_free(s->tls);
    pthread_mutex_destroy(&s->lock);
}

#endif
