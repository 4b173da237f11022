/* The peer of our himeno: a plain transcription of the benchmark's loop nest to C, for the compiler to
 * optimise. Arrays are static with one plane, row and column more than the grid, as
 * in the published C version; GOSA is summed in GOSA_TYPE.
 *
 * Compile with -DGI= -DGJ= -DGK= (the grid) and -DGOSA_TYPE=; run with the number of iterations.
 * Prints: seconds gosa mflops.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ARRAY [GI + 1][GJ + 1][GK + 1]
static float a0 ARRAY, a1 ARRAY, a2 ARRAY, a3 ARRAY;
static float b0 ARRAY, b1 ARRAY, b2 ARRAY;
static float c0 ARRAY, c1 ARRAY, c2 ARRAY;
static float p ARRAY, bnd ARRAY, wrk1 ARRAY, wrk2 ARRAY;

static const float omega = 0.8f;

static void start(void)
{
    for (int i = 0; i < GI; i++)
        for (int j = 0; j < GJ; j++)
            for (int k = 0; k < GK; k++) {
                a0[i][j][k] = a1[i][j][k] = a2[i][j][k] = 1.0f;
                a3[i][j][k] = 1.0f / 6.0f;
                b0[i][j][k] = b1[i][j][k] = b2[i][j][k] = 0.0f;
                c0[i][j][k] = c1[i][j][k] = c2[i][j][k] = 1.0f;
                p[i][j][k] = (float)(i * i) / (float)((GI - 1) * (GI - 1));
                bnd[i][j][k] = 1.0f;
                wrk1[i][j][k] = wrk2[i][j][k] = 0.0f;
            }
}

static GOSA_TYPE jacobi(int iterations)
{
    GOSA_TYPE gosa = 0;
    for (int n = 0; n < iterations; n++) {
        gosa = 0;
        for (int i = 1; i < GI - 1; i++)
            for (int j = 1; j < GJ - 1; j++)
                for (int k = 1; k < GK - 1; k++) {
                    float s0 = a0[i][j][k] * p[i + 1][j][k]
                             + a1[i][j][k] * p[i][j + 1][k]
                             + a2[i][j][k] * p[i][j][k + 1]
                             + b0[i][j][k] * (p[i + 1][j + 1][k] - p[i + 1][j - 1][k]
                                            - p[i - 1][j + 1][k] + p[i - 1][j - 1][k])
                             + b1[i][j][k] * (p[i][j + 1][k + 1] - p[i][j - 1][k + 1]
                                            - p[i][j + 1][k - 1] + p[i][j - 1][k - 1])
                             + b2[i][j][k] * (p[i + 1][j][k + 1] - p[i - 1][j][k + 1]
                                            - p[i + 1][j][k - 1] + p[i - 1][j][k - 1])
                             + c0[i][j][k] * p[i - 1][j][k]
                             + c1[i][j][k] * p[i][j - 1][k]
                             + c2[i][j][k] * p[i][j][k - 1]
                             + wrk1[i][j][k];
                    float ss = (s0 * a3[i][j][k] - p[i][j][k]) * bnd[i][j][k];
                    gosa += ss * ss;
                    wrk2[i][j][k] = p[i][j][k] + omega * ss;
                }
        for (int i = 1; i < GI - 1; i++)
            for (int j = 1; j < GJ - 1; j++)
                for (int k = 1; k < GK - 1; k++)
                    p[i][j][k] = wrk2[i][j][k];
    }
    return gosa;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    int iterations = argc == 2 ? atoi(argv[1]) : 0;
    if (iterations < 1) {
        fprintf(stderr, "usage: %s ITERATIONS\n", argv[0]);
        return 1;
    }
    start();
    double begin = now();
    double gosa = jacobi(iterations);
    double seconds = now() - begin;
    double flops = 34.0 * (GI - 2) * (GJ - 2) * (GK - 2) * iterations;
    printf("%.9f %.9e %.3f\n", seconds, gosa, flops / seconds / 1e6);
    return 0;
}
