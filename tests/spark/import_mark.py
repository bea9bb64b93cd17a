"""The file that tests/spark/imported.py creates when it is imported. Each checkout of the project has its own."""

import tempfile
import zlib
from pathlib import Path

MARK = Path(tempfile.gettempdir()) / f"rowtime-{zlib.crc32(__file__.encode()):x}-imported"
