/** Offers Opus with two channels (RFC 7587 section 7.1): `sprop-stereo`, what is sent; `stereo`, what the SFU answers with. */

const WANTED = { stereo: "1", "sprop-stereo": "1" };

/**
 * The description with both parameters for Opus on some m-lines.
 * @param {Set<string>} names of the m-lines: the mid, or the id of the track for one that has had no mid yet
 */
export function withStereo(sdp, names) {
  const [head, ...sections] = sdp.split(/^(?=m=)/m);
  const isNamed = (section) => names.has(/^a=mid:(\S+)/m.exec(section)?.[1]) || names.has(/^a=msid:\S+ (\S+)/m.exec(section)?.[1]);
  return [head, ...sections.map((section) => (isNamed(section) ? stereoSection(section) : section))].join("");
}

function stereoSection(section) {
  const payloadType = /^a=rtpmap:(\d+) opus\/48000\/2/im.exec(section)?.[1];
  if (!payloadType) return section;
  const format = new RegExp(`^a=fmtp:${payloadType} (.*?)(\r?)$`, "m");
  if (!format.test(section)) return section.replace(/^(a=rtpmap:\d+ opus.*?)(\r?\n)/im, `$1$2a=fmtp:${payloadType} stereo=1;sprop-stereo=1$2`);
  return section.replace(format, (_, parameters, end) => {
    const kept = parameters.split(";").filter((each) => !(each.split("=")[0].trim() in WANTED));
    return `a=fmtp:${payloadType} ${[...kept, "stereo=1", "sprop-stereo=1"].join(";")}${end}`;
  });
}
