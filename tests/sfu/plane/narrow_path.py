"""Run in a network of its own whose loopback takes packets of 1,000 bytes: what viewers get there, as JSON."""

from __future__ import annotations

import json

from tests.sfu.plane.test_thread import bench


def main() -> None:
    with bench(viewers=2) as made:
        sent = made.frame([1150] * 7, key=True)
        made.wait_for(len(sent))
        whole = all([payload for _, payload in viewer.packets] == sent for viewer in made.viewers)
        print(json.dumps({"whole": whole, "gso": made.plane.gso, "drops": made.drops()}))


if __name__ == "__main__":
    main()
