/** The browser client library of Sluice; see docs/browser-client.md. */

export { Player } from "./player.js";
export { deskRule } from "./rule.js";
export { Phase } from "./phase.js";
