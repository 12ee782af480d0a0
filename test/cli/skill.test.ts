/** `bough skill`: the short form of the manual where a coding agent looks. */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";

const places: [agent: string, directory: string][] = [
  ["claude", ".claude/skills"],
  ["codex", ".codex/skills"],
  ["opencode", ".config/opencode/skills"],
  ["cline", ".cline/skills"],
  ["amp", ".config/agents/skills"],
];

const boughAt = (home: string) => (line: string) =>
  runBough(["skill", ...line.split(" ")], { workingDirectory: home, environment: { HOME: home } });

test.each(places)("skill install %s writes it to %s, and remove removes it", async (agent, directory) => {
  const home = temporaryDirectory();
  const bough = boughAt(home);
  const path = join(home, directory, "bough/SKILL.md");
  expect(await bough(`install ${agent} -q`)).toEqual({ exitCode: 0, stdout: `${path}\n`, stderr: "" });
  const text = readFileSync(path, "utf8");
  expect(text).toMatch(/^---\nname: bough\ndescription: [^\n]{40,500}\n[\s\S]*?\n---\n/);
  expect(text).toContain("## Before anything else");
  writeFileSync(path, text.replace(/bough-version: .*/, 'bough-version: "0.0.1"'));
  const listed = JSON.parse((await bough("list -f json")).stdout);
  expect(listed.filter((each: { version: string | null }) => each.version !== null)).toEqual([
    { agent, path, version: "0.0.1", isCurrent: false },
  ]);
  expect((await bough("upgrade")).exitCode).toBe(0);
  expect(readFileSync(path, "utf8")).toBe(text);
  expect((await bough("remove")).exitCode).toBe(0);
  expect(existsSync(path)).toBe(false);
  expect(await bough("remove")).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("is not installed"),
  });
});

test("without a name it is for the agents that are at home here; a file of another's stays", async () => {
  const home = temporaryDirectory();
  const bough = boughAt(home);
  expect(await bough("install -q")).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("no coding agent"),
  });
  mkdirSync(join(home, ".codex"));
  expect((await bough("install -q")).stdout).toBe(`${home}/.codex/skills/bough/SKILL.md\n`);
  rmSync(join(home, ".codex"), { recursive: true });
  mkdirSync(join(home, ".config/amp"), { recursive: true });
  expect((await bough("install -q")).stdout).toBe(`${home}/.config/agents/skills/bough/SKILL.md\n`);
  const own = join(home, ".claude/skills/bough");
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, "SKILL.md"), "mine\n");
  expect(await bough("install claude")).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("was not written by bough"),
  });
  expect(await bough("install emacs")).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("There are claude, codex, opencode, cline, amp."),
  });
  expect(readFileSync(join(own, "SKILL.md"), "utf8")).toBe("mine\n");
});
