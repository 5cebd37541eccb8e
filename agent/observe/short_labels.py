"""Labels without a workload, completed by the ledger: a market's short names have room for the intent alone.

An intent that the ledger does not know leaves the label as it is. Its slot then names no workload, so its instance is
held and counted like any instance of a workload that is not configured.
"""

from collections.abc import Mapping

import msgspec

from agent.domain.fleet import MarketView
from agent.domain.market.label import Label
from agent.domain.record.intent import Intent


def completed(view: MarketView, intents: Mapping[str, Intent]) -> MarketView:
    """Return a view whose labels name the workloads of their intents, as far as these are known."""
    shown = {key: _completed(label, intents) for key, label in view.labels.items()}
    looked = {key: label and _completed(label, intents) for key, label in view.looks.items()}
    if shown == view.labels and looked == view.looks:
        return view
    return msgspec.structs.replace(view, labels=shown, looks=looked)


def _completed(label: Label, intents: Mapping[str, Intent]) -> Label:
    if label.slot.workload:
        return label
    intent = intents.get(label.intent_id)
    # A changed index would be another slot than the name says: then neither is believed.
    is_same = intent is not None and intent.slot.index == label.slot.index
    return Label(label.fleet_id, intent.slot, label.intent_id) if intent is not None and is_same else label
