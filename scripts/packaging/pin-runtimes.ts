/**
 * Writes scripts/bun.sha512: the digest of Bun's executable for every target, from the packages that bun.lock pins. Run it after
 * `bun update bun`, with the same Bun: `bun scripts/packaging/pin-runtimes.ts`.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runScript } from "../run-script.ts";
import { digestFile, lockedPackage, pinFile, unpackRuntime } from "./runtime.ts";
import { targets } from "./targets.ts";

const root = join(import.meta.dir, "../..");

await runScript(() => {
  const lines = targets.map((target) => {
    const { version } = lockedPackage(root, target.runtimePackage);
    return `${digestFile(unpackRuntime(root, target))}  ${target.runtimePackage}@${version}\n`;
  });
  const heading =
    "# SHA-512 of the executables in npm's packages, written by scripts/packaging/pin-runtimes.ts\n";
  writeFileSync(join(root, pinFile), heading + lines.join(""));
});
