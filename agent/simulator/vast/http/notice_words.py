"""The words of every notice, in the inbox and to webhooks."""

from agent.simulator.vast.model import Notice, NoticeKind

# Slug, subject and sentence of each kind. {id}, {machine}, {image}, {price} and {floor} are filled in.
# Those of STARTED and OUTBID are the recorded ones.
WORDS: dict[NoticeKind, tuple[str, str, str]] = {
    NoticeKind.CREATED: (
        "instance_created",
        "Your Vast.ai Instance Was Created",
        "Your instance {id} running {image} on machine {machine} has been created.",
    ),
    NoticeKind.STARTED: (
        "instance_started",
        "Your Vast.ai Instance Is Now Running",
        (
            "Your instance {id} running {image} on machine {machine} has started. You are being charged "
            "${price:.3f}/hr. View it at: https://console.vast.ai/instances/"
        ),
    ),
    NoticeKind.STOPPED: (
        "instance_stopped",
        "Your Vast.ai Instance Has Stopped",
        "Your instance {id} running {image} on machine {machine} has stopped.",
    ),
    NoticeKind.RESUMED: (
        "instance_resumed",
        "Your Vast.ai Instance Has Resumed",
        "Your instance {id} running {image} on machine {machine} runs again.",
    ),
    NoticeKind.OUTBID: (
        "outbid",
        "Your Interruptible Instance #{id} Has Been Outbid",
        (
            "Your interruptible instance {id} on machine {machine} has been outbid and will be stopped. Your bid was "
            "${price:.2f}/hr and the current minimum bid is ${floor:.2f}/hr. Update your bid at "
            "https://cloud.vast.ai/instances/ to keep it running."
        ),
    ),
    NoticeKind.DELETED: (
        "instance_deleted",
        "Your Vast.ai Instance Was Deleted",
        "Your instance {id} on machine {machine} is deleted.",
    ),
    NoticeKind.OFFLINE: (
        "instance_offline",
        "Your Vast.ai Instance Is Offline",
        "Machine {machine} of your instance {id} is offline.",
    ),
    NoticeKind.ONLINE: (
        "instance_online",
        "Your Vast.ai Instance Is Back Online",
        "Machine {machine} of your instance {id} is online.",
    ),
    NoticeKind.MAINTENANCE: (
        "machine_maintenance",
        "Maintenance Is Scheduled for Your Vast.ai Instance",
        "Machine {machine} of your instance {id} has maintenance scheduled. The instance will be offline meanwhile.",
    ),
    NoticeKind.UPCOMING_DOWNTIME: (
        "upcoming_downtime",
        "Upcoming Downtime of Your Vast.ai Instance",
        "Machine {machine} of your instance {id} will be offline soon.",
    ),
    NoticeKind.NEAR_END: (
        "near_end_date",
        "Your Vast.ai Instance Is Near Its End Date",
        "Your instance {id} on machine {machine} is near its end date. Save what you need from its disk.",
    ),
    NoticeKind.LOW_CREDIT: ("low_credit", "Your Vast.ai Credit Is Low", "Your credit is running out."),
    NoticeKind.CONTAINER_ERROR: (
        "error_msgs",
        "Your Vast.ai Instance Reported an Error",
        "Your instance {id} running {image} on machine {machine} reported an error.",
    ),
}


def words(notice: Notice) -> tuple[str, str, str]:
    """Return slug, subject and sentence of a notice."""
    slug, subject, sentence = WORDS[notice.kind]
    filling = {
        "id": notice.contract_id,
        "machine": notice.machine_id,
        "image": notice.image,
        "price": notice.price or 0.0,
        "floor": notice.new_floor or 0.0,
    }
    return slug, subject.format(**filling), sentence.format(**filling)
