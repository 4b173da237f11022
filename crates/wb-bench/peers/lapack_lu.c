/* Solves a dense random system by dgetrf and dgetrs of a LAPACK library, REPEATS times, and prints one line:
 * operations per second of factoring and solving in units of 10^9, and the largest residual.
 *
 * usage: lapack_lu LIBRARY PREFIX N LEADING_DIMENSION REPEATS CPU[,CPU...]
 *        lapack_lu LIBRARY PREFIX
 *
 * PREFIX is the prefix of the library's function names. Without a size it prints the library's name, its
 * version and the kernel that it selected for this CPU.
 *
 * The system is that of weighbridge's linpack with seed 1. Every thread that the library has started is pinned to one
 * of the CPUs. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void (*dgetrf)(const int *m, const int *n, double *a, const int *lda, int *pivots, int *info);
static void (*dgetrs)(const char *trans, const int *n, const int *columns, const double *a, const int *lda,
                      const int *pivots, double *b, const int *ldb, int *info);

static void *library;
static const char *prefix;

/* A function of the library, by its name without the prefix. */
static void *function(const char *name) {
    char whole[128];
    snprintf(whole, sizeof whole, "%s%s", prefix, name);
    return dlsym(library, whole);
}

static const char *mkl_branch(int branch) {
    switch (branch) {
    case 3: return "compatible";
    case 4: return "SSE2";
    case 6: return "SSSE3";
    case 7: return "SSE4.1";
    case 8: return "SSE4.2";
    case 9: return "AVX";
    case 10: return "AVX2";
    case 12: return "AVX512";
    case 14: return "AVX512 E1";
    default: return "not named by it"; /* as on processors that are not Intel's */
    }
}

static int about(void) {
    char *(*config)(void) = function("openblas_get_config"), *(*core)(void) = function("openblas_get_corename");
    if (config && core) {
        char name[32], version[32];
        if (sscanf(config(), "%31s %31s", name, version) != 2) return fprintf(stderr, "no version: %s\n", config()), 1;
        return printf("%s %s, kernel %s\n", name, version, core()), 0;
    }
    void (*text)(char *, int) = dlsym(library, "mkl_get_version_string");
    int (*branch)(void) = dlsym(library, "mkl_cbwr_get_auto_branch");
    if (!text || !branch) return fprintf(stderr, "neither OpenBLAS nor MKL\n"), 1;
    char version[256] = "", number[32] = "of unknown version";
    text(version, sizeof version - 1);
    sscanf(version, "%*[^0-9]%31[0-9.]", number);
    return printf("MKL %s, kernel %s\n", number, mkl_branch(branch())), 0;
}

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
    dgetrf(&n, &n, a, &lda, pivots, &info);
    dgetrs("N", &n, &one, a, &lda, pivots, b, &n, &info);
    return seconds() - start;
}

static int cpus[256], cpu_count;

static void bind(int thread, int first, int count) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int at = first; at < first + count; at++) CPU_SET(cpus[at % cpu_count], &set);
    if (sched_setaffinity(thread, sizeof set, &set)) perror("sched_setaffinity"), exit(1);
}

/* Pins each thread to its own CPU. */
static void pin(void) {
    int next = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));)
        if (atoi(task->d_name)) bind(atoi(task->d_name), next++, 1);
    if (tasks) closedir(tasks);
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 7)
        return fprintf(stderr, "usage: %s LIBRARY PREFIX [N LEADING_DIMENSION REPEATS CPUS]\n", argv[0]), 1;
    if (argc == 7) {
        for (const char *at = argv[6]; at && cpu_count < 256; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
            cpus[cpu_count++] = atoi(at);
        bind(0, 0, cpu_count); /* threads that the library starts begin there */
    }
    prefix = argv[2];
    if (!(library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL))) return fprintf(stderr, "%s\n", dlerror()), 1;
    if (argc == 3) return about();
    if (!(dgetrf = function("dgetrf_")) || !(dgetrs = function("dgetrs_"))) return fprintf(stderr, "%s\n", dlerror()), 1;
    int n = atoi(argv[3]), lda = atoi(argv[4]), repeats = atoi(argv[5]);
    size_t bytes = ((size_t)lda * n * sizeof(double) + 4095) / 4096 * 4096;
    double *a = aligned_alloc(4096, bytes), *b = malloc(n * sizeof *b);
    int *pivots = malloc(n * sizeof *pivots);
    if (!a || !b || !pivots) return fprintf(stderr, "cannot allocate memory for %d equations\n", n), 1;

    solve(a, b, pivots, n < 500 ? n : 500, lda); /* the library's own memory and threads */
    pin();
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
