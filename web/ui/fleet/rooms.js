/** Rooms over all routers, found by name. */

import { badge, make, paintBadge } from "../format.js";
import { keyed, text } from "./dom.js";

const SHOWN = 50;

export function rooms({ body, more }) {
  const create = () => make("tr", {}, ...Array.from({ length: 5 }, () => make("td")));
  const paint = (line, { room, sfu, sfus, players, publications }) => {
    const [name, home, carriers, people, tracks] = line.children;
    text(name, room);
    keyed(home, sfu ? [sfu] : [], (id) => id, badge, (element, id) => paintBadge(element, id));
    keyed(carriers, sfus.slice(0, 8), (id) => id, badge, (element, id) => paintBadge(element, id));
    text(people, String(players));
    text(tracks, String(publications));
  };
  return (known, query) => {
    const found = known.filter(({ room }) => room.toLowerCase().includes(query));
    keyed(body, found.slice(0, SHOWN), ({ room }) => room, create, paint);
    text(more, found.length > SHOWN ? `and ${found.length - SHOWN} more; type a name to find one` : found.length ? "" : query ? "No room of that name." : "No one is in a room.");
  };
}
