/* A plain loop over OpenSSL with TLS 1.3 on loopback: a client writes, a server reads.
 *
 * tls_loop BYTES SECONDS CLIENT-CPU SERVER-CPU
 * prints the bytes per second that the server received. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

static void certify(SSL_CTX *context) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_sign(certificate, key, EVP_sha256());
    SSL_CTX_use_certificate(context, certificate);
    SSL_CTX_use_PrivateKey(context, key);
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    signal(SIGPIPE, SIG_IGN);
    int bytes = atoi(argv[1]), one = 1, figure[2];
    double seconds = atof(argv[2]);
    char *buffer = malloc(bytes);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof a;
    check(bind(listener, (void *)&a, sizeof a) || listen(listener, 1), "bind");
    check(getsockname(listener, (void *)&a, &length) || pipe(figure), "pipe");
    pid_t child = fork();
    if (child == 0) {
        pin(atoi(argv[4]));
        SSL_CTX *context = SSL_CTX_new(TLS_server_method());
        SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
        certify(context);
        SSL *tls = SSL_new(context);
        int s = accept(listener, 0, 0);
        SSL_set_fd(tls, s);
        check(SSL_accept(tls) != 1, "accept");
        double begin = now(), end = begin + seconds, received = 0;
        while (now() < end) {
            int done = 0, n = 1;
            while (done < bytes && (n = SSL_read(tls, buffer + done, bytes - done)) > 0) done += n;
            if (n <= 0) break;
            received += done;
        }
        received /= seconds;
        check(write(figure[1], &received, sizeof received) != sizeof received, "write");
        shutdown(s, SHUT_RDWR);
        _exit(0);
    }
    pin(atoi(argv[3]));
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL *tls = SSL_new(context);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    check(connect(s, (void *)&a, sizeof a), "connect");
    SSL_set_fd(tls, s);
    check(SSL_connect(tls) != 1, "connect");
    for (double end = now() + seconds + 1; now() < end;)
        if (SSL_write(tls, buffer, bytes) <= 0) break;
    double received;
    check(read(figure[0], &received, sizeof received) != sizeof received, "read");
    waitpid(child, 0, 0);
    printf("{\"figure\": %.17g, \"cipher\": \"%s\"}\n", received, SSL_get_cipher(tls));
    return 0;
}
