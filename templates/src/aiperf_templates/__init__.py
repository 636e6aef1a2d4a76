"""Cookiecutter templates for aiperf plugins: where they are, and how a package is made from one."""

from __future__ import annotations

from pathlib import Path

CONFIG = "cookiecutter.json"


def folders() -> dict[str, Path]:
    """Each template's folder by its name, which is the category's, in the singular.

    In a wheel they are inside this package; in a checkout they lie beside ``src``, where plain cookiecutter is pointed at them.
    """
    here = Path(__file__).resolve().parent
    found = sorted(here.glob(f"*/{CONFIG}")) or sorted(here.parent.parent.glob(f"*/{CONFIG}"))
    return {path.parent.name: path.parent for path in found}


def make(template: str, name: str, output: Path) -> None:
    """Make a package from a template in a new directory below *output*.

    Raises:
        ImportError: cookiecutter isn't installed.
        OSError: *output* can't be written.
        cookiecutter.exceptions.CookiecutterException: The directory is there already, or the template is broken.
    """
    # Not cookiecutter's main function: that reads a person's own settings, and leaves a file behind in their home directory.
    from cookiecutter.generate import generate_context, generate_files
    from cookiecutter.prompt import prompt_for_config

    folder = folders()[template]
    context = generate_context(str(folder / CONFIG), extra_context={"name": name})
    context["cookiecutter"] = prompt_for_config(context, no_input=True)
    output.mkdir(parents=True, exist_ok=True)
    generate_files(str(folder), context, str(output), accept_hooks=False)
