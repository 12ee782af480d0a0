/**
 * Random builds: a Dockerfile, its context and its build arguments, and random edits of them. All commands are deterministic, so
 * that two builds of a recipe must make the same file system.
 */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { pick, type Random } from "./pick.ts";
import { nameStages, optionsOf, stageInstruction, startStages } from "./stages.ts";

export interface Recipe {
  context: string;
  /** The instructions after FROM. */
  lines: string[];
  /** True if the lines can have further FROMs and copies between stages. */
  hasStages: boolean;
  /** The stage to build, as a fraction of the number of stages; `undefined` for the last one. */
  target: number | undefined;
  /** Options of the command line. */
  options: readonly string[];
  ignore: string[];
  buildArgs: Map<string, string>;
  /** The address of a file on the loopback, and the version of its content. */
  url: { address: string; version: number };
}

const paths = [
  "a.txt",
  "b.txt",
  "dir/c.txt",
  "dir/sub/d.txt",
  "dir/sp ace.txt",
  "dir/é.txt",
  "dir/link",
  "tool.sh",
  "deep/x/y/z",
];
const modes = [0o644, 0o600, 0o755, 0o444, 0o640];
const targets = ["a.txt", "dir", "missing", "../b.txt"];
/** The modification time of all files, in whole seconds, so that a changed file can have the same time as before. */
const writtenAt = 1_700_000_000;
const contents = ["one", "two", "ten", "longer than the others", "", "é\n", "#!/bin/sh\necho tool\n"];

export function startRecipe(
  { context, address, hasStages }: { context: string; address: string; hasStages: boolean },
  random: Random,
): Recipe {
  const recipe: Recipe = {
    context,
    hasStages,
    target: undefined,
    options: [],
    lines: [],
    ignore: [],
    buildArgs: new Map(),
    url: { address, version: 1 },
  };
  for (const path of paths.slice(0, 5)) put(recipe, path, pick(random, contents));
  link(recipe, "dir/link", pick(random, targets));
  recipe.lines.push("ARG A", `ARG B=${JSON.stringify(pick(random, values))}`, "COPY dir /data/");
  const count = 3 + Math.floor(random() * 5);
  for (let index = 0; index < count; index++) recipe.lines.push(instruction(recipe, random));
  if (hasStages) recipe.lines.push(...startStages(() => instruction(recipe, random), random));
  write(recipe);
  return recipe;
}

/** Changes one thing, and returns a description of it. */
export function edit(recipe: Recipe, random: Random): string {
  const change = pick(random, edits);
  const description = change(recipe, random);
  write(recipe);
  return description;
}

/** Changes the destination, owner or mode of a COPY. */
export function editCopy(recipe: Recipe, random: Random): string {
  const copies = [...recipe.lines.keys()].filter((index) => recipe.lines[index]?.startsWith("COPY "));
  const index = pick(random, copies.length === 0 ? [0] : copies);
  const words = (recipe.lines[index] ?? "").split(" ").filter((word) => !word.startsWith("--ch"));
  const flag = pick(random, ["", "--chown=1:2", "--chown=1:3", "--chmod=600", "--chmod=u+x,g-r"]);
  if (flag !== "") words.splice(1, 0, flag);
  if (random() < 0.3) words.splice(-1, 1, pick(random, ["/data/", "/data", "./"]));
  recipe.lines[index] = words.join(" ");
  write(recipe);
  return `change to ${recipe.lines[index]}`;
}

/** Repairs a recipe that fails at a line of its Dockerfile: writes missing files, and deletes the failed instruction. */
export function repair(recipe: Recipe, failed: number, random: Random): string {
  for (const path of paths)
    if (!isFile(join(recipe.context, path))) put(recipe, path, pick(random, contents));
  recipe.ignore = [];
  const [line] = recipe.lines.splice(indexOfLine(failed, recipe) ?? randomIndex(recipe, random), 1);
  write(recipe);
  return `repair, and delete ${line}`;
}

/** Returns the index of the instruction at a line of the Dockerfile; an instruction may have several lines. */
function indexOfLine(failed: number, { lines, hasStages }: Recipe): number | undefined {
  let line = hasStages ? 3 : 2;
  for (const [index, { length }] of lines.map((text) => text.split("\n")).entries()) {
    if (failed >= line && failed < line + length) return index;
    line += length;
  }
  return undefined;
}

function write(recipe: Recipe): void {
  const { context, lines, ignore, hasStages, target } = recipe;
  recipe.options = hasStages ? optionsOf(lines, target) : [];
  const all = hasStages ? nameStages(lines) : ["FROM busybox:1", ...lines];
  writeChanged(join(context, "Dockerfile"), [...all, ""].join("\n"));
  writeChanged(join(context, ".dockerignore"), ["Dockerfile", ...ignore, ""].join("\n"));
}

/** Writes a file only if its text changes, so that its times stay otherwise. */
function writeChanged(path: string, text: string): void {
  if (!existsSync(path) || readFileSync(path, "utf8") !== text) writeFileSync(path, text);
}

const edits: readonly ((recipe: Recipe, random: Random) => string)[] = [
  (recipe, random) => `write ${put(recipe, pick(random, paths), pick(random, contents))}`,
  (recipe, random) => `write ${put(recipe, pick(random, paths), pick(random, contents))}`,
  rewrite,
  rewrite,
  rewrite,
  rewrite,
  (recipe, random) => {
    const path = join(recipe.context, pick(random, paths));
    if (existsSync(path)) utimesSync(path, writtenAt, Math.floor(random() * 1e9));
    return `touch ${path}`;
  },
  (recipe, random) => {
    const path = join(recipe.context, pick(random, paths));
    const mode = pick(random, modes);
    if (isFile(path)) chmodSync(path, mode);
    return `chmod ${mode.toString(8)} ${path}`;
  },
  (recipe, random) => {
    const path = pick(random, [...paths, "dir", "dir/sub"]);
    rmSync(join(recipe.context, path), { recursive: true, force: true });
    return `remove ${path}`;
  },
  (recipe, random) => {
    const path = pick(random, paths);
    return link(recipe, path, pick(random, targets));
  },
  relink,
  relink,
  (recipe, random) => {
    const path = pick(random, paths);
    clear(recipe, path);
    mkdirSync(join(recipe.context, path), { recursive: true });
    chmodSync(join(recipe.context, path), pick(random, [0o755, 0o700]));
    return `make the directory ${path}`;
  },
  (recipe, random) => {
    const [from, to] = [pick(random, paths), pick(random, paths)];
    if (from === to || !isFile(join(recipe.context, from))) return "nothing";
    clear(recipe, to);
    renameSync(join(recipe.context, from), join(recipe.context, to));
    return `rename ${from} to ${to}`;
  },
  insert,
  insert,
  insert,
  (recipe, random) => {
    const [line] = recipe.lines.splice(randomIndex(recipe, random), 1);
    return `delete ${line}`;
  },
  (recipe, random) => {
    recipe.lines[randomIndex(recipe, random)] = instruction(recipe, random);
    return "replace an instruction";
  },
  (recipe, random) => {
    const [line] = recipe.lines.splice(randomIndex(recipe, random), 1);
    if (line !== undefined) recipe.lines.splice(randomIndex(recipe, random), 0, line);
    return `move ${line}`;
  },
  changeArgument,
  changeArgument,
  (recipe, random) => {
    recipe.target = random() < 0.5 ? undefined : random();
    return `the target is ${recipe.target}`;
  },
  (recipe, random) => {
    if (random() < 0.4) recipe.ignore.pop();
    else
      recipe.ignore.push(
        pick(random, ["*.txt", "dir", "!dir/c.txt", "**/d.txt", "dir/*", "!a.txt", "deep/x"]),
      );
    return `.dockerignore: ${recipe.ignore.join(" ")}`;
  },
  (recipe) => {
    recipe.url.version++;
    return "the URL has other content";
  },
  () => "nothing",
];

function changeArgument(recipe: Recipe, random: Random): string {
  const [name, value] = [pick(random, ["A", "B"]), pick(random, values)];
  if (random() < 0.3) recipe.buildArgs.delete(name);
  else recipe.buildArgs.set(name, value);
  return `--build-arg ${name}=${recipe.buildArgs.get(name)}`;
}

/** Writes content of the same size and modification time: only the change time differs, and sometimes the inode. */
function rewrite(recipe: Recipe, random: Random): string {
  const files = paths.filter((path) => (sizeOf(join(recipe.context, path)) ?? 0) > 0);
  if (files.length === 0) return "nothing";
  const path = pick(random, files);
  const absolutePath = join(recipe.context, path);
  const { mode, mtimeMs, size } = statSync(absolutePath);
  const bytes = Buffer.alloc(size, pick(random, ["x", "y", "z"]));
  const isSameInode = random() < 0.8;
  const writtenPath = isSameInode ? absolutePath : `${absolutePath}.new`;
  writeFileSync(writtenPath, bytes, { mode });
  utimesSync(writtenPath, writtenAt, mtimeMs / 1000);
  renameSync(writtenPath, absolutePath);
  return `replace ${path}, as long and as old as before, ${isSameInode ? "in its place" : "by a new file"}`;
}

/** Changes the target of a link; makes a link if there is none. */
function relink(recipe: Recipe, random: Random): string {
  const links = paths.filter((path) => isLink(join(recipe.context, path)));
  return link(recipe, pick(random, links.length === 0 ? paths : links), pick(random, targets));
}

function link(recipe: Recipe, path: string, target: string): string {
  clear(recipe, path);
  symlinkSync(target, join(recipe.context, path));
  return `link ${path} -> ${target}`;
}

const values = ["x", "y z", "", "'q'", "$A", "/w/1"];

function insert(recipe: Recipe, random: Random): string {
  const line = instruction(recipe, random);
  recipe.lines.splice(Math.floor(random() * (recipe.lines.length + 1)), 0, line);
  return `insert ${line}`;
}

function instruction({ url, hasStages }: Recipe, random: Random): string {
  if (hasStages && random() < 0.3) return stageInstruction(random);
  const name = pick(random, ["A", "B", "C"]);
  const quoted = JSON.stringify(pick(random, values));
  const flags = pick(random, [
    "",
    "",
    "",
    "--chown=1:2 ",
    "--chmod=600 ",
    "--chmod=u+x,g-r ",
    "--exclude=*.txt ",
    "--parents ",
  ]);
  const source = pick(random, [
    "a.txt",
    "b.txt",
    "*.txt",
    "dir",
    "dir/*",
    ".",
    "a.txt tool.sh",
    "dir/sub",
    "deep",
    "dir/c.txt dir",
  ]);
  const destination = pick(random, ["/data/", "/data/", "./", "/etc/copied/", "/link/", "/$A/", "sub/"]);
  return pick(random, [
    `ARG ${name}`,
    `ARG ${name}=${quoted}`,
    `ENV ${name}=${quoted}`,
    `ENV ${name}=\${${name}:-unset}-more OTHER=$A`,
    `WORKDIR ${pick(random, ["/w", "rel", "/w/$A", "/data", "/link"])}`,
    `USER ${pick(random, ["root", "1000", "1000:50", "daemon"])}`,
    `COPY ${flags}${source} ${destination}`,
    `COPY ${flags}${source} ${destination}`,
    `COPY ${flags}${source} ${destination}`,
    `ADD ${source} ${destination}`,
    `ADD ${url.address} /fetched/`,
    `COPY <<END /doc-${name}\nit is $${name}\nEND`,
    `RUN echo "$A $B $C" > /tmp/out-${name}; pwd >> /tmp/out-${name}; id >> /tmp/out-${name}`,
    `RUN ["sh", "-c", "echo $A > /tmp/exec"]`,
    "RUN find /data /w /link 2>/dev/null | sort > /tmp/list",
    "RUN cat /data/*.txt > /tmp/all 2>/dev/null || true",
    "RUN rm -rf /data || true",
    "RUN rm -rf /w/sub; mkdir -p /tmp/w/sub && ln -sf /data /tmp/w/sub/ln",
    "RUN [ -e /link ] || ln -s /data /link || true",
    "RUN mkdir -p /data/own && chmod 711 /data/own && chown 3:4 /data/own || true",
    "RUN env | grep -E '^(A|B|C|OTHER)=' | sort > /tmp/env",
    "RUN env | grep -E '^(A|B|C|OTHER)=' | sort | sha256sum > /env",
    "RUN cp -r /data /tmp/data 2>/dev/null || true",
    `RUN <<END\nset -e\necho $${name} > /tmp/heredoc\nEND`,
    "RUN true",
    "RUN chmod -R a+rwX /tmp /data 2>/dev/null || true",
  ]);
}

/** Returns the index of a random instruction. */
function randomIndex({ lines }: Recipe, random: Random): number {
  return Math.floor(random() * Math.max(1, lines.length));
}

function put(recipe: Recipe, path: string, content: string): string {
  clear(recipe, path);
  const absolutePath = join(recipe.context, path);
  writeFileSync(absolutePath, content);
  utimesSync(absolutePath, writtenAt, writtenAt);
  return path;
}

/** Removes an entry, and makes directories of all its parents. */
function clear({ context }: Recipe, path: string): void {
  rmSync(join(context, path), { recursive: true, force: true });
  const parents: string[] = [];
  for (let parent = dirname(path); parent !== "."; parent = dirname(parent)) parents.unshift(parent);
  for (const parent of parents) {
    const absolute = join(context, parent);
    if (lstatSync(absolute, { throwIfNoEntry: false })?.isDirectory() === false) rmSync(absolute);
    mkdirSync(absolute, { recursive: true });
  }
}

function isFile(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/** Returns the size of a file; `undefined` for other entries. */
function sizeOf(path: string): number | undefined {
  return isFile(path) ? statSync(path).size : undefined;
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}
