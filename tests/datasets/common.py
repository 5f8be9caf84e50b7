"""A small TUDataset in all its forms, and a server."""

from __future__ import annotations

import io
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from skcontrast.datasets import fetch_tudataset

# A triangle and a path of four nodes, the classes 3 and −1, and a node by itself, of class 3 too.
TEXTS = {
    "SET_A.txt": "1, 2\n2, 1\n2, 3\n3, 2\n3, 1\n1, 3\n4, 5\n5, 4\n5, 6\n6, 5\n6, 7\n7, 6\n",
    "SET_graph_indicator.txt": "1\n1\n1\n2\n2\n2\n2\n3\n",
    "SET_graph_labels.txt": "3\n-1\n3\n",
}
LABELS = {"SET_node_labels.txt": "5\n5\n9\n5\n9\n9\n9\n0\n"}
ATTRIBUTES = {"SET_node_attributes.txt": "".join(f"{k}.5, -{k}\n" for k in range(8))}
EDGES = {
    "SET_edge_labels.txt": "".join(f"{k // 2}\n" for k in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 9)),
    "SET_edge_attributes.txt": "".join(f"{k // 2 + 0.5}\n" for k in range(12)),
}
README = {"README.txt": "What the set is."}
ALL = TEXTS | LABELS | ATTRIBUTES | README


def zipped(texts, folder="SET/"):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, text in texts.items():
            archive.writestr(folder + file, text)
    return content.getvalue()


def fetch(home, **kwargs):
    return fetch_tudataset("SET", data_home=home, download_if_missing=False, **kwargs)


def write_zip(home, texts):
    (home / "SET.zip").write_bytes(zipped(texts))


class Server:
    """A server on this machine; as a context, it runs.

    Attributes
    ----------
    files : dict
        By name, the content of a file, or a function of the handler.
    asked : list
        The names in the order in which they were asked for.
    """

    def __init__(self):
        self.files, self.asked, self.stopped = {}, [], threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                owner.answer(self)

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads, self.http.block_on_close = True, False
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.http.shutdown()
        self.http.server_close()

    def answer(self, handler):
        name = handler.path.strip("/")
        self.asked.append(name)
        reply = self.files.get(name, status(404))
        if callable(reply):
            reply(handler)
        else:
            send(handler, reply)

    def stall(self, handler, content=b"12345"):
        """Send a few bytes of many, and then nothing."""
        send(handler, content, 10**6)
        handler.wfile.flush()
        self.stopped.wait()


def send(handler, content, length=None):
    """Send content, and promise a length, its own by default."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content) if length is None else length))
    handler.end_headers()
    handler.wfile.write(content)


def status(code):
    """Return an answer that is a status of HTTP only."""
    return lambda handler: handler.send_error(code)
