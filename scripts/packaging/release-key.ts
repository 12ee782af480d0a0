/** The key pair that signs releases: the public key is in the repository, the secret key must be outside of it. */
import { existsSync, readFileSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { releaseKey } from "../../src/cli/about/licenses.ts";
import {
  generateKey,
  parseSecretKey,
  renderPublicKey,
  renderSecretKey,
  type SigningKey,
} from "./minisign.ts";

/** The variable that names the file with the secret key. */
export const keyVariable = "BOUGH_RELEASE_KEY_FILE";

/** The files that contain the public key. */
export const publicKeyFiles: readonly string[] = [
  "src/cli/about/licenses.ts",
  "scripts/install.sh",
  "src/cli/help/topics/install.md",
];

/** Reads the key to sign with, if the environment names one. Throws if its public key is not the repository's. */
export function readReleaseKey(
  root: string,
  environment: Readonly<Record<string, string | undefined>>,
): SigningKey | undefined {
  const file = environment[keyVariable];
  if (file === undefined || file === "") return undefined;
  if (isWithin(root, file)) throw new Error(`${file} is in the repository: a secret key must not be`);
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined)
    throw new Error(`${keyVariable} names ${file}, which is missing; --make-key FILE makes a new key`);
  if (stats.isFile() && (stats.mode & 0o077) !== 0) throw new Error(`others can read ${file}: chmod 600 it`);
  const key = parse(file);
  if (renderPublicKey(key) === releaseKey) return key;
  throw new Error(`${file} is not the key whose public part is in the tree, ${releaseKey}`);
}

/** Makes a new pair: writes the secret key to a new file, and replaces the public key in all files. */
export function makeReleaseKey(root: string, file: string): string {
  if (isWithin(root, file)) throw new Error(`${file} is in the repository: name a file outside of it`);
  if (existsSync(file)) throw new Error(`${file} exists already: the key in it may be in use`);
  const key = generateKey();
  writeFileSync(file, renderSecretKey(key), { mode: 0o600, flag: "wx" });
  for (const path of publicKeyFiles.map((name) => join(root, name))) {
    writeFileSync(path, readFileSync(path, "utf8").replaceAll(releaseKey, renderPublicKey(key)));
  }
  return renderPublicKey(key);
}

function parse(file: string): SigningKey {
  try {
    return parseSecretKey(readFileSync(file, "utf8"));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`${file} cannot be used to sign: ${reason}`, { cause: error });
  }
}

/** Returns true if a file is below `root` after links are resolved; the file itself may be missing. */
function isWithin(root: string, file: string): boolean {
  const way = relative(realpathSync(root), realpathSync(dirname(resolve(file))));
  return way !== ".." && !way.startsWith("../");
}
