"""Protocol buffers: message classes of the services that aiperf speaks to, and methods by their descriptors."""
