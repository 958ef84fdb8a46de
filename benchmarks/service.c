/* A latency-sensitive service: open loop, Poisson arrivals, a pool of threads.
 *
 *   service RATE SECONDS THREADS CPU_MICROSECONDS SEED [fifo]
 *
 * The arrival schedule is drawn before the start. A thread takes the next request, waits until it is due, burns the
 * given CPU time, and records its latency from the instant it was DUE: a request that finds every thread busy or no
 * CPU free pays for that too. Prints p50 p99 p99.9 in microseconds and the number of requests.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double *due, *took;
static long total;
static atomic_long next_request;
static double cpu_s;

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void *serve(void *unused) {
    (void)unused;
    for (;;) {
        long i = atomic_fetch_add(&next_request, 1);
        if (i >= total) return NULL;
        struct timespec at = {(time_t)due[i], (long)((due[i] - (time_t)due[i]) * 1e9)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        double until = now(CLOCK_THREAD_CPUTIME_ID) + cpu_s;
        while (now(CLOCK_THREAD_CPUTIME_ID) < until) {}
        took[i] = now(CLOCK_MONOTONIC) - due[i];
    }
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc < 6) return fprintf(stderr, "usage: service RATE SECONDS THREADS CPU_US SEED [fifo]\n"), 2;
    double rate = atof(argv[1]), seconds = atof(argv[2]);
    int threads = atoi(argv[3]);
    cpu_s = atof(argv[4]) / 1e6;
    srand48(atol(argv[5]));
    total = (long)(rate * seconds);
    due = malloc(total * sizeof *due);
    took = malloc(total * sizeof *took);
    if (!due || !took || threads < 1 || threads > 1024) return 2;
    if (argc > 6 && !strcmp(argv[6], "fifo")) {
        struct sched_param p = {.sched_priority = 10};
        if (sched_setscheduler(0, SCHED_FIFO, &p)) return perror("SCHED_FIFO"), 3;
    }
    double t = now(CLOCK_MONOTONIC) + 0.2;
    for (long i = 0; i < total; i++) due[i] = t += -log(1 - drand48()) / rate;
    pthread_t pool[threads];
    for (int i = 0; i < threads; i++) pthread_create(&pool[i], NULL, serve, NULL);
    for (int i = 0; i < threads; i++) pthread_join(pool[i], NULL);
    qsort(took, total, sizeof *took, ascending);
    printf("%.1f %.1f %.1f %ld\n", took[total / 2] * 1e6, took[(long)(total * 0.99)] * 1e6,
           took[(long)(total * 0.999)] * 1e6, total);
    return 0;
}
