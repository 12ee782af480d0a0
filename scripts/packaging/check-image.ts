/** Runs the image that `scripts/image` made, with runc and on bough's engine. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runScript } from "../run-script.ts";
import { runProgram } from "./run-program.ts";

const root = join(import.meta.dir, "../..");

await runScript(() => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const isEngine = process.argv.includes("--engine");
  const layout = isEngine
    ? `oci:${join(root, "dist/image-engine")}:${version}-engine`
    : `oci:${join(root, "dist/image")}:${version}`;
  const work = mkdtempSync(join(tmpdir(), "bough-check-image-"));
  try {
    expectVersion(version, "runc", runWithRunc(layout, work, ["bough", "--version"]));
    expectVersion(version, "bough's engine", runOnEngine(layout, work, ["bough", "--version"]));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
});

function expectVersion(version: string, place: string, output: string): void {
  if (output !== `${version}\n`)
    throw new Error(`in ${place}, bough --version says ${JSON.stringify(output)}`);
  process.stdout.write(`runs in ${place}: ${output}`);
}

/** Runs a command with the user, environment and directory of the image's configuration. */
function runWithRunc(layout: string, work: string, words: readonly string[]): string {
  const bundle = join(work, "bundle");
  runProgram(["skopeo", "copy", "--quiet", layout, `oci:${join(work, "layout")}:one`]);
  runProgram(["umoci", "unpack", "--image", `${join(work, "layout")}:one`, bundle]);
  const path = join(bundle, "config.json");
  const config = JSON.parse(readFileSync(path, "utf8"));
  const process = { ...config.process, terminal: false, args: words };
  writeFileSync(path, JSON.stringify({ ...config, process }));
  return runProgram(["runc", "run", "--bundle", bundle, `bough-check-image-${Bun.randomUUIDv7()}`]);
}

/** Runs a command on the engine of the bough that the image contains. */
function runOnEngine(layout: string, work: string, words: readonly string[]): string {
  const bough = [join(work, "bundle/rootfs/usr/local/bin/bough"), "--local"];
  const environment = [`BOUGH_HOME=${join(work, "state")}`];
  const call = (...rest: string[]) => runProgram(["env", ...environment, ...bough, ...rest]);
  call("images", "import", layout, "--tag", "bough:check");
  return call("--session", "check", "run", "--use", "tag:bough:check", "--disposable", "--", ...words);
}
