"""RunPod's own package, run unmodified as a subprocess against the simulated market, in a separate environment."""

import asyncio
import json
import os
import pathlib
from typing import Any

PYTHON = pathlib.Path(__file__).parents[2] / ".venv-runpod" / "bin" / "python"


async def run(url: str, home: pathlib.Path, program: str) -> dict[str, Any]:
    """Run a program with the package, and return its output."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "RUNPOD_API_BASE_URL": url}
    process = await asyncio.create_subprocess_exec(
        str(PYTHON), "-c", program, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, err.decode()
    return dict(json.loads(out.decode().splitlines()[-1]))
