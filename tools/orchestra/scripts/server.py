"""A server of the paper's service (4.1, 5.5.3): server.py ARCHITECTURE [--workers N] [--no-greeting]."""

import socket
import sys
import threading

GREETING = b"" if "--no-greeting" in sys.argv else b"Hello\n\0"


def serve(connection):
    with connection:
        connection.sendall(GREETING)
        request = connection.recv(4, socket.MSG_WAITALL)
        if len(request) == 4:
            connection.sendall(b"A" * int(request))
            connection.recv(1)  # the client closes first


listener = socket.create_server(("127.0.0.1", 0), backlog=128)
print("listening 127.0.0.1:%d" % listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    if sys.argv[1] == "thread-per-connection":
        threading.Thread(target=serve, args=(connection,)).start()
    else:
        serve(connection)
