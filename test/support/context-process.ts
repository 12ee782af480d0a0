/** Keeps, uses and removes contexts in a given directory, like builds of several branches. Prints errors. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openKeptContexts, removeKeptContexts } from "../../src/cli/contexts/kept-contexts.ts";
import { systemClock } from "../../src/clock.ts";

const [, , home = "", rounds = "1"] = process.argv;
const contexts = openKeptContexts(home, systemClock);
for (let round = 0; round < Number(rounds); round++) {
  const name = `commit-${Math.floor(Math.random() * 6)}`;
  try {
    using held = contexts.find("group", name) ?? fetchNew(name);
    for (let look = 0; look < 20; look++)
      if (!existsSync(join(held.path, "file"))) throw new Error(`${name} is gone while it is used`);
  } catch (error) {
    process.stdout.write(`${error}\n`);
  }
  if (round % 8 === 0) removeKeptContexts(home, "group");
}

function fetchNew(name: string) {
  using started = contexts.begin("group");
  writeFileSync(join(started.path, "file"), "");
  return started.keep(name);
}
