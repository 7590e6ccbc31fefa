// The stories of the mover, over the browser's. SLUICE_STORIES names another file of stories: test_stories.py's wrong ones.

import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { Run, SEEDS } from "./runner.mjs";

const folder = new URL("stories/", import.meta.url);
const here = () => readdirSync(folder).filter((name) => name.endsWith(".json")).map((name) => new URL(name, folder));
const files = process.env.SLUICE_STORIES ? [process.env.SLUICE_STORIES] : here();

console.error = () => {}; // what the developer is told of a rule that fails

for (const file of files) {
  for (const story of JSON.parse(readFileSync(file, "utf8"))) {
    test(story.name, () => SEEDS.forEach((seed) => new Run(story, seed).run()));
  }
}
