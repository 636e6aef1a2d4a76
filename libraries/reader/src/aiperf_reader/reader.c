#define _GNU_SOURCE
#include "reader.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_TIMESTAMPNS
#define SO_TIMESTAMPNS 35
#endif
#ifndef SCM_TIMESTAMPNS
#define SCM_TIMESTAMPNS SO_TIMESTAMPNS
#endif

/* Of an eventfd, which is no socket's: generations begin with 1. */
#define CONTROL 0
#define EVENTS 256
/* Reads until the loop is woken: a wake-up for each costs as much as the read, one for all comes late. */
#define TOLD_AT_ONCE 16
/* Between two looks of the thread.  The rest doubles while the loop leaves nothing to read, and is longer where a look found much:
   beside a server that never pauses, the loop needs a core, too, and a read takes 3 to 6 us.  After some rests without any read, by
   whomever, the thread sleeps until a socket can be read. */
#define REST_LEAST_NS 200000
#define REST_MOST_NS 1000000
#define REST_PER_READ_NS 24000
#define REST_BEHIND_READS_NS 2000000
#define QUIET_RESTS 8
/* For so long behind a look of the loop the thread leaves the sockets to it, also where the loop has more to read than it takes in
   one turn: with a server that never pauses, the thread takes the core that the server needs (0.81 of the chunks/s; now 0.99). */
#define KEPT_UP_NS 100000
/* Segments that wait together are read one by one, up to so many and so many bytes; behind more the reader is late anyway, and
   one read of all costs least. */
#define APART_MOST 32
#define APART_BYTES 16384
/* The loop is hurried, and saves what it can, where its look finds so many sockets, or comes so soon behind one that found some. */
#define CROWD 4
#define SOON_NS 50000
/* Where a socket is ready every DENSE_NS or sooner, the loop looks GATHER_NS behind its look before, and not at once: a look that
   finds one socket costs the loop a turn (5 us) and the server a wake-up (10 us), and each chunk waits in a socket of its own.
   Stamps are the system's, and not later for it.  64 streams as fast as they come: 1.05 of the chunks/s, with as few merged. */
#define DENSE_NS 12000
#define GATHER_NS 40000
#define GAPS_KEPT 16
#define LONGEST_GAP_NS 1000000
#define STACK_BYTES (1u << 18)

/* States of a slot, in the low bits of its word; above them the generation of the socket that has the number now.  A number is
   closed and used again within one batch of events: an event of the earlier socket has another generation and is dropped, and
   nobody closes a descriptor between the look at its slot and the read. */
enum { FREE, OPEN, READING, ENDED };
/* Who looks and reads. */
enum { THREAD, LOOP };
#define WORD(generation, state) (((uint64_t)(generation) << 2) | (state))

struct reader_slot {
  _Atomic uint64_t word;
  _Atomic uint32_t published;     /* records in the ring so far, by the thread */
  uint32_t taken;                 /* records taken so far, by the loop */
  uint64_t bytes;                 /* read so far, as the kernel counts them */
  uint32_t segments;              /* data segments read so far, at least */
  uint64_t looks[2];              /* the last look of each that found the socket readable */
  int64_t read_ns;                /* of the read before */
  _Atomic int64_t added_ns;       /* from when on looks see it */
  uint16_t apart[APART_MOST];     /* bytes of waiting segments that are read one by one */
  uint8_t apart_next, apart_end;  /* of these */
  uint8_t apart_hidden;           /* segments that the system has put together with these, at most */
  uint16_t usual;                 /* bytes of a segment, by the one before */
  bool uncountable;               /* the system counts no segments of it */
};

static uint32_t descriptor_of(uint64_t token) { return (uint32_t)token; }
static uint32_t generation_of(uint64_t token) { return (uint32_t)(token >> 32); }

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void bump(int eventfd) {
  uint64_t one = 1;
  while (write(eventfd, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

static void drain(int eventfd) {
  uint64_t count;
  while (read(eventfd, &count, sizeof count) < 0 && errno == EINTR) {
  }
}

/* One write for all records until the loop looks again. */
static void tell(struct reader *reader) {
  if (!atomic_exchange(&reader->told, true)) bump(reader->ready);
}

static bool has_room(struct reader *reader) {
  uint64_t head = atomic_load_explicit(&reader->head, memory_order_relaxed);
  return head - atomic_load(&reader->tail) < reader->records &&
         reader->written - atomic_load(&reader->freed) + READER_READ_BYTES <= reader->bytes;
}

/* The ring is full: wait until the loop has taken something.  The kernel's buffers fill meanwhile, and the server feels it. */
static void wait_for_room(struct reader *reader) {
  int64_t began = now_ns();
  atomic_fetch_add(&reader->pauses, 1);
  while (!atomic_load(&reader->stopping)) {
    atomic_store(&reader->paused, true);
    if (has_room(reader)) break;
    struct pollfd control = {.fd = reader->control, .events = POLLIN};
    if (poll(&control, 1, -1) > 0) drain(reader->control);
  }
  atomic_store(&reader->paused, false);
  atomic_fetch_add(&reader->paused_ns, (uint64_t)(now_ns() - began));
}

/* What the kernel counts of a socket: data segments that have come, and their bytes, both under the socket's lock. */
struct counts {
  uint64_t bytes;
  uint32_t segments;
};

static bool count_arrived(int descriptor, struct counts *counts) {
  struct tcp_info info;
  socklen_t size = sizeof info;
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) < 0) return false;
  if (size < offsetof(struct tcp_info, tcpi_data_segs_in) + sizeof info.tcpi_data_segs_in) return false;
  *counts = (struct counts){info.tcpi_bytes_received, info.tcpi_data_segs_in};
  return true;
}

/* Data segments of a read beyond its first one; *before*: the counts before the read, NULL where there are none.

   The kernel counts what has come, which is what was read only where bytes that came are bytes that were read.  That holds of the
   counts before the read if nothing came between them and the read, and of those behind the read if nothing came since.  One of
   the two nearly always holds, and the segments are known.  Where segments came on both sides, at least one of them is in the read
   and at least one is not; as where nobody counted before.  A bound that is wider than one number makes this read's count, and the
   next one's, too high, never too low.  The end of the stream and an urgent byte count as bytes and are not read: an empty socket
   sets the bytes right. */
static uint32_t hidden_segments(struct reader_slot *slot, int descriptor, const struct counts *before) {
  struct counts behind;
  uint32_t known = slot->segments;  /* read until now, at least */
  uint32_t least = known + 1, most;
  if (before != NULL && before->bytes == slot->bytes) {
    least = most = before->segments;
  } else if (!count_arrived(descriptor, &behind)) {
    return 0;
  } else {
    int unread = 0;
    most = behind.segments;
    if (behind.bytes == slot->bytes || (ioctl(descriptor, FIONREAD, &unread) == 0 && unread == 0)) {
      least = most;
      slot->bytes = behind.bytes;
    } else if (slot->bytes < behind.bytes && (before == NULL || before->bytes < slot->bytes)) {
      least = before == NULL ? known + 1 : before->segments + 1;
      most = behind.segments - 1;
    }
  }
  /* While the loop writes to the socket, a segment is counted before its bytes are: the numbers may contradict each other. */
  if ((int32_t)(most - least) < 0) least = most;
  if ((int32_t)(most - known) <= 0) return 0;
  slot->segments = least;
  return most - known - 1;
}

/* Whether a read may be taken for one segment without asking the system, which costs a tenth of a read: the loop has many to read, and
   this one has one event at most, and neither a head nor the end of another event before it, which may have come earlier.  What is
   left is an event whose pieces came one by one: it is complete with the last, whose stamp the read has.  The next count is too high
   then, never too low. */
static bool is_plain(const struct reader *reader, const char *data, size_t length) {
  const char *first = memmem(data, length, reader->mark, reader->mark_length);
  if (first == NULL) return true;
  size_t before = (size_t)(first - data), rest = length - before - reader->mark_length;
  if (memmem(data, before, "\n\n", 2) != NULL || memmem(data, before, "\n\r\n", 3) != NULL) return false;
  return memmem(first + reader->mark_length, rest, reader->mark, reader->mark_length) == NULL;
}

static int64_t stamp_of(struct msghdr *message) {
  for (struct cmsghdr *each = CMSG_FIRSTHDR(message); each != NULL; each = CMSG_NXTHDR(message, each)) {
    if (each->cmsg_level == SOL_SOCKET && each->cmsg_type == SCM_TIMESTAMPNS) {
      struct timespec stamp;
      memcpy(&stamp, CMSG_DATA(each), sizeof stamp);
      return stamp.tv_sec * 1000000000LL + stamp.tv_nsec;
    }
  }
  return 0;
}

/* Stamp of the segment that has the *length*-th byte from here on; 0 where there is none.  Nothing is taken or copied. */
static int64_t stamp_at(int descriptor, char *place, size_t length) {
  _Alignas(struct cmsghdr) char control[128];
  struct iovec room = {.iov_base = place, .iov_len = length};
  struct msghdr message = {.msg_iov = &room, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  ssize_t count = recvmsg(descriptor, &message, MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC);
  return count == (ssize_t)length ? stamp_of(&message) : 0;
}

/* Bytes of the segment with *stamp* that begins at *start*; the *end*-th byte is of another one.  *usual*: a guess. */
static uint32_t length_of(int descriptor, char *place, int64_t stamp, uint32_t start, uint32_t end, uint32_t usual) {
  uint32_t within = start + 1, beyond = end, step = 1, place_at = start + usual;
  while (beyond - within > 1) {
    if (place_at <= within || place_at >= beyond) place_at = within + (beyond - within) / 2;
    bool is_within = stamp_at(descriptor, place, place_at) == stamp;
    if (is_within) within = place_at;
    else beyond = place_at;
    place_at = is_within ? place_at + step : place_at - step;  /* the guess is nearly right, or not at all */
    step *= 2;
  }
  return within - start;
}

/* Find segments that wait in front of the last one, so that each is read with its own stamp: a read that takes several has that of
   the last.  The last one may still grow.  *before*: what has come.  Older systems stamp whole segments alone, and say nothing of
   the first byte: all are read together. */
static void set_apart(struct reader_slot *slot, int descriptor, char *place, const struct counts *before) {
  uint32_t waiting = before->segments - slot->segments, bytes = (uint32_t)(before->bytes - slot->bytes), start = 0;
  slot->apart_next = slot->apart_end = 0;
  if (waiting < 2 || waiting > APART_MOST || before->bytes - slot->bytes > APART_BYTES) return;
  int64_t last = stamp_at(descriptor, place, bytes), stamp;
  while (last && (stamp = stamp_at(descriptor, place, start + 1)) != last) {
    uint32_t length = stamp && slot->apart_end < waiting - 1 ? length_of(descriptor, place, stamp, start, bytes, slot->usual) : 0;
    if (length == 0 || start + length == bytes - 1) {  /* it grew meanwhile, or the counts are others than what is there */
      slot->apart_end = 0;
      return;
    }
    slot->apart[slot->apart_end++] = slot->usual = (uint16_t)length;
    start += length;
  }
  slot->apart_hidden = (uint8_t)(waiting - slot->apart_end - 1);
}

/* When the socket was last seen empty, if a look between this one and the read before has seen it so: a look finds every socket
   with data. */
static int64_t seen_empty(const struct reader_looks *looks, uint64_t *found, const struct reader_slot *slot) {
  bool found_before = *found + 1 == looks->count;
  *found = looks->count;
  bool since = atomic_load(&slot->added_ns) <= looks->before_ns && slot->read_ns < looks->before_ns;
  return since && !found_before ? looks->before_ns : 0;
}

/* One read of a ready socket, by the thread or the loop, which *keeps* the socket until `leave`; false where nothing was read. */
static bool read_once(struct reader *reader, int who, uint64_t token, char *place, struct reader_record *record) {
  int descriptor = (int)descriptor_of(token);
  uint32_t generation = generation_of(token);
  struct reader_slot *slot = &reader->by_descriptor[descriptor];
  uint64_t word = WORD(generation, OPEN);
  if (!atomic_compare_exchange_strong(&slot->word, &word, WORD(generation, READING))) return false;

  _Alignas(struct cmsghdr) char control[128];
  struct iovec room = {.iov_base = place, .iov_len = READER_READ_BYTES};
  struct msghdr message = {.msg_iov = &room, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  int64_t empty_ns = seen_empty(&reader->looks[who], &slot->looks[who], slot);
  ssize_t count = -1;
  int error = EAGAIN;
  int64_t read_ns = 0;
  struct counts counts;
  const struct counts *before = NULL;
  bool apart = false, hurried = who == LOOP && reader->hurried && reader->mark_length > 0;
  /* What the thread has read comes before what the loop reads. */
  if (who == THREAD || atomic_load(&slot->published) == slot->taken) {
    /* Before the read: what it leaves came later.  Behind it, another program may have had the core meanwhile. */
    if (slot->apart_next == slot->apart_end && !hurried && !slot->uncountable) {
      before = count_arrived(descriptor, &counts) ? &counts : NULL;
      slot->uncountable = before == NULL;
      if (before != NULL && reader->apart) set_apart(slot, descriptor, place, before);
    }
    apart = slot->apart_next < slot->apart_end;
    if (apart) room.iov_len = slot->apart[slot->apart_next++];
    read_ns = now_ns();
    count = recvmsg(descriptor, &message, MSG_DONTWAIT);
    error = count < 0 ? errno : 0;
  }
  if (error == EAGAIN || error == EINTR) {
    atomic_store(&slot->word, WORD(generation, OPEN));
    return false;
  }
  int64_t kernel_ns = count > 0 ? stamp_of(&message) : 0;
  *record = (struct reader_record){
      .token = token,
      .kernel_ns = kernel_ns,
      .read_ns = kernel_ns ? read_ns : now_ns(),  /* the only stamp: not before the bytes */
      .empty_ns = empty_ns,
      .length = count < 0 ? -error : (int32_t)count,
      .more = apart,
  };
  if (count > 0) slot->bytes += (uint64_t)count;
  if (count > 0 && (apart || (hurried && is_plain(reader, place, (size_t)count)))) {
    slot->segments++;
    record->hidden = apart ? slot->apart_hidden : 0;
  } else if (count > 0 && !slot->uncountable) {
    record->hidden = hidden_segments(slot, descriptor, before);
  }
  slot->read_ns = read_ns;
  if (count <= 0) epoll_ctl(reader->epoll, EPOLL_CTL_DEL, descriptor, NULL);
  atomic_fetch_add_explicit(&reader->reads, 1, memory_order_relaxed);
  return true;
}

static void leave(struct reader *reader, const struct reader_record *record) {
  struct reader_slot *slot = &reader->by_descriptor[descriptor_of(record->token)];
  atomic_store(&slot->word, WORD(generation_of(record->token), record->length > 0 ? OPEN : ENDED));
}

/* A read into the ring, which has room; whether the socket has more. */
static bool read_ahead(struct reader *reader, uint64_t token) {
  char *place = reader->data + (reader->written & (reader->bytes - 1));  /* the ring's end has slack behind it */
  struct reader_record record;
  if (!read_once(reader, THREAD, token, place, &record)) return false;
  uint64_t head = atomic_load_explicit(&reader->head, memory_order_relaxed);
  record.at = reader->written;
  reader->ring[head & (reader->records - 1)] = record;
  if (record.length > 0) reader->written += (uint64_t)record.length;
  atomic_fetch_add(&reader->by_descriptor[descriptor_of(token)].published, 1);
  atomic_store(&reader->head, head + 1);
  leave(reader, &record);
  return record.more;
}

static int look(struct reader *reader, int who, struct epoll_event *events, int most) {
  struct reader_looks *looks = &reader->looks[who];
  looks->before_ns = looks->began_ns;
  looks->began_ns = now_ns();
  looks->count++;
  int count = epoll_wait(reader->epoll, events, most, 0);
  if (count == most) looks->began_ns = 0;  /* there may be more */
  return count;
}

/* Reads all that the thread's look has found of a socket; *told*: records of which the loop knows. */
static void read_all(struct reader *reader, uint64_t token, uint64_t *told) {
  bool more = true;
  while (more) {
    uint64_t head = atomic_load_explicit(&reader->head, memory_order_relaxed);
    bool room = has_room(reader);
    if (head != *told && (!room || head - *told >= TOLD_AT_ONCE)) {
      tell(reader);
      *told = head;
    }
    if (!room) wait_for_room(reader);
    if (atomic_load(&reader->stopping)) return;
    more = read_ahead(reader, token);
  }
}

/* The thread looks, and reads all that it finds. */
static void look_ahead(struct reader *reader) {
  struct epoll_event events[EVENTS];
  int count = look(reader, THREAD, events, EVENTS);
  uint64_t told = atomic_load_explicit(&reader->head, memory_order_relaxed);
  for (int n = 0; n < count; n++) {
    if (events[n].data.u64 == CONTROL) {
      drain(reader->control);
      continue;
    }
    read_all(reader, events[n].data.u64, &told);
    if (atomic_load(&reader->stopping)) break;
  }
  if (atomic_load_explicit(&reader->head, memory_order_relaxed) != told) tell(reader);
}

/* How long the thread rests behind a look that read so many sockets; *before_ns*: how long it rested before. */
static int64_t rest_behind(uint64_t reads, int64_t before_ns) {
  if (reads == 0) return 2 * before_ns < REST_MOST_NS ? 2 * before_ns : REST_MOST_NS;
  if (reads > REST_BEHIND_READS_NS / REST_PER_READ_NS) return REST_BEHIND_READS_NS;
  int64_t rest_ns = (int64_t)reads * REST_PER_READ_NS;
  return rest_ns > REST_LEAST_NS ? rest_ns : REST_LEAST_NS;
}

static void *run(void *argument) {
  struct reader *reader = argument;
  int64_t rest_ns = REST_LEAST_NS;
  uint64_t reads = 0;
  int quiet = 0;
  prctl(PR_SET_TIMERSLACK, 1);
  while (!atomic_load(&reader->stopping)) {
    uint64_t head = atomic_load_explicit(&reader->head, memory_order_relaxed);
    if (now_ns() - atomic_load_explicit(&reader->kept_up_ns, memory_order_relaxed) > KEPT_UP_NS) look_ahead(reader);
    rest_ns = rest_behind(atomic_load_explicit(&reader->head, memory_order_relaxed) - head, rest_ns);
    uint64_t all = atomic_load_explicit(&reader->reads, memory_order_relaxed);
    quiet = all == reads ? quiet + 1 : 0;
    reads = all;
    if (quiet > QUIET_RESTS) {
      struct pollfd any = {.fd = reader->epoll, .events = POLLIN};
      poll(&any, 1, -1);
      quiet = 0, rest_ns = REST_LEAST_NS;
    }
    nanosleep(&(struct timespec){.tv_nsec = rest_ns}, NULL);
  }
  return NULL;
}

static void *mapped(size_t size) {
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

static void release(struct reader *reader) {
  if (reader->epoll >= 0) close(reader->epoll);
  if (reader->ready >= 0) close(reader->ready);
  if (reader->control >= 0) close(reader->control);
  if (reader->ring) munmap(reader->ring, reader->records * sizeof *reader->ring);
  if (reader->data) munmap(reader->data, reader->bytes + READER_READ_BYTES);
  if (reader->by_descriptor) munmap(reader->by_descriptor, reader->slots * sizeof *reader->by_descriptor);
  reader->epoll = reader->ready = reader->control = -1;
  reader->ring = NULL, reader->data = NULL, reader->by_descriptor = NULL;
}

/* The thread; no signal of the program's is taken in it.  Its stack is small: `ulimit -v` counts it. */
static int begin(struct reader *reader) {
  sigset_t all, before;
  pthread_attr_t settings;
  pthread_attr_init(&settings);
  pthread_attr_setstacksize(&settings, STACK_BYTES);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&reader->thread, &settings, run, reader);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&settings);
  reader->started = error == 0;
  return error;
}

int reader_start(struct reader *reader, uint64_t records, uint64_t bytes, uint32_t slots, bool apart) {
  *reader = (struct reader){.records = records, .bytes = bytes, .slots = slots, .apart = apart, .ready = -1, .control = -1};
  reader->gap_ns = LONGEST_GAP_NS;
  reader->process = getpid();
  reader->epoll = epoll_create1(EPOLL_CLOEXEC);
  reader->ready = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  reader->control = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  reader->ring = mapped(records * sizeof *reader->ring);
  reader->data = mapped(bytes + READER_READ_BYTES);
  reader->by_descriptor = mapped(slots * sizeof *reader->by_descriptor);
  struct epoll_event wanted = {.events = EPOLLIN, .data.u64 = CONTROL};
  bool made = reader->epoll >= 0 && reader->ready >= 0 && reader->control >= 0 && reader->ring && reader->data &&
              reader->by_descriptor && epoll_ctl(reader->epoll, EPOLL_CTL_ADD, reader->control, &wanted) == 0;
  int error = made ? begin(reader) : errno;
  if (error) release(reader);
  return error;
}

void reader_stop(struct reader *reader) {
  if (reader->started && getpid() == reader->process) {
    atomic_store(&reader->stopping, true);
    bump(reader->control);
    pthread_join(reader->thread, NULL);
  }
  reader->started = false;
  release(reader);
}

int64_t reader_add(struct reader *reader, int descriptor) {
  if (descriptor < 0) return -EBADF;
  if ((uint32_t)descriptor >= reader->slots) return -EMFILE;
  if (++reader->generation >= 1u << 30) reader->generation = 1;
  uint32_t generation = reader->generation;
  struct reader_slot *slot = &reader->by_descriptor[descriptor];
  slot->segments = slot->taken = 0;
  slot->bytes = slot->looks[THREAD] = slot->looks[LOOP] = 0;
  slot->read_ns = 0;
  slot->apart_next = slot->apart_end = 0;
  slot->uncountable = false;
  atomic_store(&slot->added_ns, INT64_MAX);
  atomic_store(&slot->published, 0);
  atomic_store(&slot->word, WORD(generation, OPEN));
  uint64_t token = (uint64_t)generation << 32 | (uint32_t)descriptor;
  struct epoll_event wanted = {.events = EPOLLIN, .data.u64 = token};
  if (epoll_ctl(reader->epoll, EPOLL_CTL_ADD, descriptor, &wanted) < 0) {
    int error = errno;
    atomic_store(&slot->word, WORD(0, FREE));
    return -error;
  }
  atomic_store(&slot->added_ns, now_ns());
  return (int64_t)token;
}

void reader_remove(struct reader *reader, uint64_t token) {
  struct reader_slot *slot = &reader->by_descriptor[descriptor_of(token)];
  uint64_t open = WORD(generation_of(token), OPEN), ended = WORD(generation_of(token), ENDED);
  for (;;) {
    uint64_t word = atomic_load(&slot->word);
    if (word != open && word != ended) {
      if (word != WORD(generation_of(token), READING)) return;  /* removed before */
      sched_yield();  /* a read takes some microseconds */
    } else if (atomic_compare_exchange_strong(&slot->word, &word, WORD(0, FREE))) {
      break;
    }
  }
  if (getpid() == reader->process) epoll_ctl(reader->epoll, EPOLL_CTL_DEL, (int)descriptor_of(token), NULL);
}

bool reader_quiet(struct reader *reader, uint64_t token) {
  struct reader_slot *slot = &reader->by_descriptor[descriptor_of(token)];
  struct pollfd readable = {.fd = (int)descriptor_of(token), .events = POLLIN};
  if (poll(&readable, 1, 0) != 0) return false;  /* before the look at the slot: what the thread takes behind it shows there */
  return atomic_load(&slot->word) == WORD(generation_of(token), OPEN) && atomic_load(&slot->published) == slot->taken;
}

uint64_t reader_waiting(struct reader *reader, uint64_t most) {
  uint64_t tail = atomic_load_explicit(&reader->tail, memory_order_relaxed);
  if (atomic_load(&reader->head) - tail > most) return most;  /* the rest is still told: two calls of the system less */
  drain(reader->ready);
  atomic_store(&reader->told, false);  /* before the look: what comes behind it is told again */
  uint64_t waiting = atomic_load(&reader->head) - tail;
  return waiting < most ? waiting : most;
}

uint64_t reader_count(struct reader *reader, uint64_t most) {
  uint64_t waiting = atomic_load(&reader->head) - atomic_load_explicit(&reader->tail, memory_order_relaxed);
  return waiting < most ? waiting : most;
}

struct reader_record *reader_at(struct reader *reader, uint64_t n) {
  return &reader->ring[(atomic_load_explicit(&reader->tail, memory_order_relaxed) + n) & (reader->records - 1)];
}

const char *reader_data(struct reader *reader, const struct reader_record *record) {
  return reader->data + (record->at & (reader->bytes - 1));
}

void reader_taken(struct reader *reader, uint64_t count) {
  uint64_t bytes = atomic_load_explicit(&reader->freed, memory_order_relaxed);
  for (uint64_t n = 0; n < count; n++) {
    const struct reader_record *record = reader_at(reader, n);
    struct reader_slot *slot = &reader->by_descriptor[descriptor_of(record->token)];
    if (atomic_load(&slot->word) >> 2 == generation_of(record->token)) slot->taken++;
    if (record->length > 0) bytes += (uint64_t)record->length;
  }
  atomic_store(&reader->freed, bytes);
  uint64_t tail = atomic_fetch_add(&reader->tail, count) + count;
  if (atomic_load(&reader->paused)) bump(reader->control);
  if (atomic_load(&reader->head) != tail) tell(reader);
}

int64_t reader_gathers(struct reader *reader) {
  if (reader->gap_ns >= DENSE_NS) return 0;
  int64_t at_ns = now_ns(), left_ns = reader->found_ns + GATHER_NS - at_ns;
  if (left_ns <= 0) return 0;
  atomic_store_explicit(&reader->kept_up_ns, at_ns, memory_order_relaxed);  /* the loop is behind nothing */
  return left_ns;
}

void reader_gather(struct reader *reader, int64_t for_ns) {
  if (!reader->gathered) prctl(PR_SET_TIMERSLACK, 1);  /* of the loop's thread; 50 us, as usual, would be another wait */
  reader->gathered = true;
  nanosleep(&(struct timespec){.tv_nsec = for_ns}, NULL);
}

/* The mean time from one ready socket to the next, over the last looks that found any. */
static void note_gap(struct reader *reader, int64_t since_ns, int count) {
  int64_t gap_ns = since_ns / count < LONGEST_GAP_NS ? since_ns / count : LONGEST_GAP_NS;
  reader->gap_ns += (gap_ns - reader->gap_ns) / GAPS_KEPT;
}

int reader_look(struct reader *reader, uint64_t *tokens, int most) {
  struct epoll_event events[READER_LOOK];
  int count = look(reader, LOOP, events, most), found = 0;
  int64_t began_ns = reader->looks[LOOP].began_ns;
  if (began_ns == 0) began_ns = now_ns();
  reader->hurried = count >= CROWD || began_ns - reader->found_ns < SOON_NS;
  if (count > 0) {
    note_gap(reader, began_ns - reader->found_ns, count);
    reader->found_ns = began_ns;
  }
  atomic_store_explicit(&reader->kept_up_ns, began_ns, memory_order_relaxed);
  for (int n = 0; n < count; n++) {
    if (events[n].data.u64 != CONTROL) tokens[found++] = events[n].data.u64;
    /* The thread did not wait any more when it was woken, and looks at nothing while the loop keeps up. */
    else if (!atomic_load(&reader->paused)) drain(reader->control);
  }
  return found;
}

bool reader_read(struct reader *reader, uint64_t token, char *room, struct reader_record *record) {
  if (!read_once(reader, LOOP, token, room, record)) return false;
  if (record->length > 0 && record->kernel_ns == 0) reader->gap_ns = LONGEST_GAP_NS;  /* the read is its stamp: nothing may wait */
  leave(reader, record);
  return true;
}
