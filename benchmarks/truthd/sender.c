/* The least that can send on time: a thread that sleeps until each request is due and writes it, nothing else.

   usage: sender PORT REQUESTS RATE BODY.  BODY: of a request without a stream.  Sleeps are absolute (CLOCK_MONOTONIC), without slack,
   in slices of 0.1 ms where the system has them, as the workers of aiperf ask for.  Connections take turns; what came as an answer
   is thrown away before a connection's next turn.  Prints how late the writes began, p50 and p99 in ms. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 256
#define SLICE_NS 100000

/* sched_setattr(2), which few C libraries have. */
struct attributes { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t runtime, deadline, period; };

static int64_t now_ns(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static int by_size(const void *one, const void *other) {
  int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
  return (a > b) - (a < b);
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  long requests = atol(argv[2]);
  double rate = atof(argv[3]);
  int64_t *late = calloc((size_t)requests, sizeof *late);
  char request[4096], waste[65536];
  int length = snprintf(request, sizeof request, "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
                        "Content-Length: %zu\r\n\r\n%s", strlen(argv[4]), argv[4]);
  if (requests <= 0 || rate <= 0 || late == NULL || length >= (int)sizeof request) return 2;
  struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int sockets[CONNECTIONS], one = 1;
  for (int n = 0; n < CONNECTIONS; n++) {
    sockets[n] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(sockets[n], (struct sockaddr *)&server, sizeof server)) { perror("connect"); return 1; }
    setsockopt(sockets[n], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }
  prctl(PR_SET_TIMERSLACK, 1);
  struct attributes slices = {.size = sizeof slices, .runtime = SLICE_NS};
  syscall(SYS_sched_setattr, 0, &slices, 0);  /* earlier systems take no notice */
  int64_t began = now_ns() + 10000000;
  for (long n = 0; n < requests; n++) {
    int descriptor = sockets[n % CONNECTIONS];
    while (recv(descriptor, waste, sizeof waste, MSG_DONTWAIT) > 0) {}
    int64_t due = began + (int64_t)(n * 1e9 / rate);
    struct timespec until = {due / 1000000000, due % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    late[n] = now_ns() - due;
    if (send(descriptor, request, (size_t)length, MSG_NOSIGNAL) != length) { perror("send"); return 1; }
  }
  usleep(500000);  /* the last answers; truthd drops a connection that has ended */
  for (int n = 0; n < CONNECTIONS; n++) shutdown(sockets[n], SHUT_WR);
  for (int n = 0; n < CONNECTIONS; n++) while (recv(sockets[n], waste, sizeof waste, 0) > 0) {}
  qsort(late, (size_t)requests, sizeof *late, by_size);
  printf("%.4f %.4f\n", (double)late[requests / 2] / 1e6, (double)late[requests * 99 / 100] / 1e6);
  return 0;
}
