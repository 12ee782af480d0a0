/** The demo. `scripts/demo` installs what it needs. It works in a directory that is removed at the end. */
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { makeBusyboxLayout } from "../test/support/busybox-image.ts";
import { runScript } from "./run-script.ts";

const publicImage = "busybox:stable";
const program = resolve("dist/bough");

interface Demo {
  directory: string;
  /** Prints a title and a command of bough, and runs it in `directory`. Rejects if it fails. */
  step(title: string, words: readonly string[]): Promise<void>;
  /** Runs bough in `directory` without output. Returns the error, or `undefined` if it succeeds. */
  attempt(words: readonly string[]): Promise<string | undefined>;
}

await runScript(async () => {
  const directory = mkdtempSync(join(tmpdir(), "bough-demo-"));
  const notes = serveNotes();
  try {
    await show(openDemo(directory), `${notes.url}notes.txt`);
  } finally {
    notes.stop(true);
    rmSync(directory, { recursive: true, force: true });
  }
});

async function show(demo: Demo, notesUrl: string): Promise<void> {
  const { directory, step } = demo;
  const context = join(directory, "example");
  cpSync("scripts/example", context, { recursive: true });
  const base = await makeBase(demo);
  const settings = ["--build-arg", `BASE=${base}`, "--build-arg", `NOTES_URL=${notesUrl}`];
  const build = ["build", "--docker", "example", "--tag", "example:demo", ...settings];

  await step("1. Build it as docker build does: two stages, files, a URL.", build);
  await step("2. Build it again: nothing has changed, so nothing is run.", build);
  writeFileSync(join(context, "site", "index.html"), "<h1>Welcome back</h1>\n");
  await step("3. Change site/index.html and build: only what follows its COPY is run.", build);
  await step("4. Run the image's CMD, as docker run does.", ["run", "example:demo"]);
  await step("5. List the images.", ["images"]);
  await step("6. With -q, a script gets only the image's UUID.", ["-q", ...build]);
  say(`\nThe program is ${program}. To have it as the command bough, in a directory of your PATH:`);
  say(`  install -D ${program} ~/.local/bin/bough`);
  say("Then, in a directory with a Dockerfile:");
  say("  bough build --docker . --tag app  # build what docker build would build");
  say("  bough run app                     # run it");
  say("  bough help docker                 # what else to write in place of docker's commands");
}

/** Imports busybox from Docker Hub, or makes an image of Debian's static busybox if that fails. */
async function makeBase({ directory, step, attempt }: Demo): Promise<string> {
  const error = await attempt(["-q", "images", "import", publicImage, "--timeout", "30"]);
  if (error === undefined) return publicImage;
  say(`${publicImage} can't be imported here, so the base is made from Debian's busybox-static:\n${error}`);
  const layout = await makeBusyboxLayout(join(directory, "base"));
  await step("0. Import the base image.", ["images", "import", layout, "--tag", "busybox:demo"]);
  return "busybox:demo";
}

function openDemo(directory: string): Demo {
  if (!existsSync(program)) throw new Error(`${program} is missing: ./scripts/build makes it`);
  const environment = { PATH: process.env.PATH ?? "", HOME: directory, BOUGH_HOME: join(directory, "state") };
  const command = (words: readonly string[]) => [program, "--local", ...words];
  const place = { cwd: directory, env: environment };
  return {
    directory,
    async attempt(words) {
      const child = Bun.spawn(command(words), { ...place, stdout: "ignore", stderr: "pipe" });
      const error = await new Response(child.stderr).text();
      return (await child.exited) === 0 ? undefined : error.trim();
    },
    async step(title, words) {
      say(`\n${title}`);
      say(`$ bough ${words.map((word) => (/\s/.test(word) ? JSON.stringify(word) : word)).join(" ")}`);
      const started = performance.now();
      const exitCode = await Bun.spawn(command(words), { ...place, stdout: "inherit", stderr: "inherit" })
        .exited;
      if (exitCode !== 0) throw new Error(`the demo ends here: bough exited with ${exitCode}`);
      say(`(${Math.round(performance.now() - started)} ms)`);
    },
  };
}

function serveNotes() {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    fetch: (request) =>
      request.headers.get("if-none-match") === '"notes-1"'
        ? new Response(null, { status: 304 })
        : new Response("first note\nsecond note\nthird note\n", { headers: { ETag: '"notes-1"' } }),
  });
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
