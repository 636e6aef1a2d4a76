"""The page of ``aiperf report --html``: one run, or several side by side, in one file without a network."""

from aiperf_report_page.writing import PageRequest, write_page

__all__ = ["PageRequest", "write_page"]
