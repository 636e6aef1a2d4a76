"""What a plugin author may import: one module per category, each with its names in ``__all__``.

``journal``, ``reporting``, ``registry`` and ``tools`` serve exporters, commands and tools for authors.
"""
