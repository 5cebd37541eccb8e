"""Write the JSON schemas anew; `make schema` runs this, and a test says when it is due."""

import json
from pathlib import Path

from agent import strategy_files
from agent.config import config_schema

HERE = Path(__file__).parent


def texts() -> dict[str, str]:
    """Return the text of each schema file by its name."""
    schemas = {
        "agent.schema.json": config_schema.agent_schema(),
        "strategy.schema.json": config_schema.strategy_schema(strategy_files.params(strategy_files.BUILT_IN)),
    }
    return {name: json.dumps(value, indent=2, ensure_ascii=False) + "\n" for name, value in schemas.items()}


if __name__ == "__main__":
    for name, text in texts().items():
        (HERE / name).write_text(text)
