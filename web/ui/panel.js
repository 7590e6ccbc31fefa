/** What the page says about our own connection: the notice, the move step by step, gaps, presence, trouble. */

import { badge, countdown, isolated, make, milliseconds, seconds } from "./format.js";
import { decide, deskRule, RuleBox } from "../lib/rule.js";
import { noMediaText, reasonText } from "./words.js";

const $ = (id) => document.getElementById(id);
const CONNECTION = {
  idle: ["Not connected", "warn"],
  connecting: ["Connecting…", "warn"],
  open: ["Connected", "good"],
  waiting: ["Reconnecting…", "warn"],
  over: ["Session ended", "bad"],
};

/** Bring everything up to date with the player's state. */
export function renderPanel(state) {
  renderConnection(state);
  renderNotice(state);
  renderMove(state);
  renderSwitch(state);
  for (const input of document.querySelectorAll("[data-presence]")) {
    input.checked = state.presence[input.dataset.presence];
  }
  setText($("presence-means"), presenceText(state.presence));
  $("sound").hidden = !state.soundBlocked;
}

/** What the page's rule makes of these boxes, in the words that it would give. */
export function presenceText(presence) {
  const facts = { sfu: "", asksInS: null, endsInS: null, presence };
  const { move, reason } = decide({ asked: false, choice: null, box: new RuleBox(deskRule), facts });
  const why = reasonText(reason);
  return move ? `So you would move at once: ${why}.` : `So you would stay until the SFU asks: ${why}.`;
}

/** The switches for what is sent; one that there is nothing for is hidden. */
export function renderSwitches(sending) {
  for (const [kind, on, off] of [["audio", "Mute", "Unmute"], ["video", "Stop picture", "Start picture"]]) {
    const button = $(`toggle-${kind}`);
    button.hidden = !sending.has(kind);
    setText(button, sending.isOn(kind) ? on : off);
    button.dataset.off = String(!sending.isOn(kind));
  }
}

/** The connection in two words, and their colour: no one is connected whose media does not get through. */
export function connectionText({ connection, media, room }) {
  const [text, tone] = CONNECTION[connection.status];
  const isResuming = connection.status === "waiting" || (connection.status === "connecting" && room);
  if (connection.status !== "over" && media.missing.length) return ["No media", "bad"];
  if (isResuming) return [media.isConnecting ? "Reconnecting…" : "Resuming… media goes on", "warn"];
  return connection.status === "open" && media.isConnecting ? ["Connecting media…", "warn"] : [text, tone];
}

function renderConnection(state) {
  const { connection, router, move, links, cordon, media } = state;
  const [text, tone] = connectionText(state);
  setText($("connection"), text);
  $("connection").dataset.tone = tone;
  setText($("no-media"), connection.status === "over" ? "" : noMediaText(media));
  $("no-media").hidden = !$("no-media").textContent;
  $("connection").title = connection.detail ?? "";
  setText($("router"), router || "–");
  const home = move.home ? [badge(move.home, { cordoned: cordon !== null })] : ["–"];
  $("home").replaceChildren(...home);
  $("links").replaceChildren(...(links.length ? links.map((sfu) => badge(sfu)) : ["–"]));
}

function renderNotice({ cordon, move }) {
  $("notice").hidden = !cordon;
  if (!cordon) return;
  const isMoving = ["asking", "opening"].includes(move.phase) || move.failures > 0;
  setText($("notice-title"), move.asked ? `${isolated(cordon.sfu)} asks you to move` : cordonText(cordon));
  setText($("notice-text"), noticeText(move, isMoving));
  const when = [];
  if (!move.asked && cordon.asksInMs != null) when.push(`asks all its players to move in ${countdown(cordon.asksInMs)}`);
  if (cordon.endsInMs != null) when.push(`closes in ${countdown(cordon.endsInMs)}`);
  setText($("notice-when"), when.join("\n"));
  $("move-now").hidden = isMoving || move.choice === "move";
  $("stay").hidden = move.asked || move.choice === "stay";
  $("let-rule").hidden = move.asked || move.choice === null;
}

/** An SFU without a bound is held, which may end in nothing; one with a bound is on its way out. */
export function cordonText({ sfu, asksInMs, endsInMs }) {
  const isHeld = asksInMs == null && endsInMs == null;
  return `${isolated(sfu)} ${isHeld ? "takes no new players for now" : "is being retired"}`;
}

function noticeText({ decision, asked, choice, target }, isMoving) {
  if (isMoving) return `You are moving${target ? ` to ${isolated(target)}` : ""}. Sound and picture go on meanwhile.`;
  if (asked) return "You will be moved in a moment. Sound and picture go on meanwhile.";
  if (choice === "stay") return "You chose to stay until it asks. Nothing is cut before that.";
  if (decision && !decision.move) return `You stay for now: ${reasonText(decision.reason)}.`;
  return "Your call goes on. You move without a gap when it suits you.";
}

function renderMove({ move, lastMove, moveGaps, gapsAreExact }) {
  const gaps = moveGaps ?? lastMove;
  const steps = gaps ? move.steps : [];
  $("move").hidden = !move.decision && !gaps;
  setText($("move-title"), moveGaps || !lastMove ? "Move" : "Last move");
  setText($("decision"), decisionText(move));
  const start = steps[0]?.atMs ?? 0;
  const key = JSON.stringify(steps);
  if ($("steps").dataset.key !== key) {
    $("steps").dataset.key = key;
    $("steps").replaceChildren(...steps.map((step) => renderStep(step, start)));
  }
  $("gaps").hidden = !gaps;
  setText($("gap-audio"), milliseconds(gaps?.audioMs));
  setText($("gap-video"), milliseconds(gaps?.videoMs));
  setText($("move-took"), milliseconds(moveGaps ? null : lastMove?.tookMs));
  $("gap-note").hidden = gapsAreExact || !gaps;
  setText($("gap-note"), "This browser does not show encoded frames; gaps are those of playback, and coarser.");
}

/** Who decided what, how far the move is, and when it is tried again. */
export function decisionText({ decision, retryInMs, ...move }) {
  const parts = [];
  if (decision) {
    const who = { asked: "The SFU", choice: "Your choice", rule: "The rule", over: "The rule" }[decision.by];
    parts.push(`${who}: ${decision.move ? "move" : "stay"} – ${reasonText(decision.reason)}.`);
  }
  const now = phaseText(move);
  if (now) parts.push(`Now ${now}.`);
  if (retryInMs !== null) parts.push(`Next try in ${seconds(retryInMs)}.`);
  return parts.join(" ");
}

function phaseText({ phase, target, entered, failures }) {
  if (phase === "asking") return "asking the router for another SFU";
  if (phase === "opening") return entered ? `publishing on both, waiting for media on ${isolated(target)}` : `opening a link to ${isolated(target)}`;
  return phase === "waiting" && failures ? "the last try failed; trying again" : null;
}

function renderStep({ step, reason, atMs }, start) {
  const text = make("span", { textContent: reason ? `${step}: ${reasonText(reason)}` : step });
  const item = make("li", {}, text, make("time", { textContent: `+${milliseconds(atMs - start)}` }));
  item.classList.toggle("failed", step === "failed");
  return item;
}

function renderSwitch({ switches, players }) {
  const last = switches.at(-1);
  $("switch").hidden = !last;
  if (!last) return;
  const who = players.find(({ player }) => player === last.player);
  const whose = `${isolated(who?.name || who?.identity || "Another player")}’s ${last.kind}`;
  setText($("switch-text"), `${whose}: ${isolated(last.from)} → ${isolated(last.to)}, longest gap ${milliseconds(last.gapMs)}.`);
}

/** Show trouble for a while; null takes it away. */
export function renderTrouble(text) {
  $("trouble").hidden = !text;
  setText($("trouble"), text ?? "");
}

/** Live regions speak whenever their text is set, so it is set only when it has changed. */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
