"""What is read over HTTP and the socket, as plain values and JSON."""
