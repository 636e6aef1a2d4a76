/* When does the loop wait for more before it looks?  The clock is this program's (-Wl,--wrap=clock_gettime), so that looks come as
   far from each other as it says.

   Prints for how long the loop may wait, in ns: before any look; behind many looks that found eight sockets, 8 us apart; 30 and
   50 us after the last of them; behind many that found one, 20 us apart; and behind a read without a stamp of the system's, as of a
   socket that is not TCP's, though looks come densely. */
#define _GNU_SOURCE
#include "reader.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SOCKETS 8
#define LOOKS 400

static _Atomic int64_t clock_ns;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
  (void)clock;
  int64_t at_ns = atomic_load(&clock_ns);
  *now = (struct timespec){.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000};
  return 0;
}

static void told(struct reader *reader) { printf("%" PRId64 "\n", reader_gathers(reader)); }

/* Looks so far apart, each of which finds so many sockets; whether all did. */
static bool looked(struct reader *reader, int64_t apart_ns, int sockets) {
  uint64_t tokens[SOCKETS];
  for (int n = 0; n < LOOKS; n++) {
    atomic_fetch_add(&clock_ns, apart_ns);
    if (reader_look(reader, tokens, SOCKETS) != sockets) return false;
  }
  return true;
}

int main(void) {
  struct reader reader;
  int pairs[SOCKETS][2];
  int64_t tokens[SOCKETS];
  if (reader_start(&reader, 16, 2 * READER_READ_BYTES, 64, false)) return 2;
  for (int n = 0; n < SOCKETS; n++) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[n]) || (tokens[n] = reader_add(&reader, pairs[n][0])) < 0) return 2;
    if (send(pairs[n][1], "x", 1, 0) != 1) return 2;
  }
  told(&reader);
  if (!looked(&reader, 8000, SOCKETS)) return 2;
  told(&reader);
  atomic_fetch_add(&clock_ns, 30000);
  told(&reader);
  atomic_fetch_add(&clock_ns, 20000);
  told(&reader);
  if (!looked(&reader, 8000, SOCKETS)) return 2;
  struct reader_record record;
  static char room[READER_READ_BYTES];
  for (int n = 1; n < SOCKETS; n++) reader_remove(&reader, (uint64_t)tokens[n]);
  if (!looked(&reader, 20000, 1)) return 2;
  told(&reader);
  if (!looked(&reader, 8000, 1)) return 2;
  if (!reader_read(&reader, (uint64_t)tokens[0], room, &record) || record.length != 1) return 2;
  told(&reader);
  reader_gather(&reader, 1000);
  reader_stop(&reader);
  return 0;
}
