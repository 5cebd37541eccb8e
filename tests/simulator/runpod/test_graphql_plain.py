"""Plain questions get from their compiled form what graphql-core's executor answers; all others are left to it."""

from collections.abc import Mapping
from typing import Any

import graphql
import msgspec
import pytest

from agent.markets.runpod import bids, history
from agent.simulator.runpod.http import calls, graphql_offers, graphql_plain, graphql_pods, graphql_schema
from agent.simulator.runpod.http.surface import Surface
from agent.simulator.runpod.model import Terms
from agent.simulator.runpod.models import BY_ID, Cloud
from agent.simulator.runpod.world import World
from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from agent.simulator.weather import Weather
from tests.support.market import START
from tests.support.pods import A4000, OF_THE_PAST

SCHEMA = graphql_schema.schema(has_spot=True)
ONE = {"gpuCount": 1, "secureCloud": True}
WHOLE = """query whole($input: GpuLowestPriceInput, $of: GpuTypeFilter) {
  gpuTypes(input: $of) {
    id displayName manufacturer memoryInGb secureCloud communityCloud securePrice communityPrice secureSpotPrice
    communitySpotPrice clusterPrice oneYearPrice maxGpuCount maxGpuCountSecureCloud nodeGroupDatacenters { id name }
    lowestPrice(input: $input) {
      gpuName gpuTypeId minimumBidPrice uninterruptablePrice minMemory minVcpu rentedCount totalCount rentalPercentage
      stockStatus countryCode supportPublicIp maxUnreservedGpuCount availableGpuCounts compliance
      gpuTypeCudaVersions { cudaVersion availability }
    }
  }
}"""
PODS = """{ countryCodes myself { id clientBalance spendLimit underBalance spendDetails { gpuComputePerHour }
  networkVolumes { id dataCenter { id } }
  pods { id name desiredStatus podType costPerHr gpuCount env createdAt lastStatusChange vcpuCount locked
    machine { gpuDisplayName dataCenterId secureCloud } runtime { uptimeInSeconds ports { ip privatePort } } } } }"""


@pytest.fixture
def roots() -> Mapping[str, Any]:
    world = World(OF_THE_PAST, seed=7, start=START)
    surface = Surface(world, Weather(world, seed=7))
    terms = Terms(name="one", gpu=BY_ID[A4000], gpu_count=1, clouds=tuple(Cloud), image="ubuntu", env={"A": "b"})
    world.rent(terms)
    world.stop(world.rent(terms).pod_id)
    call = calls.Call("POST", "/graphql", {}, {}, None, False, DEFAULT_KEY, world.now, {})
    return {**graphql_offers.fields(surface), **graphql_pods.fields(surface, call)}


def compiled(text: str, variables: dict[str, Any]) -> graphql_plain.Complete | None:
    document = graphql.parse(text)
    assert not graphql.validate(SCHEMA, document)
    return graphql_plain.compiled(SCHEMA, document, variables)


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        (bids._FLOORS, {"input": ONE}),
        (history.QUESTION, {}),
        (PODS, {}),
        (WHOLE, {"input": {"gpuCount": 2, "allowedCudaVersions": ["12.8"]}, "of": {"ids": [A4000]}}),
        (WHOLE, {"input": ONE}),
        (WHOLE, {}),
        ('{ dataCenters { id gpuAvailability(input: {gpuTypeId: "NVIDIA RTX A4000"}) { id available } } }', {}),
        ('query One($id: String! = "none") { pod(input: {podId: $id}) { id } }', {}),
    ],
)
def test_a_plain_question_gets_what_the_executor_answers(
    text: str, variables: dict[str, Any], roots: Mapping[str, Any]
) -> None:
    plain = compiled(text, variables)
    assert plain is not None
    result = graphql.execute_sync(SCHEMA, graphql.parse(text), root_value=roots, variable_values=variables)
    assert result.errors is None
    # With the same order of keys.
    assert msgspec.json.encode(plain(roots)) == msgspec.json.encode(result.data)


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("{ gpuTypes { name: displayName } }", {}),
        ("{ gpuTypes { __typename } }", {}),
        ("{ myself { pods { id } pods { name } } }", {}),
        ("{ gpuTypes { ... on GpuType { id } } }", {}),
        ("{ gpuTypes { ...part } } fragment part on GpuType { id }", {}),
        ("query Maybe($no: Boolean!) { gpuTypes { id displayName @skip(if: $no) } }", {"no": True}),
        ("query One { countryCodes } query Two { countryCodes }", {}),
        (bids._FLOORS, {"input": {"gpuCount": "many"}}),
        ('mutation { podTerminate(input: {podId: "x"}) }', {}),
    ],
)
def test_any_other_question_is_left_to_the_executor(text: str, variables: dict[str, Any]) -> None:
    assert compiled(text, variables) is None
