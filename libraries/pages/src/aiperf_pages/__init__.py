"""Pages and routes on a local port: the guard before them, limits, the style and the charts of pages.

Names are imported from the modules: ``tokens`` and ``ports`` are cheap, the others need aiohttp.
"""
