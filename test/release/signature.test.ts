/** Signatures of releases, which `scripts/install.sh` verifies with minisign or openssl, and behaviour without both. */
import { describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import {
  generateKey,
  parseSecretKey,
  renderPublicKey,
  renderSecretKey,
  signFile,
} from "../../scripts/packaging/minisign.ts";
import { makeReleaseKey, publicKeyFiles, readReleaseKey } from "../../scripts/packaging/release-key.ts";
import { releaseKey } from "../../src/cli/about/licenses.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import {
  archiveName,
  busyboxPath,
  damage,
  filesBelow,
  install,
  makeRelease,
  ownKey,
  pathWith,
  signRelease,
} from "./fake-release.ts";

const unverified = "warning: the signature was not verified, only checksums: ";
const notSigned = "SHA256SUMS is not signed with bough's key: ";
const installed = "/.local/bin/bough (1.2.3)\n";
/** An openssl before 3.0, or LibreSSL: it computes digests, but does not support these signatures. */
const oldOpenssl = { openssl: `[ "$1" = pkeyutl ] && exit 1\nexec ${Bun.which("openssl")} "$@"` };

describe("a good signature is enough", () => {
  test.each<[string, string, Record<string, string>, string]>([
    ["with minisign", "minisign", {}, ""],
    ["with minisign and a broken openssl", "minisign", { openssl: "exit 1" }, ""],
    ["with openssl", "openssl", {}, ""],
    ["with an openssl that is too old", "none", oldOpenssl, unverified],
    ["with neither", "none", {}, unverified],
  ])("%s", async (_, program, scripts, warning) => {
    const { ended } = await install(["--from", makeRelease()], { PATH: pathWith(program, scripts) });
    expect(ended.exitCode).toBe(0);
    expect(ended.output).toStartWith(warning);
    expect(ended.output.includes("warning: ")).toBe(warning !== "");
    expect(ended.output).toContain(installed);
  });

  test.each<[string, (release: string) => void, number, string]>([
    ["a good signature", () => {}, 0, installed],
    ["a bad signature", (release) => signRelease(release, { key: generateKey() }), 1, notSigned],
  ])("in busybox's shell, with its programs and openssl: %s", async (_, spoil, exitCode, message) => {
    const release = makeRelease();
    spoil(release);
    const shell = [Bun.which("busybox") ?? "", "sh"];
    const words = ["--from", release, "--target", "linux-x64-musl"];
    const { ended } = await install(words, { PATH: busyboxPath("openssl") }, { shell });
    expect(ended.output).toContain(message.replace("(1.2.3)", "(bough-1.2.3-linux-x64-musl)"));
    expect(ended.output).not.toContain("warning: ");
    expect(ended.exitCode).toBe(exitCode);
  });

  test.each(["minisign", "openssl"])(
    "a signature by the program minisign is accepted with %s",
    async (program) => {
      const release = makeRelease();
      const secret = join(temporaryDirectory(), "key");
      writeFileSync(secret, renderSecretKey(ownKey));
      const command = ["minisign", "-S", "-s", secret, "-m", "SHA256SUMS", "-t", "bough 1.2.3 commit abc"];
      expect(Bun.spawnSync(command, { cwd: release }).exitCode).toBe(0);
      const { ended } = await install(["--from", release], { PATH: pathWith(program, {}) });
      expect(ended).toMatchObject({ exitCode: 0, output: expect.stringContaining(installed) });
    },
  );

  test("an older release is installed if --version names it", async () => {
    const words = ["--from", makeRelease("1.2.2"), "--version", "1.2.2"];
    const { ended } = await install(words, { PATH: pathWith("minisign", {}) });
    expect(ended).toMatchObject({ exitCode: 0, output: expect.stringContaining("/bough (1.2.2)\n") });
  });

  test("no signature is needed with --unsigned, which causes a warning", async () => {
    const release = makeRelease();
    rmSync(join(release, "SHA256SUMS.minisig"));
    const { ended } = await install(["--from", release, "--unsigned"]);
    expect(ended.exitCode).toBe(0);
    expect(ended.output).toStartWith("warning: the signature is not verified (--unsigned)");
  });
});

type Attack = [name: string, spoil: (release: string) => void, message: string];

const stranger = generateKey();

/** Attacks that are noticed even without a program for signatures. */
const plainAttacks: Attack[] = [
  ["the signature is missing", (release) => rmSync(signatureOf(release)), "there is no file "],
  ["an older release with its own signature", replaceByOlder, 'is signed as "bough 1.2.2 commit '],
  ["a changed byte of the archive", (release) => damage(release), "is corrupt: its SHA-256 is "],
  ["an older release's archives", replaceByOlderArchives, "has no bough 1.2.3 for "],
];

const attacks: Attack[] = [
  ...plainAttacks,
  ["a changed byte of the checksums", (release) => flip(join(release, "SHA256SUMS"), 3), notSigned],
  ["an additional line in the checksums", addLine, notSigned],
  ["the archive and its checksum are replaced", replaceArchive, notSigned],
  ["signed with another key", (release) => signRelease(release, { key: stranger }), notSigned],
  [
    "signed with another key of the same id",
    (release) => signRelease(release, { key: { ...stranger, id: ownKey.id } }),
    notSigned,
  ],
  [
    "the right signature with another key's id",
    (release) => signRelease(release, { key: { ...ownKey, id: stranger.id } }),
    notSigned,
  ],
  ["the signature of another file", signAnother, notSigned],
  ["a changed byte of the signature", (release) => editLine(release, 1, flipLetter), notSigned],
  ["an older release's signature with this version in the comment", renameOlder, notSigned],
  ["a changed byte of the comment's signature", (release) => editLine(release, 3, flipLetter), notSigned],
  ["the comment's signature is missing", (release) => editLine(release, 3, () => ""), notSigned],
  ["an empty signature", (release) => truncateSync(signatureOf(release)), notSigned],
  ["a truncated signature", (release) => truncateSync(signatureOf(release), 120), notSigned],
  [
    "a signature that is an error page",
    (release) => writeFileSync(signatureOf(release), "<html>\n<body>\nno\n</body>\n"),
    notSigned,
  ],
  [
    "another project's release, signed with this key",
    (release) => signRelease(release, { comment: "branch 1.2.3 commit 0" }),
    'is signed as "branch 1.2.3 commit 0"',
  ],
  [
    "a comment with control characters",
    (release) => signRelease(release, { comment: "\u001b[2Jbough 1.2.3" }),
    'is signed as "[2Jbough 1.2.3"',
  ],
];

describe.each([
  ["minisign", attacks],
  ["openssl", attacks],
  ["none", plainAttacks],
] as const)("nothing is installed, with %s", (program, rows) => {
  test.each([...rows])("%s", async (_, spoil, message) => {
    const release = makeRelease();
    spoil(release);
    const prefix = temporaryDirectory();
    mkdirSync(join(prefix, "bin"));
    writeFileSync(join(prefix, "bin/bough"), "the old one");
    const { ended } = await install(["--from", release, "--prefix", prefix], { PATH: pathWith(program, {}) });
    expect(ended.output).toContain(message);
    expect(ended.output).toContain("error: ");
    expect(ended.exitCode).toBe(1);
    expect(readFileSync(join(prefix, "bin/bough"), "utf8")).toBe("the old one");
    expect(filesBelow(prefix)).toEqual(["bin/bough"]);
  });
});

describe("the pair of keys", () => {
  test("has the same public key in all files", async () => {
    for (const file of publicKeyFiles) {
      expect(readFileSync(join(import.meta.dir, "../..", file), "utf8")).toContain(releaseKey);
    }
    const { stdout } = await runBough(["release-key"], { workingDirectory: "/" });
    expect(stdout).toBe(`${releaseKey}\n`);
    expect(Buffer.from(releaseKey, "base64").toString("latin1", 0, 2)).toBe("Ed");
    expect(Buffer.from(releaseKey, "base64")).toHaveLength(42);
  });

  test("the installer's version is bough's", () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dir, "../../package.json"), "utf8"));
    const text = readFileSync(join(import.meta.dir, "../../scripts/install.sh"), "utf8");
    expect(text).toContain(`\nversion=${version}\n`);
  });

  test("can be made: the secret key is for its owner only, and the public key replaces the old one", () => {
    const tree = copyTree();
    const file = join(temporaryDirectory(), "release.key");
    const made = makeReleaseKey(tree, file);
    expect(made).not.toBe(releaseKey);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(renderPublicKey(parseSecretKey(readFileSync(file, "utf8")))).toBe(made);
    for (const path of publicKeyFiles) {
      const text = readFileSync(join(tree, path), "utf8");
      expect(text).toContain(made);
      expect(text).not.toContain(releaseKey);
    }
    expect(() => makeReleaseKey(tree, file)).toThrow(`${file} exists already`);
  });

  test.each(["release.key", "scripts/release.key", "scripts/../release.key"])(
    "a secret key is not written into the repository: %s",
    (name) => {
      const tree = copyTree();
      expect(() => makeReleaseKey(tree, join(tree, name))).toThrow("is in the repository");
      expect(existsSync(join(tree, name))).toBe(false);
    },
  );
});

describe("a release is not signed with", () => {
  const tree = copyTree();
  const write = (text: string, mode = 0o600, directory = temporaryDirectory()) => {
    const path = join(directory, "key");
    writeFileSync(path, text, { mode });
    return path;
  };
  const withPassword = () => {
    const lines = renderSecretKey(ownKey).split("\n");
    const bytes = Buffer.from(lines[1] ?? "", "base64");
    bytes.write("Sc", 2);
    return `${lines[0]}\n${bytes.toString("base64")}\n`;
  };
  test.each<[string, () => string, string]>([
    [
      "another pair's key",
      () => write(renderSecretKey(ownKey)),
      "is not the key whose public part is in the tree",
    ],
    ["a key that others can read", () => write(renderSecretKey(ownKey), 0o644), "others can read "],
    ["a key in the repository", () => write(renderSecretKey(ownKey), 0o600, tree), "is in the repository"],
    ["a key with a password", () => write(withPassword()), "it is protected by a password"],
    ["a public key", () => write(`a\n${renderPublicKey(ownKey)}\n`), "it is not a secret key of minisign's"],
    ["an empty file", () => write(""), "it is not a secret key of minisign's"],
    [
      "a missing file",
      () => join(temporaryDirectory(), "none"),
      "which is missing; --make-key FILE makes a new key",
    ],
  ])("%s", (_, make, message) => {
    expect(() => readReleaseKey(tree, { BOUGH_RELEASE_KEY_FILE: make() })).toThrow(message);
  });

  test("any key if none is named", () => {
    expect(readReleaseKey(tree, {})).toBeUndefined();
  });
});

function copyTree(): string {
  const tree = temporaryDirectory();
  for (const file of publicKeyFiles) {
    mkdirSync(dirname(join(tree, file)), { recursive: true });
    copyFileSync(join(import.meta.dir, "../..", file), join(tree, file));
  }
  return tree;
}

function signatureOf(release: string): string {
  return join(release, "SHA256SUMS.minisig");
}

/** Puts an older release in the place of this one. */
function replaceByOlder(release: string): void {
  const older = makeRelease("1.2.2");
  rmSync(release, { recursive: true });
  renameSync(older, release);
}

/** Puts an older release's archives into this one, signed as this version. */
function replaceByOlderArchives(release: string): void {
  replaceByOlder(release);
  signRelease(release);
}

/** Puts an older release in the place of this one, with this version in its signature's comment. */
function renameOlder(release: string): void {
  replaceByOlder(release);
  editLine(release, 2, (line) => line.replace("1.2.2", "1.2.3"));
}

function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  writeFileSync(path, bytes);
}

function addLine(release: string): void {
  writeFileSync(join(release, "SHA256SUMS"), `${"0".repeat(64)}  more\n`, { flag: "a" });
}

function replaceArchive(release: string): void {
  const other = makeRelease();
  damage(other);
  const content = readFileSync(join(other, archiveName()));
  const digest = new Bun.CryptoHasher("sha256").update(content).digest("hex");
  const sums = readFileSync(join(release, "SHA256SUMS"), "utf8");
  const line = new RegExp(`^[0-9a-f]{64}(?=  ${archiveName()}$)`, "m");
  writeFileSync(join(release, "SHA256SUMS"), sums.replace(line, digest));
  writeFileSync(join(release, archiveName()), content);
}

function signAnother(release: string): void {
  writeFileSync(signatureOf(release), signFile("another file", "bough 1.2.3 commit 0", ownKey));
}

function editLine(release: string, index: number, edit: (line: string) => string): void {
  const lines = readFileSync(signatureOf(release), "utf8").split("\n");
  lines[index] = edit(lines[index] ?? "");
  writeFileSync(signatureOf(release), lines.join("\n"));
}

/** Changes a letter in the middle of base64 text. */
function flipLetter(line: string): string {
  const letter = line.charAt(40) === "A" ? "B" : "A";
  return `${line.slice(0, 40)}${letter}${line.slice(41)}`;
}
