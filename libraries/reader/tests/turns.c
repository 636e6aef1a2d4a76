/* Random turns of the reader's life, for sanitizers: sockets open, speak, end and close while a thread reads them, a small ring
   fills, and numbers are used again.  usage: turns SEED COUNT.  Exits with 1 and a sentence where a stream has other bytes. */
#define _GNU_SOURCE
#include "reader.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOCKETS 24
#define SLOTS 256

/* near, far: -1 while not open.  sent, taken: bytes; the n-th byte follows from n and the token. */
struct stream {
  int near, far;
  uint64_t token, sent, taken;
  bool over;
};

static struct stream streams[SOCKETS];
static struct reader reader;
static int listening;

static char byte_of(uint64_t token, uint64_t n) { return (char)(n * 31 + token + (token >> 32)); }

static void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

/* TCP, whose segments are counted and which can be reset. */
static void connect_both(int both[2]) {
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  if (getsockname(listening, (struct sockaddr *)&address, &size)) fail("no address");
  both[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(both[0], (struct sockaddr *)&address, size)) fail("no connection");
  both[1] = accept4(listening, NULL, NULL, SOCK_NONBLOCK);
  char byte = 0;
  /* What follows is acknowledged late: until then the system puts no segments together, and they are read apart. */
  if (both[1] < 0 || send(both[0], "?", 1, 0) != 1 || recv(both[1], &byte, 1, 0) != 1) fail("no connection");
}

static void open_stream(struct stream *each) {
  int both[2];
  if (random() % 4 == 0) connect_both(both);
  else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both)) fail("no sockets");
  int64_t token = reader_add(&reader, both[0]);
  if (token < 0) fail("a socket can't be added");
  *each = (struct stream){.near = both[0], .far = both[1], .token = (uint64_t)token};
}

static void close_far(struct stream *each) {
  if (each->far >= 0) close(each->far);
  each->far = -1;
}

static void reset_far(struct stream *each) {
  struct linger at_once = {.l_onoff = 1};
  if (each->far >= 0) setsockopt(each->far, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close_far(each);
}

static void close_stream(struct stream *each) {
  reader_remove(&reader, each->token);
  close(each->near);
  close_far(each);
  each->near = -1;
}

static void speak(struct stream *each) {
  char bytes[4096];
  size_t count = 1 + (size_t)random() % (random() % 4 ? 64 : sizeof bytes);  /* short ones are read apart */
  if (each->far < 0) return;
  for (size_t n = 0; n < count; n++) bytes[n] = byte_of(each->token, each->sent + n);
  ssize_t sent = send(each->far, bytes, count, MSG_NOSIGNAL);
  if (sent > 0) each->sent += (uint64_t)sent;
}

static void check(const struct reader_record *record, const char *data) {
  for (int n = 0; n < SOCKETS; n++) {
    struct stream *each = &streams[n];
    if (each->near < 0 || each->token != record->token) continue;
    if (each->over) fail("a record behind the end");
    if (record->empty_ns > record->read_ns) fail("a socket that was seen empty behind its read");
    if (record->length <= 0) {
      if (record->length == 0 ? each->taken != each->sent : record->length != -ECONNRESET) fail("the end before all bytes");
      each->over = true;
    }
    for (int32_t place = 0; place < record->length; place++)
      if (data[place] != byte_of(each->token, each->taken++)) fail("bytes of another stream, or in another order");
  }
}

static void take(uint64_t most) {
  uint64_t count = reader_waiting(&reader, most);
  for (uint64_t n = 0; n < count; n++) check(reader_at(&reader, n), reader_data(&reader, reader_at(&reader, n)));
  reader_taken(&reader, count);
}

/* The loop's own reads, beside those of the thread. */
static void read_here(int most) {
  static char room[READER_READ_BYTES];
  uint64_t tokens[READER_LOOK];
  take(16);
  int found = reader_look(&reader, tokens, most);
  for (int n = 0; n < found; n++) {
    struct reader_record record = {.more = true};
    while (record.more && reader_read(&reader, tokens[n], room, &record)) check(&record, room);
  }
}

static void turn(struct stream *each) {
  if (each->near < 0) {
    open_stream(each);
    return;
  }
  switch (random() % 16) {
    case 0: close_stream(each); break;
    case 1: close_far(each); break;
    case 2: case 3: case 4: take(1 + (uint64_t)random() % 16); break;
    case 5: reader_quiet(&reader, each->token); break;
    case 6: if (random() % 4 == 0) reset_far(each); break;
    case 7: case 8: read_here(1 + (int)(random() % READER_LOOK)); break;
    default: speak(each);
  }
}

static bool any_open(void) {
  for (int n = 0; n < SOCKETS; n++)
    if (streams[n].near >= 0 && !streams[n].over) return true;
  return false;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  srandom((unsigned)atoi(argv[1]));
  struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  listening = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listening, (struct sockaddr *)&local, sizeof local) || listen(listening, SOCKETS)) fail("nobody listens");
  if (reader_start(&reader, 16, 2 * READER_READ_BYTES, SLOTS, atoi(argv[1]) % 2)) fail("no reader");
  if (atoi(argv[1]) % 3) reader.mark[0] = 'x', reader.mark_length = 1;
  for (int n = 0; n < SOCKETS; n++) streams[n].near = streams[n].far = -1;
  for (long turns = atol(argv[2]); turns > 0; turns--) turn(&streams[random() % SOCKETS]);
  for (int n = 0; n < SOCKETS; n++) close_far(&streams[n]);
  while (any_open()) take(16);
  for (int n = 0; n < SOCKETS; n++)
    if (streams[n].near >= 0) close_stream(&streams[n]);
  reader_stop(&reader);
  return 0;
}
