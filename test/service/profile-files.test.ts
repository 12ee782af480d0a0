import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { profileDirectory, readProfileFiles } from "../../src/service/profiles/profile-editor.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "bough-profiles-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

test.each([
  [{ CONTREE_HOME: "/srv/contree", XDG_CONFIG_HOME: "/etc/xdg", HOME: "/home/me" }, "/srv/contree"],
  [{ XDG_CONFIG_HOME: "/etc/xdg", HOME: "/home/me" }, "/etc/xdg/contree"],
  [{ XDG_CONFIG_HOME: "relative", HOME: "/home/me" }, "/home/me/.config/contree"],
  [{ HOME: "/home/me" }, "/home/me/.config/contree"],
])("profiles of %o are in %s", (environment, directory) => {
  expect(profileDirectory(environment)).toBe(directory);
});

test("auth.ini is read after cli.ini, so its values take precedence", () => {
  writeFileSync(join(home, "auth.ini"), "[profile:a]\n");
  writeFileSync(join(home, "cli.ini"), "[DEFAULT]\n");
  expect(readProfileFiles({ CONTREE_HOME: home }).map(({ text }) => text)).toEqual([
    "[DEFAULT]\n",
    "[profile:a]\n",
  ]);
});

test("without files there are no profiles", () => {
  expect(readProfileFiles({ CONTREE_HOME: join(home, "none") })).toEqual([]);
});

test("an unreadable file is an error with its path", () => {
  mkdirSync(join(home, "cli.ini"));
  expect(() => readProfileFiles({ CONTREE_HOME: home })).toThrow(join(home, "cli.ini"));
});
