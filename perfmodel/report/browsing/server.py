"""Answers a browser on this machine with the page of a store; nobody else is answered, and nothing is ever written."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from perfmodel.basics.errors import PerfmodelError, StoreError
from perfmodel.report.browsing import page
from perfmodel.report.browsing.contents import StoreView, Wanted

HOST = "127.0.0.1"
HOSTS = r"(127\.0\.0\.1|localhost)"
"""Names by which a page may be asked for: any other comes from a page of somebody else's."""
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'"
)
UNCHANGED = 304


def application(view: StoreView) -> Any:
    """Returns the tornado application that answers for a store.

    Raises:
        PerfmodelError: tornado is not installed.
    """
    web, _ = _tornado()

    class Answer(web.RequestHandler):  # type: ignore[misc, name-defined]
        def set_default_headers(self) -> None:
            self.set_header("Content-Security-Policy", POLICY)
            self.set_header("X-Content-Type-Options", "nosniff")
            self.set_header("Referrer-Policy", "no-referrer")
            self.set_header("Cache-Control", "no-store")
            self.clear_header("Server")

        def compute_etag(self) -> None:
            return None

        def wanted(self) -> Wanted:
            return Wanted(**{each.name: self.get_query_argument(each.name, "")[:400] for each in fields(Wanted)})

        def refreshed(self) -> None:
            try:
                view.refresh()
            except PerfmodelError:  # written at this moment: what was read before is shown
                return

    class Whole(Answer):
        def get(self) -> None:
            self.refreshed()
            self.finish(page.whole(view, self.wanted()))

    class Content(Answer):
        def get(self) -> None:
            self.refreshed()
            if self.get_query_argument("stamp", "") == view.stamp:
                self.set_status(UNCHANGED)
                return
            self.set_header("X-Stamp", view.stamp)
            self.finish(page.content(view, self.wanted()))

    def text(make: Callable[[], str], kind: str) -> type[Any]:
        class Text(Answer):
            def get(self) -> None:
                self.set_header("Content-Type", f"{kind}; charset=utf-8")
                self.finish(make())

        return Text

    found = web.Application()
    found.add_handlers(
        HOSTS,
        [
            ("/", Whole),
            ("/content", Content),
            ("/page.css", text(page.style, "text/css")),
            ("/page.js", text(page.script, "text/javascript")),
        ],
    )
    return found


def serve(path: Path, port: int, tell: Callable[[str], None], started: Callable[[Any], None] | None = None) -> None:
    """Serves a store until it is interrupted.

    Args:
        port: 0 for any that is free.
        tell: is given the page's address.
        started: is given the loop that answers, which others may stop.

    Raises:
        StoreError: the store can't be read, or the port is taken.
        PerfmodelError: tornado is not installed.
    """
    _, httpserver = _tornado()
    if not path.is_file():
        raise StoreError(f"store {path} is not there; give a file that measure or calibrate wrote")
    if not 0 <= port < 2**16:
        raise StoreError(f"port {port} is none; give one up to {2**16 - 1} by --port, or 0 for any that is free")
    view = StoreView(path)

    async def run() -> None:
        server = httpserver.HTTPServer(application(view))
        try:
            server.listen(port, HOST)
        except OSError as error:
            raise StoreError(f"port {port} cannot be had ({error.strerror}); give another by --port") from error
        (socket, *_) = server._sockets.values()
        tell(f"http://{HOST}:{socket.getsockname()[1]}/")
        ended = asyncio.Event()
        if started:
            loop = asyncio.get_running_loop()
            started(lambda: loop.call_soon_threadsafe(ended.set))
        try:
            await ended.wait()
        finally:
            server.stop()
            await server.close_all_connections()

    asyncio.run(run())


def _tornado() -> tuple[Any, Any]:
    try:
        return importlib.import_module("tornado.web"), importlib.import_module("tornado.httpserver")
    except ImportError as error:
        raise PerfmodelError("browse needs the package 'tornado'; `pip install 'perfmodel[browse]'`") from error
