/**
 * A Debian root with Wine, from the machine's own package mirror, and in it the directory of a Windows machine (`prefix`). Made once
 * (about a minute, 600 MB) and kept outside of the tree. Never changed: each test writes to a layer of its own above it.
 */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory } from "../support/kept-results.ts";

/** Wine of Debian 12 lacks a library that Bun needs, and can't remove directories. */
const suite = "trixie";

/** The directory of the Windows machine in the root. */
export const prefix = "/windows";

/** Wine's variables: no messages of its own and of its libraries, and names of files in UTF-8. */
export const wineVariables = [
  "HOME=/root",
  `WINEPREFIX=${prefix}`,
  "WINEDEBUG=-all",
  "LANG=C.UTF-8",
  "XDG_RUNTIME_DIR=/tmp",
];

const libraries = "/usr/lib/x86_64-linux-gnu/wine/x86_64-windows";

/** Large files that no program of a terminal needs. */
const leftOut = [
  ..."d2d1* d3d* dwrite* ieframe* jscript* mshtml* msi.dll msvcp* msvcr[0-9]* msxml* opengl* wined3d* winedbg* x3d* xapo* xaudio* *.msstyles"
    .split(" ")
    .map((name) => `${libraries}/${name}`),
  "/usr/lib/x86_64-linux-gnu/wine/i386-windows/*",
  ...["doc", "info", "locale", "man"].map((name) => `/usr/share/${name}/*`),
];

/** Starts Wine once, which makes the directory, and makes the libraries in it links to those of the package. */
const makeMachine = `
  ${wineVariables.join(" ")} /usr/lib/wine/wine64 wineboot --init
  ${wineVariables.join(" ")} /usr/lib/wine/wineserver64 --wait
  cd ${prefix}/drive_c/windows/system32
  for library in ${libraries}/*; do
    name=$(basename "$library")
    if cmp --silent "$library" "$name"; then ln --force "$library" "$name"; fi
  done
  rm -rf ${prefix}/drive_c/windows/syswow64`;

const recipe = { suite, leftOut, makeMachine };

/** Returns the root's path. */
export async function findWineRoot(): Promise<string> {
  const cache = cacheDirectory();
  mkdirSync(cache, { recursive: true });
  const digest = new Bun.CryptoHasher("sha256").update(JSON.stringify(recipe)).digest("hex").slice(0, 12);
  const directory = join(cache, `wine-${suite}-${digest}`);
  // Several processes run tests: the first one makes it, and the others wait.
  if (!existsSync(directory))
    await run(["flock", join(cache, "wine.lock"), process.execPath, import.meta.path, directory]);
  return directory;
}

/** Runs in a process of its own, with the lock. */
async function makeRoot(directory: string): Promise<void> {
  if (existsSync(directory)) return;
  const unfinished = mkdtempSync(join(cacheDirectory(), "unfinished-"));
  try {
    await run([
      "mmdebstrap",
      "--variant=minbase",
      "--include=wine64",
      "--dpkgopt=force-unsafe-io",
      ...leftOut.map((path) => `--dpkgopt=path-exclude=${path}`),
      "--skip=output/dev",
      `--customize-hook=chroot "$1" sh -c '${makeMachine}'`,
      suite,
      join(unfinished, "root"),
      await mirror(),
    ]);
    renameSync(join(unfinished, "root"), directory);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/** Returns the line of this machine's package sources for its own suite, with another suite. */
async function mirror(): Promise<string> {
  const format = "deb $(SITE) $(RELEASE) $(COMPONENT)";
  const lines = (await run(["apt-get", "indextargets", "--format", format, "Created-By: Packages"])).split(
    "\n",
  );
  // Not those of updates and security: their names have a hyphen.
  const own = lines.find((line) => /^deb \S+ [a-z]+ main$/.test(line));
  if (own === undefined) throw new Error("apt has no package sources: run apt-get update");
  return own.replace(/ [a-z]+ main$/, ` ${suite} main`);
}

async function run(command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}:\n${stderr.slice(-2000)}`);
  return stdout;
}

// Without an argument: what `scripts/test` calls, since it takes longer than a test may.
if (import.meta.main) await (process.argv[2] === undefined ? findWineRoot() : makeRoot(process.argv[2]));
