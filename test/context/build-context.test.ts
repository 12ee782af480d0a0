import { afterEach, expect, test } from "bun:test";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openBuildContext } from "../../src/context/build-context.ts";
import { readIgnoreRules } from "../../src/context/patterns/ignore.ts";
import { BoughError } from "../../src/errors.ts";
import { makeTree, removeTrees } from "./make-tree.ts";

afterEach(removeTrees);

async function refusal(
  open: () => unknown,
): Promise<{ message: string; hint: string | undefined; exitCode: number }> {
  try {
    await open();
  } catch (error) {
    if (error instanceof BoughError) {
      const { message, hint, exitCode } = error;
      return { message, hint: hint === undefined ? hint : String(hint), exitCode };
    }
    throw error;
  }
  throw new Error("nothing was refused");
}

test("a context has its path as given, as an absolute path, and with its links resolved", async () => {
  const root = makeTree("real/a");
  symlinkSync("real", join(root, "link"));
  expect(await openBuildContext("./link", root)).toEqual({
    path: "./link",
    absolutePath: join(root, "link"),
    realPath: join((await openBuildContext(root, "/")).realPath, "real"),
  });
});

test.each([
  ["missing", "the build context missing does not exist", "CONTEXT is the directory whose files"],
  ["file", "the build context file is not a directory", "CONTEXT is a file: did you mean --dockerfile file?"],
  ["file/below", "the build context file/below does not exist", ""],
  ["new\nline\u001b[2J", 'the build context "new\\nline\\u{1b}[2J" does not exist', ""],
])("CONTEXT %j is refused", async (path, message, hint) => {
  const root = makeTree("file");
  const refused = await refusal(() => openBuildContext(path, root));
  expect(refused.message).toStartWith(message);
  expect(refused.hint ?? "").toStartWith(hint);
  expect(refused.exitCode).toBe(2);
});

test.each([
  ["the path of a directory", (bytes: Buffer) => bytes.toString()],
  ["a link to one", () => "link"],
])("a context whose path is not valid UTF-8 is refused: %s", async (_, path) => {
  const root = makeTree("");
  const bytes = Buffer.from("by\xfftes", "latin1");
  mkdirSync(Buffer.concat([Buffer.from(`${root}/`), bytes]));
  symlinkSync(bytes, join(root, "link"));
  const refused = await refusal(() => openBuildContext(path(bytes), root));
  expect(refused).toEqual({
    message: `cannot read the build context ${join(root, "by\ufffdtes")}: its path is not valid UTF-8`,
    hint: "Rename or move it.",
    exitCode: 2,
  });
});

test("a context without read permission is refused", async () => {
  const root = makeTree("closed/a");
  chmodSync(root, 0o755);
  chmodSync(join(root, "closed"), 0o311);
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65534);
  const refused = await refusal(() => openBuildContext("closed", root)).finally(
    () => isRoot && process.seteuid?.(0),
  );
  expect(refused).toMatchObject({
    message: "cannot read the build context closed: permission denied",
    exitCode: 2,
  });
});

function ruleTexts(contextPath: string, dockerfilePath: string | undefined): string[] {
  return readIgnoreRules({ contextPath, dockerfilePath, defaultExcludes: true }).rules.map(
    ({ text, origin }) => `${text} ${origin.kind === "file" ? `${origin.path}:${origin.line}` : origin.kind}`,
  );
}

test("the ignore file next to the Dockerfile replaces the one in the context", () => {
  const root = makeTree("docker/");
  writeFileSync(join(root, ".dockerignore"), "\nof-the-context");
  writeFileSync(join(root, "docker/Dockerfile.dev.dockerignore"), "of-the-dockerfile");
  const own = join(root, "docker/Dockerfile.dev.dockerignore");
  expect(ruleTexts(root, join(root, "docker/Dockerfile.dev"))).toEqual([`of-the-dockerfile ${own}:1`]);
  expect(ruleTexts(root, join(root, "docker/Dockerfile"))).toEqual([
    `of-the-context ${root}/.dockerignore:2`,
  ]);
  expect(ruleTexts(root, undefined)).toEqual([`of-the-context ${root}/.dockerignore:2`]);
  expect(ruleTexts(join(root, "docker"), undefined)).toEqual([]);
});

test("an empty ignore file next to the Dockerfile means no rules", () => {
  const root = makeTree("");
  writeFileSync(join(root, ".dockerignore"), "a");
  writeFileSync(join(root, "Dockerfile.dockerignore"), "");
  expect(ruleTexts(root, join(root, "Dockerfile"))).toEqual([]);
});

test.each([
  ["a directory", (path: string) => mkdirSync(path), "it is not a regular file"],
  ["a pipe", (path: string) => void Bun.spawnSync(["mkfifo", path]), "it is not a regular file"],
  [
    "UTF-16",
    (path: string) => writeFileSync(path, Buffer.from("\uFEFFdist\n", "utf16le")),
    "it is not UTF-8 text",
  ],
  ["a circular link", (path: string) => symlinkSync(".dockerignore", path), "it is a symbolic link"],
])("an ignore file that is %s is refused", async (_, make, message) => {
  const root = makeTree("");
  make(join(root, ".dockerignore"));
  const refused = await refusal(() => ruleTexts(root, undefined));
  expect(refused.message).toStartWith(`cannot read ${root}/.dockerignore: ${message}`);
});
