"""Serves a store as a page, on this machine only: `contents` looks into it, `page` writes HTML, `server` answers."""
