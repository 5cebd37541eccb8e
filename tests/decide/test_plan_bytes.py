"""The plan byte for byte: the same in every process, whatever order its sets have there."""

import json
import os
import subprocess
import sys

import pytest

from agent.decide import explain, plan
from agent.decide.limits.limits import Limits
from agent.domain.fleet import Fleet
from strategies.patient import Patient, PatientParams
from tests.support import builders

TUNED = {"patient": builders.tuned(Patient(), PatientParams())}
SCRIPT = """
import json
from agent.decide import explain, plan
from agent.decide.limits.limits import Limits
from tests.decide import test_plan_bytes as there
made = plan.plan(there.crowd(), there.TUNED, Limits(instances=30))
print(json.dumps([explain.as_json(decision) for decision in made.decisions]))
"""


def crowd() -> Fleet:
    """Build a fleet with many equal offers: whatever order a set may have would show."""
    models = ("RTX 4090", "RTX 3090", "H100 SXM", "L40S")
    rows = [builders.offer(number, gpu=models[number % 4]) for number in range(120)]
    works = [
        builders.workload(f"w{number}", slots=3, requirements=builders.requirements(gpu_models=models[: number % 5]))
        for number in range(12)
    ]
    return builders.fleet(workloads=tuple(works), markets={"vast": builders.view(offers=tuple(rows))})


@pytest.mark.parametrize("seed", ["1", "2"])
def test_another_process_makes_the_same_plan_byte_for_byte(seed: str) -> None:
    here = plan.plan(crowd(), TUNED, Limits(instances=30))
    expected = json.dumps([explain.as_json(decision) for decision in here.decisions])
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    ran = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == expected
    assert expected.count('"rent"') == 30
