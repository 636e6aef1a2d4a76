/* The reader for Python, with the stable ABI: one file for all versions from 3.11. */
#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <string.h>

#include "reader.h"

/* CRC-32 of module.c, reader.c and reader.h, one behind the other, by compiled.py; 0 where nobody said it. */
#ifndef READER_SOURCES
#define READER_SOURCES 0
#endif
#define RECORDS (1u << 14)
#define BYTES (1u << 22)
#define MOST_SLOTS (1u << 20)
/* As aiperf.sdk.transport has them: int64 in the journal. */
#define HIDDEN_BITS 20
#define HIDDEN_MOST ((1u << HIDDEN_BITS) - 1)
#define AGE_MOST (1ull << (62 - HIDDEN_BITS))

typedef struct {
  PyObject_HEAD
  struct reader reader;
  char room[READER_READ_BYTES];  /* of the loop's own reads */
} Reader;

static PyObject *failed(int error) {
  errno = error;
  return PyErr_SetFromErrno(PyExc_OSError);
}

static bool stopped(Reader *self) {
  if (!self->reader.started) PyErr_SetString(PyExc_ValueError, "the reader is closed");
  return !self->reader.started;
}

static PyObject *made(PyTypeObject *type, PyObject *positional, PyObject *named) {
  static char *names[] = {"descriptors", "records", "size", "apart", "mark", NULL};
  unsigned int descriptors = 0, records = RECORDS, bytes = BYTES;
  int apart = 0;
  const char *mark = "";
  Py_ssize_t mark_length = 0;
  if (!PyArg_ParseTupleAndKeywords(positional, named, "I|IIpy#", names, &descriptors, &records, &bytes, &apart, &mark, &mark_length))
    return NULL;
  if (records == 0 || (records & (records - 1)) || (bytes & (bytes - 1)) || bytes < 2 * READER_READ_BYTES) {
    PyErr_Format(PyExc_ValueError, "records and size are powers of two, size at least %d", 2 * READER_READ_BYTES);
    return NULL;
  }
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  Reader *self = (Reader *)allocate(type, 0);
  if (self == NULL) return NULL;
  if (descriptors > MOST_SLOTS) descriptors = MOST_SLOTS;
  int error = reader_start(&self->reader, records, bytes, descriptors, apart != 0);
  if (mark_length <= READER_MARK_BYTES) {  /* a longer one is not looked for */
    memcpy(self->reader.mark, mark, (size_t)mark_length);
    self->reader.mark_length = (size_t)mark_length;
  }
  if (error == 0) return (PyObject *)self;
  Py_DECREF(self);
  return failed(error);
}

static void stop(Reader *self) {
  if (!self->reader.started) return;
  Py_BEGIN_ALLOW_THREADS
  reader_stop(&self->reader);
  Py_END_ALLOW_THREADS
}

static void destroyed(Reader *self) {
  PyTypeObject *type = Py_TYPE((PyObject *)self);
  stop(self);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

static PyObject *closed(Reader *self, PyObject *none) {
  stop(self);
  Py_RETURN_NONE;
}

static PyObject *fileno_of(Reader *self, PyObject *none) { return stopped(self) ? NULL : PyLong_FromLong(self->reader.ready); }

static PyObject *sockets_of(Reader *self, PyObject *none) { return stopped(self) ? NULL : PyLong_FromLong(self->reader.epoll); }

static PyObject *added(Reader *self, PyObject *descriptor) {
  long number = PyLong_AsLong(descriptor);
  if ((number == -1 && PyErr_Occurred()) || stopped(self)) return NULL;
  int64_t token = reader_add(&self->reader, number < 0 || number > INT_MAX ? -1 : (int)number);
  return token < 0 ? failed((int)-token) : PyLong_FromLongLong(token);
}

static bool token_in(Reader *self, PyObject *number, uint64_t *token) {
  *token = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred() || stopped(self)) return false;
  if ((uint32_t)*token >= self->reader.slots) {
    PyErr_SetString(PyExc_ValueError, "no token of this reader");
    return false;
  }
  return true;
}

static PyObject *removed(Reader *self, PyObject *number) {
  uint64_t token;
  if (!token_in(self, number, &token)) return NULL;
  reader_remove(&self->reader, token);
  Py_RETURN_NONE;
}

static PyObject *quiet(Reader *self, PyObject *number) {
  uint64_t token;
  if (!token_in(self, number, &token)) return NULL;
  return PyBool_FromLong(reader_quiet(&self->reader, token));
}

/* hidden, and above its bits the time that the socket was seen empty before the read; 0 where nothing is hidden. */
static uint64_t hidden_of(const struct reader_record *record) {
  if (record->hidden == 0) return 0;
  uint64_t age = record->empty_ns ? (uint64_t)(record->read_ns - record->empty_ns) : 0;
  uint64_t hidden = record->hidden < HIDDEN_MOST ? record->hidden : HIDDEN_MOST;
  return hidden | (age < AGE_MOST ? age : 0) << HIDDEN_BITS;
}

/* token, bytes or errno, kernel_ns, read_ns, hidden */
static PyObject *row(const struct reader_record *record, const char *data) {
  PyObject *values[] = {
      PyLong_FromUnsignedLongLong(record->token),
      record->length < 0 ? PyLong_FromLong(-record->length)
                         : PyBytes_FromStringAndSize(data, record->length),
      PyLong_FromLongLong(record->kernel_ns),
      PyLong_FromLongLong(record->read_ns),
      PyLong_FromUnsignedLongLong(hidden_of(record)),
  };
  PyObject *tuple = PyTuple_New(5);
  for (int n = 0; n < 5; n++) {
    if (values[n] == NULL || tuple == NULL) {
      for (; n < 5; n++) Py_XDECREF(values[n]);
      Py_XDECREF(tuple);
      return NULL;
    }
    PyTuple_SetItem(tuple, n, values[n]);
  }
  return tuple;
}

/* Rows of *count* records of the ring, which are given back. */
static PyObject *rows_of(Reader *self, uint64_t count) {
  PyObject *rows = PyList_New((Py_ssize_t)count);
  for (uint64_t n = 0; rows != NULL && n < count; n++) {
    const struct reader_record *record = reader_at(&self->reader, n);
    PyObject *each = row(record, reader_data(&self->reader, record));
    if (each == NULL) Py_CLEAR(rows);
    else PyList_SetItem(rows, (Py_ssize_t)n, each);
  }
  reader_taken(&self->reader, rows == NULL ? 0 : count);
  return rows;
}

static bool count_in(Reader *self, PyObject *number, Py_ssize_t *wanted) {
  *wanted = PyLong_AsSsize_t(number);
  if ((*wanted == -1 && PyErr_Occurred()) || stopped(self)) return false;
  if (*wanted < 0) *wanted = 0;
  return true;
}

static PyObject *taken(Reader *self, PyObject *most) {
  Py_ssize_t wanted;
  if (!count_in(self, most, &wanted)) return NULL;
  return rows_of(self, reader_waiting(&self->reader, (uint64_t)wanted));
}

/* Records of the ring come first; the loop reads by itself where there are no more. */
static PyObject *read_or_taken(Reader *self, PyObject *most) {
  Py_ssize_t wanted;
  if (!count_in(self, most, &wanted)) return NULL;
  uint64_t count = reader_count(&self->reader, (uint64_t)wanted);
  PyObject *rows = rows_of(self, count);
  int left = (int)(wanted - (Py_ssize_t)count < READER_LOOK ? wanted - (Py_ssize_t)count : READER_LOOK);
  if (rows == NULL || left == 0) return rows;
  int64_t wait_ns = count == 0 ? reader_gathers(&self->reader) : 0;
  if (wait_ns > 0) {
    Py_BEGIN_ALLOW_THREADS
    reader_gather(&self->reader, wait_ns);
    Py_END_ALLOW_THREADS
  }
  uint64_t tokens[READER_LOOK];
  int found = reader_look(&self->reader, tokens, left), read = 0;
  for (int n = 0; rows != NULL && n < found; n++) {
    struct reader_record record = {.more = true};
    while (rows != NULL && record.more && reader_read(&self->reader, tokens[n], self->room, &record)) {
      PyObject *each = row(&record, self->room);
      if (each == NULL || PyList_Append(rows, each) < 0) Py_CLEAR(rows);
      Py_XDECREF(each);
      read++;
    }
  }
  if (found > 0 && read == 0) sched_yield();  /* the thread is at it, and may need this core */
  return rows;
}

static PyObject *counted(Reader *self, PyObject *none) {
  struct reader *reader = &self->reader;
  return Py_BuildValue("{s:K,s:K,s:K}", "reads", (unsigned long long)atomic_load(&reader->reads), "pauses",
                       (unsigned long long)atomic_load(&reader->pauses), "paused_ns",
                       (unsigned long long)atomic_load(&reader->paused_ns));
}

static PyMethodDef methods[] = {
    {"fileno", (PyCFunction)fileno_of, METH_NOARGS, "A descriptor that is readable while there are records; take() reads it."},
    {"sockets", (PyCFunction)sockets_of, METH_NOARGS, "A descriptor that is readable while a socket is; read() reads it."},
    {"add", (PyCFunction)added, METH_O, "Let the thread read a non-blocking socket's descriptor; its token."},
    {"remove", (PyCFunction)removed, METH_O, "Behind this call the thread touches the token's descriptor no more."},
    {"quiet", (PyCFunction)quiet, METH_O, "Whether the token's socket is open and has nothing to read or to take, its end included."},
    {"take", (PyCFunction)taken, METH_O, "So many records at most: (token, bytes or errno, kernel_ns, read_ns, hidden)."},
    {"read", (PyCFunction)read_or_taken, METH_O, "As take(); where the ring has fewer, by reading sockets here and now."},
    {"counts", (PyCFunction)counted, METH_NOARGS, "Reads so far, and pauses in which the ring was full, with their time."},
    {"close", (PyCFunction)closed, METH_NOARGS, "End the thread; the sockets stay open."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, made},
    {Py_tp_dealloc, destroyed},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Reader(descriptors, records=16384, size=4194304, apart=False, mark=b''): a thread that reads sockets numbered below descriptors."},
    {0, NULL},
};

static PyType_Spec spec = {"aiperf_reader._reader.Reader", sizeof(Reader), 0, Py_TPFLAGS_DEFAULT, slots};

static int filled(PyObject *module) {
  PyObject *type = PyType_FromSpec(&spec);
  if (type == NULL || PyModule_AddIntConstant(module, "VERSION", READER_VERSION) < 0) return -1;
  if (PyModule_AddIntConstant(module, "SOURCES", READER_SOURCES) < 0) return -1;
  if (PyModule_AddObject(module, "Reader", type) == 0) return 0;
  Py_DECREF(type);
  return -1;
}

static PyModuleDef_Slot parts[] = {{Py_mod_exec, filled}, {0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_reader", NULL, 0, NULL, parts, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__reader(void) { return PyModuleDef_Init(&definition); }
