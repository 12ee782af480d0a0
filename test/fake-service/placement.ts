/** Applies an instance's files, and bough's script that places directories and links, to an image's tree. */
import type { InstanceBody } from "../../src/service/wire/instance.ts";
import type { FakeState, FakeTree } from "./state.ts";

export function putFiles(tree: FakeTree, { files = {} }: InstanceBody, state: FakeState): void {
  const contents = new Map([...state.files.values()].map(({ uuid, content }) => [uuid, content]));
  for (const [path, { uuid, uid, gid, mode }] of Object.entries(files)) {
    makeParents(tree, path);
    const content = contents.get(uuid) ?? new Uint8Array();
    tree.set(path, { type: "file", content, mode: Number.parseInt(mode, 8), uid, gid });
  }
}

export function isPlacement(script: string): boolean {
  return script.includes("\ndirectories() {");
}

/** Runs the placement script. Supports only the commands of that script. */
export function runPlacement(tree: FakeTree, script: string): void {
  for (const line of script.slice(script.lastIndexOf("\n}\n") + 3).split("\n")) {
    const missing = /^\[ -d (.+?) \] \|\| \{ directories .+? && chown (\d+:\d+) .+?; \}$/.exec(line);
    const [path = ""] = wordsOf(missing?.[1] ?? "");
    if (missing === null) runCommand(tree, wordsOf(line));
    else if (!tree.has(path)) {
      runCommand(tree, ["directories", path]);
      runCommand(tree, ["chown", missing[2] ?? "", path]);
    }
  }
}

function runCommand(tree: FakeTree, [command = "", ...words]: readonly string[]): void {
  const change = (paths: readonly string[], attributes: { mode?: number; uid?: number; gid?: number }) => {
    for (const path of paths) tree.set(path, { ...(tree.get(path) ?? { type: "directory" }), ...attributes });
  };
  switch (command) {
    case "":
      break;
    case "directories":
      for (const path of words) {
        makeParents(tree, path);
        if (!tree.has(path)) tree.set(path, { type: "directory" });
      }
      break;
    case "chown": {
      const [owner = "", ...paths] = words.filter((word) => word !== "-h");
      const [uid, gid] = owner.split(":").map(Number);
      change(paths, { ...(uid === undefined ? {} : { uid }), ...(gid === undefined ? {} : { gid }) });
      break;
    }
    case "chmod":
      change(words.slice(1), { mode: Number.parseInt(words[0] ?? "", 8) });
      break;
    case "clear_directories":
    case "clear_others":
      for (const path of words) {
        if ((tree.get(path)?.type === "directory") !== (command === "clear_directories")) continue;
        for (const other of [...tree.keys()])
          if (other === path || other.startsWith(`${path}/`)) tree.delete(other);
      }
      break;
    case "links":
      for (const path of words) tree.delete(path);
      break;
    case "ln": {
      const [target = "", path = ""] = words.slice(2);
      tree.set(path, { type: "symlink", target });
      break;
    }
    case "names": {
      const [original = "", ...paths] = words;
      const file = tree.get(original);
      tree.delete(original);
      if (file !== undefined) for (const path of paths) tree.set(path, file);
      break;
    }
    default:
      throw new Error(`the fake service runs no ${command} ${words.join(" ")}`);
  }
}

function makeParents(tree: FakeTree, path: string): void {
  for (let end = path.indexOf("/", 1); end > 0; end = path.indexOf("/", end + 1)) {
    const above = path.slice(0, end);
    if (!tree.has(above)) tree.set(above, { type: "directory" });
  }
}

function wordsOf(line: string): string[] {
  return [...line.matchAll(/(?:'[^']*'|\\.|[^\s'\\])+/g)].map(([word]) =>
    word.replace(
      /'([^']*)'|\\(.)/g,
      (_, quoted: string | undefined, escaped: string | undefined) => quoted ?? escaped ?? "",
    ),
  );
}
