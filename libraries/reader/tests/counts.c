/* Segments that come beside a read: is what the read hid still counted?  recvmsg is wrapped (-Wl,--wrap=recvmsg), so that the
   server speaks right before the read takes its bytes, or right behind it, in each combination, and never in between.

   usage: counts [loop].  loop: this thread reads, too, as soon as it can.  Prints a line for each read: segments that came before and behind the first read of its turn, bytes, which are as
   many segments, and how many of them the reader calls hidden. */
#define _GNU_SOURCE
#include "reader.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 3

static int near, far;
static int before, behind;

static int unread(void) {
  int bytes = 0;
  if (ioctl(near, FIONREAD, &bytes)) exit(2);
  return bytes;
}

/* A segment for each byte: the next one is sent when the one before has come. */
static void speak(int segments) {
  for (int n = 0; n < segments; n++) {
    int more = unread() + 1;
    if (send(far, "x", 1, 0) != 1) exit(2);
    while (unread() < more) sched_yield();
  }
}

ssize_t __real_recvmsg(int descriptor, struct msghdr *message, int flags);

ssize_t __wrap_recvmsg(int descriptor, struct msghdr *message, int flags) {
  if (flags & MSG_PEEK) return __real_recvmsg(descriptor, message, flags);
  speak(before);
  ssize_t count = __real_recvmsg(descriptor, message, flags);
  speak(behind);
  before = behind = 0;
  return count;
}

static struct reader_record next(struct reader *reader, bool here) {
  static char room[READER_READ_BYTES];
  struct pollfd ready[] = {{.fd = reader->ready, .events = POLLIN}, {.fd = reader->epoll, .events = POLLIN}};
  while (reader_waiting(reader, 1) == 0) {
    struct reader_record record;
    uint64_t token;
    if (here && reader_look(reader, &token, 1) && reader_read(reader, token, room, &record)) return record;
    poll(ready, here ? 2 : 1, 1000);
  }
  struct reader_record record = *reader_at(reader, 0);
  reader_taken(reader, 1);
  return record;
}

int main(int argc, char **argv) {
  bool here = argc > 1 && strcmp(argv[1], "loop") == 0;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int listening = socket(AF_INET, SOCK_STREAM, 0), at_once = 1;
  near = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listening, (struct sockaddr *)&address, size) || listen(listening, 1)) return 2;
  if (getsockname(listening, (struct sockaddr *)&address, &size) || connect(near, (struct sockaddr *)&address, size)) return 2;
  far = accept(listening, NULL, NULL);
  if (far < 0 || setsockopt(far, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once)) return 2;

  struct reader reader;
  if (reader_start(&reader, 16, 2 * READER_READ_BYTES, 64, true) || reader_add(&reader, near) < 0) return 2;
  for (int turn = 0; turn < (MOST + 1) * (MOST + 1); turn++) {
    int first = turn / (MOST + 1), late = turn % (MOST + 1);
    before = first, behind = late;
    if (send(far, "x", 1, 0) != 1) return 2;
    for (int left = 1 + first + late; left > 0;) {
      struct reader_record record = next(&reader, here);
      printf("%d %d %d %u\n", first, late, record.length, record.hidden);
      left -= record.length;
    }
  }
  reader_stop(&reader);
  return 0;
}
