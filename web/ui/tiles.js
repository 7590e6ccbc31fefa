/** One tile for each player of the room: its picture, its name, and which SFU carries it. */

import { isolated, make, paintBadge } from "./format.js";

export class Tiles {
  #preview = null;
  #tiles = new Map(); // player -> {root, label, badge, name, initials, lost}

  /** @param {HTMLElement} grid */
  constructor(grid) {
    this.grid = grid;
  }

  /** A copy has arrived for a player: mount its element, unseen until it is shown. */
  mount(player, element) {
    this.#tile(player).label.before(element);
  }

  /** One's own picture, straight from its source; null: there is none any more. */
  preview(player, stream) {
    this.#preview?.remove();
    this.#preview = stream && make("video", { autoplay: true, muted: true, playsInline: true, srcObject: stream });
    if (this.#preview) this.#tile(player).label.before(this.#preview);
  }

  /** Bring names and badges up to date; players who have left lose their tile. */
  render({ players, publications, player: self, move, cordon }) {
    const present = new Set(players.map(({ player }) => player));
    if (self) present.add(self);
    for (const [player, { root }] of this.#tiles) {
      if (present.has(player)) continue;
      root.remove();
      this.#tiles.delete(player);
    }
    this.#arrange();
    for (const { player, name, identity, sfu, lost } of players) {
      const tile = this.#tile(player);
      const isSelf = player === self;
      tile.name.textContent = isolated(name || identity) + (isSelf ? " (you)" : "");
      tile.initials.textContent = (name || identity).slice(0, 2).toUpperCase();
      tile.root.setAttribute("aria-label", name || identity);
      tile.lost.hidden = isSelf || !isLost({ player, lost }, publications);
      const from = isSelf ? move.home : carrier(publications, player);
      const to = isSelf ? (move.target ?? move.home) : (heading(publications, player) ?? from);
      tile.badge.hidden = !(from ?? to ?? sfu);
      if (tile.badge.hidden) continue;
      const text = from && to && from !== to ? `${isolated(from)} → ${isolated(to)}` : (from ?? to ?? sfu);
      paintBadge(tile.badge, from ?? to ?? sfu, { cordoned: cordon?.sfu === from && from !== null, text });
    }
  }

  /** As many columns as rows, or one more: tiles are as large as the window lets them. */
  #arrange() {
    const columns = Math.max(1, Math.ceil(Math.sqrt(this.#tiles.size)));
    this.grid.style.setProperty("--columns", columns);
    this.grid.style.setProperty("--rows", Math.max(1, Math.ceil(this.#tiles.size / columns)));
  }

  #tile(player) {
    const known = this.#tiles.get(player);
    if (known) return known;
    const name = make("span", { className: "name" });
    const badge = make("span", { className: "badge", hidden: true });
    const initials = make("span", { className: "initials", ariaHidden: "true" });
    const lost = make("p", { className: "lost", textContent: "Connection lost", hidden: true });
    lost.setAttribute("role", "status");
    const label = make("div", { className: "label" }, name, badge);
    const root = make("article", { className: "tile" }, initials, label, lost);
    root.dataset.player = player;
    this.grid.append(root);
    const tile = { root, label, badge, name, initials, lost };
    this.#tiles.set(player, tile);
    return tile;
  }
}

/** Their router has lost touch with them, and nothing of theirs arrives: a broken websocket alone says nothing of media. */
export const isLost = ({ player, lost }, publications) =>
  lost && !publications.some((publication) => publication.player === player && publication.isArriving);

const mediaOf = (publications, player) => {
  const own = publications.filter((publication) => publication.player === player);
  return own.find(({ kind }) => kind === "video") ?? own[0];
};
const carrier = (publications, player) => mediaOf(publications, player)?.shownFrom ?? null;
const heading = (publications, player) => mediaOf(publications, player)?.switchingTo ?? null;
