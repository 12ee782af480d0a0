/** Fetched contexts that are kept: when they may be removed, and what a killed removal leaves. */
import { beforeEach, expect, test } from "bun:test";
import { chownSync, existsSync, mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type KeptContexts,
  openKeptContexts,
  removeKeptContexts,
} from "../../src/cli/contexts/kept-contexts.ts";
import { systemClock } from "../../src/clock.ts";
import { lockFile } from "../../src/lock-file.ts";
import { temporaryDirectory } from "../support/bough.ts";

let home: string;
let contexts: KeptContexts;
const id = crypto.randomUUID();

beforeEach(() => {
  home = temporaryDirectory();
  contexts = openKeptContexts(home, systemClock);
});

test("marks of another user's dead process are ignored", () => {
  const path = keep("commit");
  for (const marks of [".users", ".removers"]) {
    const mark = join(path, marks, id);
    writeFileSync(mark, "");
    chownSync(mark, 1, 1);
  }
  const found = contexts.find("group", "commit");
  expect(found?.path).toBe(path);
  found?.[Symbol.dispose]();
  removeKeptContexts(home, "group");
  expect(existsSync(path)).toBe(false);
});

test("a context whose marks can't be written is an error for users", () => {
  const path = keep("commit");
  rmSync(join(path, ".users"), { recursive: true });
  writeFileSync(join(path, ".users"), "");
  expect(() => contexts.find("group", "commit")).toThrow(`cannot store the build context in ${path}: `);
});

/** Keeps a context with these files, calls `use` while it is in use, and returns its path. */
function keep(name: string, files = ["file"], use = (_path: string) => {}): string {
  using held = fetchNew(name, files);
  use(held.path);
  return held.path;
}

function fetchNew(name: string, files: readonly string[]) {
  using started = contexts.begin("group");
  for (const file of files) writeFileSync(join(started.path, file), "");
  return started.keep(name);
}

const kept = () =>
  readdirSync(join(home, "contexts", "group")).map((name) => join(home, "contexts", "group", name));

test.each<[string, (mark: string) => Disposable | undefined, boolean]>([
  ["a living process", lockFile, true],
  ["a dead process", (mark) => void writeFileSync(mark, ""), false],
])("a context with the mark of %s", (_, makeMark, stays) => {
  const path = keep("commit");
  const fetching = join(path, "..", id);
  mkdirSync(join(fetching, ".users"), { recursive: true });
  using _user = makeMark(join(path, ".users", id));
  using _fetching = makeMark(join(fetching, ".users", id));
  for (const at of [path, fetching]) utimesSync(at, new Date(0), new Date(0));
  removeKeptContexts(home, "group");
  expect(existsSync(path)).toBe(stays);
  expect(existsSync(fetching)).toBe(stays);
});

test.each([".users", ".removers"])("a context without its %s", (name) => {
  const path = keep("commit", ["file"]);
  rmSync(join(path, name), { recursive: true });
  expect(contexts.find("group", "commit")?.path).toBe(name === ".users" ? undefined : path);
});

test("only the latest four stay, and none whose fetch was killed", () => {
  const killed = join(home, "contexts", "group", id);
  mkdirSync(join(killed, "tree"), { recursive: true });
  const paths = ["1", "2", "3", "4", "5"].map((name, age) => {
    const path = keep(name);
    utimesSync(path, new Date(), Date.now() / 1000 - 100 + age);
    return path;
  });
  const latest = keep("6");
  expect(kept().sort()).toEqual([...paths.slice(2), latest].sort());
});

test("a context of an earlier boot is fetched again, as a power failure may have cut off its files", () => {
  const path = keep("commit", ["file", "other"]);
  writeFileSync(join(path, ".complete"), `${crypto.randomUUID()}\ncommit\n`);
  expect(contexts.find("group", "commit")).toBeUndefined();
  const again = keep("commit");
  expect(kept()).toEqual([again]);
  expect(contexts.find("group", "commit")?.path).toBe(again);
});

test("a context that is being removed is not found; the one that is fetched instead is", () => {
  const path = keep("commit", ["old"]);
  const removing = lockFile(join(path, ".removers", id));
  expect(contexts.find("group", "commit")).toBeUndefined();
  expect(readdirSync(join(path, ".users"))).toEqual([]);
  const again = keep("commit", ["new"], (at) => expect(existsSync(join(at, "new"))).toBe(true));
  expect(contexts.find("group", "commit")?.path).toBe(again);
  removing[Symbol.dispose]();
});

test("a context whose removal was killed before it began is found", () => {
  const path = keep("commit");
  writeFileSync(join(path, ".removers", id), "");
  expect(contexts.find("group", "commit")?.path).toBe(path);
});

test("a context whose removal was killed is not found if files are missing", async () => {
  const files = Array.from({ length: 1000 }, (_, number) => String(number));
  const path = keep("commit", files);
  const script = `import { removeKeptContexts } from ${JSON.stringify(join(import.meta.dir, "../../src/cli/contexts/kept-contexts.ts"))};
    removeKeptContexts(${JSON.stringify(home)}, "group");`;
  const removing = Bun.spawn([process.execPath, "-e", script]);
  const isWhole = () => files.every((file) => existsSync(join(path, file)));
  while (isWhole() && removing.exitCode === null) await Bun.sleep(0);
  removing.kill("SIGKILL");
  await removing.exited;
  expect(isWhole()).toBe(false);
  expect(contexts.find("group", "commit")).toBeUndefined();
  const another = keep("another");
  expect(kept()).toEqual([another]);
});

test("no context is removed while it is used, even with concurrent removals", async () => {
  const program = join(import.meta.dir, "../support/context-process.ts");
  const processes = Array.from({ length: 4 }, () => Bun.spawn([process.execPath, program, home, "400"]));
  const said = await Promise.all(processes.map(({ stdout }) => new Response(stdout).text()));
  expect(said).toEqual(["", "", "", ""]);
  expect(await Promise.all(processes.map(({ exited }) => exited))).toEqual([0, 0, 0, 0]);
});
