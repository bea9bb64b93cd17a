"""All benchmarks, one after the other, each in a process of its own."""

import subprocess
import sys
from pathlib import Path

for name in ("bound_to_result", "send_rate", "source_throughput", "sliding"):
    subprocess.run([sys.executable, str(Path(__file__).with_name(f"{name}.py"))], check=True)
