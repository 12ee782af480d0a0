/**
 * Makes dist/release from the checked-out commit: an archive and an npm package for every target (or for those named as
 * arguments), Debian packages, the installer, a bill of materials, SHA256SUMS and its signature. The same commit gives the same bytes. `--make-key FILE` makes
 * a new pair of keys instead.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatBytes } from "../../src/terminal/quantity.ts";
import { renderTable } from "../../src/terminal/table.ts";
import { bundledPackages, renderLicenses, runtimeLicenses } from "../licenses.ts";
import { manPages } from "../manual/man-pages.ts";
import { runScript } from "../run-script.ts";
import type { ArchiveEntry } from "./archive-entry.ts";
import { materialsOf, renderBillOfMaterials } from "./bill-of-materials.ts";
import { readSource, type Source } from "./commit.ts";
import { compile } from "./compile.ts";
import { debName, writeDeb } from "./deb.ts";
import { renderPublicKey, signFile } from "./minisign.ts";
import { mainPackage, platformPackage, readNpmName } from "./npm.ts";
import { keyVariable, makeReleaseKey, publicKeyFiles, readReleaseKey } from "./release-key.ts";
import { runProgram } from "./run-program.ts";
import { lockedPackage } from "./runtime.ts";
import { archiveLimitBytes, programLimitBytes } from "./size-limits.ts";
import { writeTar } from "./tar.ts";
import { executableName, type Target, targets } from "./targets.ts";
import { writeZip } from "./zip.ts";

const root = join(import.meta.dir, "../..");
const out = join(root, "dist/release");

async function main(words: readonly string[]): Promise<void> {
  if (words[0] === "--make-key") makeKey(words.slice(1));
  else await makeRelease(words);
}

function makeKey([file, ...others]: readonly string[]): void {
  if (file === undefined || others.length > 0) throw new Error("--make-key takes the name of a new file");
  const publicKey = makeReleaseKey(root, file);
  process.stdout.write(
    `${file} has the secret key: keep it, and a copy, where nobody else can read it\n` +
      `${publicKey} is its public key, now in ${publicKeyFiles.join(", ")}: commit these\n`,
  );
}

async function makeRelease(names: readonly string[]): Promise<void> {
  const chosen = chooseTargets(names);
  const key = readReleaseKey(root, process.env);
  const npmName = readNpmName(process.env);
  const source = readSource(root);
  const packages = await bundledPackages();
  const documents = await describeRelease(renderLicenses(packages, runtimeLicenses()));
  const work = mkdtempSync(join(tmpdir(), "bough-release-"));
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const rows: string[][] = [];
  try {
    for (const target of chosen) rows.push(release(target, { source, documents, npmName }, work));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  const main = mainPackage(chosen, { source, name: npmName, files: documents }, compress);
  put(main.file, main.content);
  const runtimes = chosen.map(({ runtimePackage }) => runtimePackage);
  const materials = materialsOf(packages, runtimes, (name) => lockedPackage(root, name));
  put(`bough-${source.version}.cdx.json`, renderBillOfMaterials(source, materials));
  put("install.sh", readFileSync(join(root, "scripts/install.sh")), 0o755);
  const sums = [...sha256.entries()].toSorted(([one], [other]) => (one < other ? -1 : 1));
  const list = sums.map(([name, digest]) => `${digest}  ${name}\n`).join("");
  put("SHA256SUMS", list);
  if (key !== undefined) put("SHA256SUMS.minisig", signFile(list, describeSource(source), key));
  process.stdout.write(
    renderTable({ header: ["TARGET", "EXECUTABLE", "BOUGH'S PART", "ARCHIVE", "FILE"], rows }),
  );
  process.stderr.write(
    key === undefined
      ? `NOT SIGNED: install.sh takes this release only with --unsigned. ${keyVariable} names the file with the key.\n`
      : `signed with the key ${renderPublicKey(key)}\n`,
  );
}

/** The signature's comment; scripts/install.sh reads the version from it. */
function describeSource({ version, commit }: Source): string {
  return `bough ${version} commit ${commit}`;
}

function chooseTargets(names: readonly string[]): readonly Target[] {
  const known = targets.map(({ name }) => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`there is no target ${unknown}; there are ${known.join(", ")}`);
  return names.length === 0 ? targets : targets.filter(({ name }) => names.includes(name));
}

/** Returns the files beside the executable in every archive. */
async function describeRelease(licenses: string): Promise<ArchiveEntry[]> {
  const text = (path: string, content: string): ArchiveEntry => ({
    type: "file",
    path,
    mode: 0o644,
    content,
  });
  const completion = (shell: string) =>
    runProgram([process.execPath, "src/main.ts", "completion", shell], { cwd: root });
  return [
    text("README.md", readFileSync(join(root, "README.md"), "utf8")),
    text("LICENSE", readFileSync(join(root, "LICENSE"), "utf8")),
    text("THIRD-PARTY-LICENSES.md", licenses),
    text("completions/bough.bash", completion("bash")),
    text("completions/_bough", completion("zsh")),
    text("completions/bough.fish", completion("fish")),
    ...(await manPages()).map((page) => text(`man/${page.name}`, page.text)),
  ];
}

interface Release {
  source: Source;
  documents: readonly ArchiveEntry[];
  npmName: string;
}

function release(target: Target, { source, documents, npmName }: Release, work: string): string[] {
  const { content, runtimeBytes } = compile(root, target, source, work);
  const directory = `bough-${source.version}-${target.name}`;
  const executable: ArchiveEntry = { type: "file", path: executableName(target), mode: 0o755, content };
  const files = [executable, ...documents];
  const entries = files.map((entry) => ({
    ...entry,
    path: `${directory}/${entry.path}`,
  }));
  const archive =
    target.archive === "zip" ? writeZip(entries, source.date) : compress(writeTar(entries, source.date));
  const name = `${directory}.${target.archive}`;
  const programBytes = content.byteLength - runtimeBytes;
  checkSize(`bough's part of ${target.name}`, programBytes, programLimitBytes);
  checkSize(name, archive.byteLength, archiveLimitBytes);
  put(name, archive);
  const npm = platformPackage(target, { source, name: npmName, files }, compress);
  put(npm.file, npm.content);
  const deb = debName(target, source);
  if (deb !== undefined) put(deb, writeDeb(target, source, files, compress));
  const sizes = [content.byteLength, programBytes, archive.byteLength].map(formatBytes);
  return [target.name, ...sizes, name];
}

function compress(content: Uint8Array<ArrayBuffer>): Uint8Array {
  return Bun.gzipSync(content, { level: 9, library: "libdeflate" });
}

function checkSize(what: string, bytes: number, limit: number): void {
  if (bytes <= limit) return;
  throw new Error(`${what} has ${formatBytes(bytes)}; the limit is ${formatBytes(limit)} (size-limits.ts)`);
}

/** Digests of the written files, by name. */
const sha256 = new Map<string, string>();

function put(name: string, content: string | Uint8Array, mode = 0o644): void {
  writeFileSync(join(out, name), content, { mode });
  sha256.set(name, new Bun.CryptoHasher("sha256").update(content).digest("hex"));
}

await runScript(() => main(process.argv.slice(2)));
