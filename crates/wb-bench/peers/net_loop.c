/* The bare system calls of a network workload: an upper bound for an engine around them. Sockets have the same options
 * as the engine's: time limits, and connections from ports that the other side knows in advance.
 *
 * net_loop MODE BYTES SECONDS STRANDS CLIENT-CPU SERVER-CPU
 * prints bytes, rounds, datagrams or connections per second, as counted by the receiver or client. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Number of source ports. */
#define PORTS 256

static size_t bytes;
static double seconds;
static int strands;
static const char *mode;

static int is(const char *name) { return !strcmp(mode, name); }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void check(int failed, const char *what) {
    if (failed) {
        perror(what);
        exit(1);
    }
}

static struct sockaddr_in loopback(uint16_t port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = port};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

static int bound(int type, uint16_t *port) {
    int s = socket(AF_INET, type, 0), one = 1;
    struct sockaddr_in a = loopback(0);
    socklen_t length = sizeof a;
    check(s < 0 || bind(s, (void *)&a, sizeof a) || getsockname(s, (void *)&a, &length), "bind");
    if (type == SOCK_STREAM) {
        if (is("tcp-rr")) setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        check(listen(s, 4096), "listen");
    }
    *port = a.sin_port;
    return s;
}

/* A source port that is reserved for this process, used for repeated connections. */
static uint16_t held(void) {
    int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in a = loopback(0);
    socklen_t length = sizeof a;
    setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    check(s < 0 || bind(s, (void *)&a, sizeof a) || getsockname(s, (void *)&a, &length), "bind");
    return a.sin_port;
}

static int read_all(int s, char *buffer) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = recv(s, buffer + done, bytes - done, 0);
        if (n <= 0) return 0;
        done += n;
    }
    return 1;
}

static int write_all(int s, const char *buffer) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = send(s, buffer + done, bytes - done, MSG_NOSIGNAL);
        if (n <= 0) return 0;
        done += n;
    }
    return 1;
}

static void limit(int s, int option, long milliseconds) {
    struct timeval limit = {.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000};
    setsockopt(s, SOL_SOCKET, option, &limit, sizeof limit);
}

struct strand {
    pthread_t thread;
    uint16_t port, peer;
    int socket;
    double rate;
};

static void *server(void *argument) {
    struct strand *this = argument;
    char *buffer = malloc(bytes);
    int listener = this->socket, s = listener;
    double begin = 0, end = 0, count = 0;
    if (is("tcp-stream") || is("tcp-rr")) s = accept(listener, 0, 0);
    limit(s, SO_SNDTIMEO, 10000);
    if (is("udp-stream")) limit(s, SO_RCVTIMEO, 2000);
    if (is("tcp-stream") || is("udp-stream")) {
        begin = now(), end = begin + seconds;
        for (double t = begin; t < end; t = now()) {
            if (is("udp-stream")) {
                if (recv(s, buffer, bytes, 0) <= 0) break;
            } else if (!read_all(s, buffer)) {
                break;
            }
            count++;
        }
        this->rate = count / seconds;
        if (is("tcp-stream")) {
            /* Only a reset wakes a client that waits for buffer space. */
            struct linger reset = {.l_onoff = 1};
            setsockopt(s, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
            close(s);
        }
    } else if (is("tcp-rr")) {
        while (read_all(s, buffer) && write_all(s, buffer)) now();
    } else if (is("udp-rr")) {
        for (;;) {
            if (recv(s, buffer, bytes, 0) <= 0 || send(s, buffer, bytes, 0) <= 0) break;
            now();
        }
    } else {
        for (;;) {
            int taken = accept(listener, 0, 0);
            struct tcp_info info;
            socklen_t length = sizeof info;
            if (taken < 0) break;
            getsockopt(taken, IPPROTO_TCP, TCP_INFO, &info, &length);
            close(taken);
            now();
        }
    }
    return 0;
}

static void *client(void *argument) {
    struct strand *this = argument;
    char *buffer = memset(malloc(bytes), 0x5a, bytes); /* untouched memory is one page of zeroes, always in the cache */
    struct sockaddr_in a = loopback(this->peer);
    int one = 1, s = this->socket;
    if (is("tcp-stream") || is("tcp-rr")) {
        s = socket(AF_INET, SOCK_STREAM, 0);
        if (is("tcp-rr")) setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        check(connect(s, (void *)&a, sizeof a), "connect");
    }
    if (!is("connect")) limit(s, SO_SNDTIMEO, 10000);
    if (is("udp-rr")) limit(s, SO_RCVTIMEO, 200);
    uint16_t ports[PORTS];
    unsigned place = 0;
    for (int i = 0; is("connect") && i < PORTS; i++) ports[i] = held();
    double begin = now(), end = begin + seconds, count = 0;
    for (double t = begin; t < end; t = now()) {
        if (is("tcp-stream")) {
            if (!write_all(s, buffer)) break;
        } else if (is("udp-stream")) {
            send(s, buffer, bytes, 0);
        } else if (is("tcp-rr")) {
            if (!write_all(s, buffer) || !read_all(s, buffer)) break;
            now(); /* an engine that times both operations reads the clock twice */
        } else if (is("udp-rr")) {
            if (send(s, buffer, bytes, 0) <= 0 || recv(s, buffer, bytes, 0) <= 0) break;
            now();
        } else {
            char end_of_stream;
            int opened = socket(AF_INET, SOCK_STREAM, 0);
            struct sockaddr_in here = loopback(ports[place++ % PORTS]);
            struct tcp_info info;
            socklen_t length = sizeof info;
            limit(opened, SO_SNDTIMEO, 10000);
            setsockopt(opened, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
            check(bind(opened, (void *)&here, sizeof here), "bind");
            if (connect(opened, (void *)&a, sizeof a)) {
                close(opened); /* the port's last connection has not ended yet: use the next port */
                continue;
            }
            getsockopt(opened, IPPROTO_TCP, TCP_INFO, &info, &length);
            shutdown(opened, SHUT_WR);
            recv(opened, &end_of_stream, 1, 0);
            close(opened);
            now();
        }
        count++;
    }
    if (is("tcp-stream")) shutdown(s, SHUT_WR); /* ends the receive loop of the server */
    this->rate = count / seconds;
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 7) return 2;
    mode = argv[1], bytes = atol(argv[2]), seconds = atof(argv[3]), strands = atoi(argv[4]);
    int datagrams = is("udp-stream") || is("udp-rr");
    struct strand *servers = calloc(strands, sizeof *servers), *clients = calloc(strands, sizeof *clients);
    for (int i = 0; i < strands; i++) {
        servers[i].socket = bound(datagrams ? SOCK_DGRAM : SOCK_STREAM, &servers[i].port);
        clients[i].peer = servers[i].port;
        if (datagrams) {
            clients[i].socket = bound(SOCK_DGRAM, &clients[i].port);
            struct sockaddr_in a = loopback(servers[i].port), b = loopback(clients[i].port);
            check(connect(clients[i].socket, (void *)&a, sizeof a), "connect");
            check(connect(servers[i].socket, (void *)&b, sizeof b), "connect");
        }
    }
    int results[2];
    check(pipe(results), "pipe");
    pid_t child = fork();
    if (child == 0) {
        pin(atoi(argv[6]));
        double sum = 0;
        for (int i = 0; i < strands; i++) pthread_create(&servers[i].thread, 0, server, &servers[i]);
        if (is("tcp-stream") || is("udp-stream"))
            for (int i = 0; i < strands; i++) pthread_join(servers[i].thread, 0), sum += servers[i].rate;
        check(write(results[1], &sum, sizeof sum) != sizeof sum, "write");
        pause();
    }
    pin(atoi(argv[5]));
    double sum = 0;
    for (int i = 0; i < strands; i++) pthread_create(&clients[i].thread, 0, client, &clients[i]);
    for (int i = 0; i < strands; i++) pthread_join(clients[i].thread, 0), sum += clients[i].rate;
    if (is("tcp-stream") || is("udp-stream")) {
        check(read(results[0], &sum, sizeof sum) != sizeof sum, "read");
        if (is("tcp-stream")) sum *= bytes;
    }
    kill(child, 9);
    waitpid(child, 0, 0);
    printf("{\"figure\": %.17g}\n", sum);
    return 0;
}
