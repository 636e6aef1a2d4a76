"""The page of ``aiperf plot --dashboard``; names are imported from the modules, as most need aiohttp."""
