/** README's recording of a terminal is what the program shows: `UPDATE_GOLDEN=1` records it again. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { drawTerminal } from "../../scripts/manual/terminal-svg.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { openBoughTerminal } from "./bough-terminal.ts";

setDefaultTimeout(180_000);

const root = join(import.meta.dir, "../..");
const path = "scripts/manual/first-build.svg";
const build = "bough build --docker . --tag greeter";
const lines = [build, build, "bough run greeter"];
const columns = 96;
const title = "A build, the same build from the cache, and the image's command";

test("README's recording is what the program shows today, apart from ids and times", async () => {
  const home = temporaryDirectory();
  cpSync(join(root, "test/readme/greeter"), home, { recursive: true });
  const layout = await makeBusyboxLayout(join(home, "layout"));
  const shown = await openBoughTerminal({
    ...{ home, columns, rows: 40 },
    environment: { BOUGH_HOME: join(home, ".local/state/bough") },
  });
  try {
    await shown.run(`bough -q images import ${layout} --tag alpine:3.20; rm -r layout; clear`);
    for (const [index, line] of lines.entries()) {
      shown.type(line);
      await shown.waitFor(new RegExp(`^(\\$ .*[^]*\\n){${index + 1}}\\$$`, "m"));
    }
    const text = shown.styledHistory().replaceAll(home, "/home/you").replace(/\n\$$/, "");
    const drawn = drawTerminal(title, text, columns);
    const file = join(root, path);
    const kept = existsSync(file) ? readFileSync(file, "utf8") : "";
    if (process.env.UPDATE_GOLDEN === "1" && normalize(kept) !== normalize(drawn)) writeFileSync(file, drawn);
    expect(normalize(drawn)).toBe(normalize(readFileSync(file, "utf8")));
  } finally {
    shown.close();
  }
});

test("README shows the recording", () => {
  const [first] = readFileSync(join(root, "README.md"), "utf8").match(/^!\[.*$/m) ?? [];
  expect(first).toBe(`![${title}](${path})`);
});

function normalize(drawn: string): string {
  return drawn
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "UUID")
    .replace(/tagged [0-9a-f]{12} /g, "tagged ID ")
    .replace(/build:[0-9a-f]{16}/g, "build:KEY")
    .replace(/\b\d+(\.\d+)? s\b/g, "TIME")
    .replace(/ +\d+\.\ds\b/g, " TIME");
}
