/* A thread that only reads: sockets in, records in a ring out.  It knows nothing of Python, so that a harness can hold it alone.

   One other thread ("the loop") adds and removes sockets and takes records.  It may read sockets itself, too, as long as it keeps
   up: that costs no wake-up of the thread, which looks now and then and reads what the loop has left.  Nobody waits for the
   other.  The thread allocates nothing. */
#ifndef AIPERF_READER_H
#define AIPERF_READER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Changes with what Python calls or gets; aiperf_reader/__init__.py has the same number. */
#define READER_VERSION 4

/* Of one read at most: what a segment brings is some hundred bytes, and a pause of the loop is bounded by the ring. */
#define READER_READ_BYTES 65536

#define READER_MARK_BYTES 16

/* Sockets that the loop reads at once. */
#define READER_LOOK 64

/* What a read brought.  token: of reader_add.  kernel_ns: stamp of the last segment (wall clock), 0 without one.  read_ns: monotonic
   clock before the read, or behind it where it is the only stamp.  at: the bytes' place, of reader_data.  length: bytes; 0 for the
   end; an errno, negative, for an error.  hidden: data segments in the read beyond the first.  empty_ns: monotonic clock; all of
   the read came later; 0 where nothing later is known than that the read before took all there was.  more: it was one of several
   segments that waited, and the next one can be read at once. */
struct reader_record {
  uint64_t token;
  int64_t kernel_ns, read_ns, empty_ns;
  uint64_t at;
  int32_t length;
  uint32_t hidden;
  bool more;
};

struct reader_slot;

/* The looks of the thread, or of the loop, for sockets that can be read.  began_ns: of the last one; before_ns: of the one before;
   0 where it may not have seen all of them. */
struct reader_looks {
  uint64_t count;
  int64_t began_ns, before_ns;
};

struct reader {
  /* The loop's */
  uint32_t generation;
  int64_t found_ns;                /* its last look that found a socket */
  int64_t gap_ns;                  /* mean time from one ready socket to the next */
  bool hurried;                    /* it has many reads to do */
  bool gathered;                   /* it has waited for more of them */
  /* The thread's */
  uint64_t written;                /* bytes so far */
  /* Of each its own */
  struct reader_looks looks[2];
  /* Between both */
  _Atomic uint64_t reads;
  _Atomic int64_t kept_up_ns;      /* the last look of the loop that saw all sockets with data, which it reads then */
  _Atomic uint64_t head, tail;     /* records written and taken */
  _Atomic uint64_t freed;          /* bytes taken */
  _Atomic bool told, paused, stopping;
  _Atomic uint64_t pauses, paused_ns;
  /* Fixed */
  uint64_t records, bytes;         /* size of the ring: powers of two */
  uint32_t slots;
  pid_t process;                   /* that has the thread: a fork of it shares the epoll */
  bool apart;                      /* read segments that wait together one by one */
  char mark[READER_MARK_BYTES];    /* stands once in each event of all streams; mark_length 0: nobody knows */
  size_t mark_length;
  /* epoll: readable while a socket is.  ready: readable while there are records.  control: wakes the thread */
  int epoll, ready, control;
  bool started;
  struct reader_record *ring;
  char *data;
  struct reader_slot *by_descriptor;
  pthread_t thread;
};

/* 0, or an errno.  records, bytes: powers of two; bytes: two reads at least.  apart: each segment that waits is a read, where many
   share a connection; it costs several calls of the system a segment.  A mark may be set behind it. */
int reader_start(struct reader *reader, uint64_t records, uint64_t bytes, uint32_t slots, bool apart);
/* Ends the thread and frees everything; the sockets stay open.  In a fork of the process it frees the fork's copy alone. */
void reader_stop(struct reader *reader);
/* From now on the thread reads the socket: its token, or an errno, negative. */
int64_t reader_add(struct reader *reader, int descriptor);
/* Behind this call the thread touches the descriptor no more, which may be closed then; its records are still in the ring.  In a
   fork of the process it changes nothing for the process. */
void reader_remove(struct reader *reader, uint64_t token);
/* Whether the socket is open and has nothing to read, and no read of it is in the ring or under way, nor its end. */
bool reader_quiet(struct reader *reader, uint64_t token);
/* Records that can be taken, *most* at most, of which reader_at gives the n-th; then so many are given back. */
uint64_t reader_waiting(struct reader *reader, uint64_t most);
/* The same without a look at *ready*, which stays readable. */
uint64_t reader_count(struct reader *reader, uint64_t most);
struct reader_record *reader_at(struct reader *reader, uint64_t n);
const char *reader_data(struct reader *reader, const struct reader_record *record);
void reader_taken(struct reader *reader, uint64_t count);
/* How long the loop may wait before it looks, so that a look finds several sockets; 0 where it should look now. */
int64_t reader_gathers(struct reader *reader);
/* Wait so long, in the loop's thread. */
void reader_gather(struct reader *reader, int64_t for_ns);
/* The loop's own reads, as long as it has taken all records.  Sockets that can be read, *most* at most (READER_LOOK or fewer). */
int reader_look(struct reader *reader, uint64_t *tokens, int most);
/* Read one of them into *room*, READER_READ_BYTES long; false where nothing is there, or the thread reads it or has read it. */
bool reader_read(struct reader *reader, uint64_t token, char *room, struct reader_record *record);

#endif
