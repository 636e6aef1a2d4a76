/* Does a look of the loop end a wake-up that the thread did not wait for any more?  The clock is this program's
   (-Wl,--wrap=clock_gettime) and stands still, so that the loop has always just looked, and the thread leaves all to it.

   Prints whether the looks' descriptor is readable: before the wake-up, behind it, and behind a look. */
#define _GNU_SOURCE
#include "reader.h"

#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
  (void)clock;
  *now = (struct timespec){.tv_sec = 0};
  return 0;
}

static void told(const struct reader *reader) {
  struct pollfd any = {.fd = reader->epoll, .events = POLLIN};
  printf("%d\n", poll(&any, 1, 0));
}

int main(void) {
  struct reader reader;
  uint64_t tokens[READER_LOOK], one = 1;
  if (reader_start(&reader, 16, 2 * READER_READ_BYTES, 64, false)) return 2;
  if (reader_look(&reader, tokens, READER_LOOK) != 0) return 2;
  told(&reader);
  if (write(reader.control, &one, sizeof one) != sizeof one) return 2;
  told(&reader);
  if (reader_look(&reader, tokens, READER_LOOK) != 0) return 2;
  told(&reader);
  reader_stop(&reader);
  return 0;
}
