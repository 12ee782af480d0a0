/**
 * The screens of a day's work on the engine: a build, the same build from the cache, a failure, a push, the image in lists.
 * `test/cases/terminal/screens-<columns>.txt` has them; `UPDATE_GOLDEN=1` writes them.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { expectGolden } from "../support/golden.ts";
import { Registry } from "../support/registry.ts";
import { openBoughTerminal } from "./bough-terminal.ts";

setDefaultTimeout(180_000);

const cases = join(import.meta.dir, "../cases/terminal");
let registry: Registry;
beforeEach(async () => {
  registry = await Registry.start();
});
afterEach(() => registry.stop());

const dockerfile = `FROM base:1 AS build
WORKDIR /src
COPY package*.json ./
RUN for n in 1 2 3; do echo "added $n packages"; done; echo "warning: package-lock.json is old, and nobody has audited it" >&2
COPY . .
RUN mkdir dist && cp server.js dist/
FROM base:1
COPY --from=build /src/dist /app/dist
EXPOSE 3000
CMD ["cat", "/app/dist/server.js"]
`;
const failing = `FROM base:1
COPY package.json /
RUN exec 2>&1; echo compiling; echo "server.js:1: error: unexpected end, in the middle of a word" >&2; echo "1 error"; exit 2
`;

test.each([80, 120])("at %d columns", async (columns) => {
  const home = temporaryDirectory();
  const layout = await makeBusyboxLayout(temporaryDirectory());
  writeFiles(home, {
    "shop/Dockerfile": dockerfile,
    "shop/failing": failing,
    "shop/package.json": "{}\n",
    "shop/package-lock.json": "{}\n".repeat(1000),
    "shop/server.js": "serve()\n",
  });
  const destination = `docker://${registry.host}/team/project/shop:1`;
  const lines = [
    "bough build --jobs 1 --tag shop:1 .",
    "bough build --tag shop:1 --jobs 1 .",
    "bough build --dockerfile failing .",
    `bough push shop:1 ${destination}`,
    "bough images",
    "bough inspect shop:1",
  ];
  const terminal = await openBoughTerminal({ home, columns, rows: 120, environment: { BOUGH_DOCKER: "1" } });
  try {
    await terminal.run(`cd shop; bough -q images import ${layout} --tag base:1; clear`);
    for (const line of lines) {
      terminal.type(line);
      // Its output, and no other command after it.
      await terminal.waitFor(new RegExp(`^\\$ ${line}\\n((?!\\$ ).*\\n)*\\$(?![^])`, "m"));
    }
    const shown = terminal.history().replace(/\n\$$/, "\n");
    expectGolden(join(cases, `screens-${columns}.txt`), normalize(shown));
    expect(shown).not.toMatch(/…$/m);
  } finally {
    terminal.close();
  }
});

/** Replaces what differs between runs by text of the same width. */
function normalize(shown: string): string {
  return (
    shown
      .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, (id) =>
        id.replace(/\w/g, "0"),
      )
      .replace(/sha256:([0-9a-f]\n?){64}/g, (digest) => digest.replace(/[0-9a-f](?!.*:)/g, "0"))
      .replace(/\bbuild:[0-9a-f]{16}\b/g, `build:${"0".repeat(16)}`)
      .replace(/\b[0-9a-f]{12}\b/g, "0".repeat(12))
      .replaceAll(registry.host, "127.0.0.1:PORT0")
      // The entries of busybox, whose versions have more or fewer applets.
      .replace(/(?<=█ +)\d{3}\b/, "271")
      .replace(/\d\.\ds$/gm, "0.0s")
      .replace(/in \d+\.\d+ s$/gm, "in TIME")
      .replace(/\(\d+ s\)/g, "(TIME)")
      .replace(/\d+ s ago/g, "AGE")
  );
}
