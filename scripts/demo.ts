/** The demo itself; `scripts/demo` brings what it needs. Everything happens in a directory that is removed at the end. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { makeBusyboxLayout } from "../test/support/busybox-image.ts";

const bough = resolve("dist/bough");
const directory = mkdtempSync(join(tmpdir(), "bough-demo-"));
const context = join(directory, "example");
const environment = { PATH: process.env.PATH ?? "", HOME: directory, BOUGH_HOME: join(directory, "state") };
const publicImage = "busybox:stable";

const notes = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: (request) =>
    request.headers.get("if-none-match") === '"notes-1"'
      ? new Response(null, { status: 304 })
      : new Response("first note\nsecond note\nthird note\n", { headers: { ETag: '"notes-1"' } }),
});

try {
  cpSync("scripts/example", context, { recursive: true });
  const base = await makeBase();
  const build = [
    "build",
    "example",
    "--tag",
    "example:demo",
    "--build-arg",
    `BASE=${base}`,
    "--build-arg",
    `NOTES_URL=${notes.url}notes.txt`,
  ];

  await step("1. Build it: a base image, files, a URL, three RUNs.", build);
  await step("2. Build it again: nothing has changed, so nothing is run.", build);
  writeFileSync(join(context, "site", "index.html"), "<h1>Welcome back</h1>\n");
  await step("3. Change site/index.html and build: only what comes after its COPY is run.", build);
  await step("4. What there is now: the images,", ["images"]);
  await step("   and the layers of this context's builds.", ["session", "list", "--filter", "build:"]);
  await step("5. A script gets nothing but the image's UUID.", ["-q", ...build]);
} finally {
  notes.stop(true);
  rmSync(directory, { recursive: true, force: true });
}

/** Docker's own busybox where it can be had, else one made from Debian's static busybox. */
async function makeBase(): Promise<string> {
  const attempt = Bun.spawn([bough, "--local", "-q", "images", "import", publicImage, "--timeout", "30"], {
    env: environment,
    stdout: "ignore",
    stderr: "ignore",
  });
  if ((await attempt.exited) === 0) return publicImage;
  say(`${publicImage} can't be had from here: the base is made from Debian's busybox-static instead.`);
  const layout = await makeBusyboxLayout(join(directory, "base"));
  await step("0. Import the base image.", ["images", "import", layout, "--tag", "busybox:demo"]);
  return "busybox:demo";
}

async function step(title: string, words: readonly string[]): Promise<void> {
  say(`\n${title}`);
  say(`$ bough ${words.map((word) => (/\s/.test(word) ? JSON.stringify(word) : word)).join(" ")}`);
  const started = performance.now();
  const child = Bun.spawn([bough, "--local", ...words], {
    cwd: directory,
    env: environment,
    stdout: "inherit",
    stderr: "inherit",
  });
  const exitCode = await child.exited;
  if (exitCode !== 0) throw new Error(`bough exited with ${exitCode}`);
  say(`(${Math.round(performance.now() - started)} ms)`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
