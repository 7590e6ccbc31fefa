"""What has changed between two looks at a roll, in lines for a log and as a state in words."""

from __future__ import annotations

from shared.roll_records import RollRecord, RollRouter, RollState, RollStep


def roll_news(before: RollRecord | None, now: RollRecord) -> list[str]:
    """A line for each step and router that has come further, and one when the roll pauses or ends."""
    steps = before.steps if before is not None else ()
    routers = before.routers if before is not None else ()
    lines = [
        f"{each.router}: {router_words(each)}"
        for old, each in zip(routers or [None] * len(now.routers), now.routers, strict=False)
        if each.stage != "waiting" and (old is None or old.stage != each.stage)
    ]
    lines += [
        f"{each.old}: {step_words(each)}"
        for old, each in zip(steps or [None] * len(now.steps), now.steps, strict=False)
        if each.stage != "waiting" and (old is None or old.stage != each.stage)
    ]
    if before is None or before.state != now.state:
        lines += [sentence] if (sentence := state_words(now)) and now.state != RollState.RUNNING else []
    return lines


def step_words(step: RollStep) -> str:
    """How far one replacement is."""
    new = step.new or "its replacement"
    words = {
        "waiting": "waits for its turn",
        "starting": f"{new} is being started",
        "warming": f"{new} is up and not warmed up yet",
        "draining": f"{new} takes players; {step.old} is being drained",
        "stopping": "has ended; what is left of it is being cleared away",
        "done": f"has gone, {new} has its place",
    }
    return words.get(step.stage, step.stage)


def router_words(router: RollRouter) -> str:
    """How far one router is."""
    words = {
        "waiting": "waits for its turn",
        "restarting": "is being started again; its players resume on others",
        "settling": "is back; players are given time to resume",
        "done": "is done",
    }
    return words.get(router.stage, router.stage)


def state_words(plan: RollRecord) -> str:
    """How the roll stands, and what an operator can do about it."""
    done = sum(step.stage == "done" for step in plan.steps)
    head = f"roll {plan.roll} to {plan.version!r}: {done} of {len(plan.steps)} SFUs"
    match plan.state:
        case RollState.PAUSED:
            return (
                f"{head}, paused: {plan.pause}. What is draining goes on draining; nothing new begins. "
                "To go on: 'sluice roll'. To take the cordons back: 'sluice roll --abort'"
            )
        case RollState.DONE:
            return f"{head}, done"
        case RollState.ABORTED:
            return f"{head}, aborted"
    return head
