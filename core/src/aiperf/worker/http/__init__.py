"""The kernel's own transport: HTTP/1.1 on stamped sockets."""
