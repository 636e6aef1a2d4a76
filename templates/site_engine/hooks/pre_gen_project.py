"""Run by cookiecutter before each template: refuses a name of which no package can be made."""

import json
import re
import sys

name = json.loads(r'''{{ cookiecutter.name|jsonify }}''')
if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name.lower()):
    sys.exit(f"a plugin can't be called {name!r}: letters, digits and single hyphens make a name, a letter first: my-dialect")
