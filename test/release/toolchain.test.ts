/** `scripts/toolchain.sh` recognizes a Bun by its bytes, and never starts an unknown one. */
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { digestFile, lockedPackage, pinnedExecutables } from "../../scripts/packaging/runtime.ts";
import { targets } from "../../scripts/packaging/targets.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { endOf } from "../support/ended.ts";

const root = join(import.meta.dir, "../..");
const { packageManager } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const version = packageManager.replace("bun@", "");

describe("the digests are those of the packages in bun.lock", () => {
  const pinned = pinnedExecutables(root);
  test.each(targets.map(({ runtimePackage }) => runtimePackage))("%s", (name) => {
    expect(pinned.get(name)?.version).toBe(lockedPackage(root, name).version);
  });

  test("the digest of the Bun that runs this test is among them", () => {
    const digests = [...pinned.values()].map(({ sha512 }) => sha512);
    expect(digests).toContain(digestFile(process.execPath));
  });
});

/** The places where a Bun is looked for, in this order; `npm` is what the registry would send. */
type Place = "node_modules" | "cache" | "PATH" | "npm";
type Kind = "real" | "fake";

const notUsed = `is not the Bun ${version} that scripts/bun.sha512 has the digest of`;

describe("a fake Bun with the right version is never run:", () => {
  test.each<[string, Partial<Record<Place, Kind>>, Place | "none"]>([
    ["in PATH, and npm brings the real one", { PATH: "fake", npm: "real" }, "cache"],
    ["in PATH, and there is no npm", { PATH: "fake" }, "none"],
    ["in node_modules, the real one in the cache", { node_modules: "fake", cache: "real" }, "cache"],
    ["in node_modules, the real one in PATH", { node_modules: "fake", PATH: "real" }, "PATH"],
    ["in the cache, and npm brings the real one", { cache: "fake", npm: "real" }, "cache"],
    ["from the registry", { npm: "fake" }, "none"],
    ["everywhere", { node_modules: "fake", cache: "fake", PATH: "fake", npm: "fake" }, "none"],
  ])("%s", async (_, places, chosen) => {
    const { checkout, canary, ended, found } = await bring(places);
    expect(existsSync(canary)).toBe(false);
    expect(ended.exitCode).toBe(chosen === "none" ? 1 : 0);
    expect(ended.stdout).toBe(chosen === "none" ? "" : `${found(chosen)}\n`);
    const fakes = Object.entries(places).filter(([place, kind]) => place !== "npm" && kind === "fake");
    for (const [place] of fakes)
      expect(ended.stderr).toContain(`not used: ${found(place as Place)} ${notUsed}\n`);
    if (chosen === "none") expect(ended.stderr).toContain("error: ");
    expect(ended.stderr).not.toContain(`${checkout}/scripts/toolchain.sh:`);
  });

  test("a Bun with one more byte than the real one is refused", async () => {
    const directory = temporaryDirectory();
    const path = join(directory, "bun");
    copyFileSync(process.execPath, path);
    writeFileSync(path, "\n", { flag: "a" });
    const { ended } = await bring({}, directory);
    expect(ended).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(`not used: ${path} ${notUsed}`),
    });
  });
});

test("the real Bun is used without a message", async () => {
  const { ended, found } = await bring({ node_modules: "real", PATH: "fake" });
  expect(ended).toEqual({ exitCode: 0, stdout: `${found("node_modules")}\n`, stderr: "" });
});

/** Runs a script that sources toolchain.sh, in a checkout with these Buns. */
async function bring(places: Partial<Record<Place, Kind>>, path = temporaryDirectory()) {
  const checkout = temporaryDirectory();
  const home = temporaryDirectory();
  const canary = join(home, "canary");
  mkdirSync(join(checkout, "scripts"));
  for (const file of ["scripts/toolchain.sh", "scripts/bun.sha512", "package.json"]) {
    copyFileSync(join(root, file), join(checkout, file));
  }
  const probe = join(checkout, "scripts/probe");
  writeFileSync(probe, '. "$(dirname "$0")/toolchain.sh"\nbring_bun\nprintf "%s\\n" "$bun"\n');

  const inModules = "node_modules/@oven/bun-linux-x64/bin/bun";
  const spots: Record<Place, string> = {
    node_modules: join(checkout, inModules),
    cache: join(home, `.cache/bough-toolchain/bun-${version}`, inModules),
    PATH: join(path, "bun"),
    npm: join(home, "registry/bun"),
  };
  for (const [place, kind] of Object.entries(places)) {
    const spot = spots[place as Place];
    mkdirSync(dirname(spot), { recursive: true });
    if (kind === "real") symlinkSync(process.execPath, spot);
    else putScript(spot, `echo ran >> '${canary}'\necho ${version}`);
  }
  if (places.npm !== undefined) {
    putScript(join(path, "npm"), `mkdir -p '${dirname(spots.cache)}' && ln '${spots.npm}' '${spots.cache}'`);
  }
  const child = Bun.spawn(["/bin/sh", probe], {
    env: { PATH: `${path}:${withoutBun()}`, HOME: home },
    stdout: "pipe",
    stderr: "pipe",
  });
  return { checkout, canary, ended: await endOf(child), found: (place: Place) => spots[place] };
}

/** A directory with the programs that the script needs, and neither Bun nor npm. */
function withoutBun(): string {
  const directory = temporaryDirectory();
  for (const program of ["cat", "dirname", "grep", "ln", "mkdir", "rm", "sed", "sh", "sha512sum"]) {
    symlinkSync(Bun.which(program) ?? program, join(directory, program));
  }
  return directory;
}

function putScript(path: string, script: string): void {
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
}
