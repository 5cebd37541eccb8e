"""The answers of HTTP and the socket, as plain values and JSON."""
