/* Solves a dense random system by LAPACK's dgetrf and dgetrs, as many times as asked, and prints
 * one line: operations per second of factoring and solving in units of 10^9, and the largest
 * residual.
 *
 * usage: openblas_lu N LEADING_DIMENSION REPEATS CPU[,CPU...]
 *
 * The system is that of weighbridge's linpack with seed 1. Every thread that the library has
 * started is pinned to one of the CPUs. */
#define _GNU_SOURCE
#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void dgetrf_(const int *m, const int *n, double *a, const int *lda, int *pivots, int *info);
void dgetrs_(const char *trans, const int *n, const int *columns, const double *a, const int *lda,
             const int *pivots, double *b, const int *ldb, int *info);

static const uint64_t golden = 0x9e3779b97f4a7c15;

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static void generate(double *column, int n, uint64_t index) {
    uint64_t state = mix(1 ^ mix((index + 1) * golden));
    for (int row = 0; row < n; row++) {
        state += golden;
        column[row] = (double)(mix(state) >> 11) * 0x1p-53 - 0.5;
    }
}

static double largest(const double *v, int n) {
    double most = 0;
    for (int i = 0; i < n; i++)
        if (!(fabs(v[i]) <= most)) most = fabs(v[i]);
    return most;
}

static double residual(const double *x, int n) {
    double *rest = malloc(n * sizeof *rest), *sums = calloc(n, sizeof *sums);
    double *column = malloc(n * sizeof *column);
    generate(rest, n, n);
    double b = largest(rest, n);
    for (int col = 0; col < n; col++) {
        generate(column, n, col);
        for (int row = 0; row < n; row++) {
            rest[row] -= column[row] * x[col];
            sums[row] += fabs(column[row]);
        }
    }
    double scale = 0x1p-53 * (largest(sums, n) * largest(x, n) + b) * n;
    double result = largest(rest, n) / scale;
    free(rest), free(sums), free(column);
    return result;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

/* Factors and solves once; returns the time of both. */
static double solve(double *a, double *b, int *pivots, int n, int lda) {
    const int one = 1;
    int info;
    for (int col = 0; col < n; col++) generate(a + (size_t)col * lda, n, col);
    generate(b, n, n);
    double start = seconds();
    dgetrf_(&n, &n, a, &lda, pivots, &info);
    dgetrs_("N", &n, &one, a, &lda, pivots, b, &n, &info);
    return seconds() - start;
}

static void pin(const char *list) {
    int cpus[256], count = 0, next = 0;
    for (const char *at = list; at && count < 256; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        cpus[count++] = atoi(at);
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        int thread = atoi(task->d_name);
        if (thread == 0) continue;
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cpus[next++ % count], &set);
        if (sched_setaffinity(thread, sizeof set, &set)) perror("sched_setaffinity"), exit(1);
    }
    if (tasks) closedir(tasks);
}

int main(int argc, char **argv) {
    if (argc != 5) return fprintf(stderr, "usage: %s N LEADING_DIMENSION REPEATS CPUS\n", argv[0]), 1;
    int n = atoi(argv[1]), lda = atoi(argv[2]), repeats = atoi(argv[3]);
    pin(argv[4]);
    size_t bytes = ((size_t)lda * n * sizeof(double) + 4095) / 4096 * 4096;
    double *a = aligned_alloc(4096, bytes), *b = malloc(n * sizeof *b);
    int *pivots = malloc(n * sizeof *pivots);
    if (!a || !b || !pivots) return fprintf(stderr, "no memory for %d equations\n", n), 1;

    solve(a, b, pivots, n < 500 ? n : 500, lda); /* the library's own memory and threads */
    double total = 0, worst = 0;
    for (int repeat = 0; repeat < repeats; repeat++) {
        total += solve(a, b, pivots, n, lda);
        double here = residual(b, n);
        if (!(here <= worst)) worst = here;
    }
    double operations = (2.0 / 3.0 * n + 1.5) * n * n * repeats;
    printf("%.3f GFLOPS, residual %.6f\n", operations / total * 1e-9, worst);
    return 0;
}
