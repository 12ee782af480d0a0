/**
 * Checks the structure of src/: which folder may import which, the order of a folder's parts, the number of files in a folder, no
 * cycles between files, one place that exits, no reading of the environment and no writing to the terminal below the command line.
 * Also checks that the map, src/README.md, names every folder, and only files that exist. Prints violations and exits with 1.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";

/** The folders or single files that a folder may import, besides itself and the shared files. */
const allowed: Record<string, readonly string[]> = {
  dockerfile: [],
  hcl: [],
  templates: [],
  context: [],
  store: [],
  registry: [
    "image/compression.ts",
    "image/digest.ts",
    "image/oci-layout.ts",
    "service/http/body-stream.ts",
    "service/http/bounded-body.ts",
    "service/http/connection.ts",
    "service/http/deadline.ts",
    "service/http/errors.ts",
    "service/http/json.ts",
    "service/http/retry.ts",
    "service/service.ts",
  ],
  service: [
    "image/config.ts",
    "image/digest.ts",
    "image/history.ts",
    "image/layer-header.ts",
    "image/layer-table.ts",
    "image/layer-writer.ts",
    "image/platform.ts",
    "image/tree-entry.ts",
  ],
  signatures: [
    "image/digest.ts",
    "image/oci-layout.ts",
    "registry",
    "service/http/bounded-body.ts",
    "service/http/json.ts",
    "service/service.ts",
  ],
  image: ["context/patterns/glob.ts", "context/patterns/path-pattern.ts"],
  engine: [
    "context/patterns/filters.ts",
    "context/patterns/glob.ts",
    "context/patterns/ignore.ts",
    "context/patterns/path-pattern.ts",
    "context/patterns/rules.ts",
    "dockerfile/secrets.ts",
    "image",
    "registry",
    "service/client.ts",
    "service/files/local-file.ts",
    "service/files/upload.ts",
    "service/http/attempt.ts",
    "service/http/bounded-body.ts",
    "service/http/deadline.ts",
    "service/http/errors.ts",
    "service/images/found-image.ts",
    "service/images/image-file.ts",
    "service/images/import-error.ts",
    "service/images/reference.ts",
    "service/operations/operation-records.ts",
    "service/operations/request-id.ts",
    "service/operations/silence.ts",
    "service/service.ts",
    "service/wire",
  ],
  builder: ["dockerfile", "context", "service", "store", "image", "registry"],
  check: [
    "dockerfile",
    "context",
    "builder",
    "service",
    "image/config.ts",
    "image/file-mode.ts",
    "image/platform.ts",
  ],
  terminal: ["builder", "service/service.ts"],
  history: ["builder", "terminal", "service/service.ts"],
  cli: [
    "check",
    "history",
    "builder",
    "dockerfile",
    "hcl",
    "context",
    "service",
    "store",
    "image",
    "registry",
    "engine",
    "signatures",
    "terminal",
    "templates",
  ],
};

/** The parts of a folder, from top to bottom: its subfolders, and the files beside them. Each may import only those below it. */
const orders: Record<string, readonly string[]> = {
  hcl: ["functions", "evaluate", "syntax", "values", "hcl-error.ts", "source.ts"],
  cli: [
    "plugin",
    "program",
    "completion",
    "mcp",
    "dispatch",
    "skill",
    "about",
    "doctor",
    "bake",
    "builds",
    "history",
    "operations",
    "scan",
    "layers",
    "run",
    "images",
    "verify",
    "indexes",
    "engine",
    "export",
    "signing",
    "sessions",
    "auth",
    "cache",
    "entries",
    "contexts",
    "references",
    "foreign",
    "help",
    "service",
    "command-line",
    "process",
  ],
  builder: [
    "keys",
    "platform-builds.ts",
    "build.ts",
    "stages",
    "graph",
    "interpreter",
    "steps",
    "mounts",
    "copy",
    "staging",
    "scopes",
    "docker",
    "archives",
    "repositories",
    "owners",
    "bases",
    "operations",
    "remote-files",
    "location.ts",
    "commands",
    "job.ts",
    "events.ts",
    "result.ts",
    "cache",
    "state",
    "contexts",
    "step-place.ts",
    "reference-lock.ts",
    "prefetch.ts",
    "service-support.ts",
    "dialect.ts",
    "addresses",
  ],
  engine: [
    "own-processes.ts",
    "engine.ts",
    "prune",
    "routes",
    "service",
    "core.ts",
    "account.ts",
    "operation-events.ts",
    "recovery.ts",
    "inspect",
    "export",
    "instances",
    "unpack",
    "import",
    "mounts",
    "router.ts",
    "copies",
    "run-operation.ts",
    "repair.ts",
    "check",
    "state.ts",
    "import-limits.ts",
    "processes",
    "terminal",
    "sandbox",
    "network",
    "engine-directory.ts",
    "records",
    "http",
    "faults.ts",
    "layout.ts",
    "system",
  ],
};

/**
 * The parts of cli/ through which words come in: a command line, docker's, an agent's. None imports another; only the table of commands
 * names those that open one. What they call is below them in the order of cli/, and imports none of them.
 */
const doors = ["plugin", "program", "completion", "mcp"];
const tableOfCommands = "cli/program/commands.ts";

/** Files that every folder may import. */
const shared = [
  "programs/helper.ts",
  "programs/libc.ts",
  "programs/own-process.ts",
  "programs/pipes.ts",
  "programs/quote.ts",
  "messages/wording.ts",
  "columns/persistent-map.ts",
  "columns/text-column.ts",
  "account-rows.ts",
  "system-error.ts",
  "errors.ts",
  "go/boolean.ts",
  "go/duration.ts",
  "go/json.ts",
  "go/quote.ts",
  "home-directory.ts",
  "paths/local-path.ts",
  "paths/path-resolution.ts",
  "paths/rename-over.ts",
  "paths/write-probe.ts",
  "clock.ts",
  "database.ts",
  "remove-tree.ts",
  "lock-file.ts",
  "open-for-reading.ts",
  "open-without-links.ts",
  "own-path.ts",
  "pace.ts",
  "secret.ts",
  "sha256.ts",
  "state-failure.ts",
  "once.ts",
  "semaphore.ts",
  "streams.ts",
  "suggest.ts",
  "thread.ts",
  "version.ts",
  "visible.ts",
];

/** `exceptDefinitions`: the examples, notes and descriptions of commands are the command line's own. */
const rules: { pattern: RegExp; meaning: string; except: RegExp; exceptDefinitions?: true }[] = [
  { pattern: /process\.exit\b/, meaning: "only src/main.ts exits", except: /^main\.ts$/ },
  {
    pattern: /process\.env\b|Bun\.env\b/,
    meaning: "only src/start.ts reads the environment, and the guard of fetches hides NO_PROXY from Bun",
    except: /^(start|engine\/import\/fetch-guard)\.ts$/,
  },
  {
    pattern: /process\.(stdout|stderr|stdin)\b|console\.|Bun\.std/,
    meaning: "only src/main.ts and src/start.ts touch the terminal; others get streams",
    except: /^(main|start)\.ts$/,
  },
  {
    // A literal that is only a command, or begins with `bough run: `, names what has failed.
    pattern: /\\`bough |"[^"]*`bough |(?<!["`])\bbough (run|shell|-S|build)\b/,
    meaning:
      "a message names a command as data (messages/wording.ts), for all doors to say in their own words",
    // Two lines of the log, which takes text.
    except:
      /^(?!builder|service|context|image|store|check|registry|terminal|cli\/(builds|references|contexts|run|service|sessions))|^cli\/(builds\/daemon-output|service\/make-room)\.ts$/,
    exceptDefinitions: true,
  },
  {
    pattern: /Bun\.spawn|child_process/,
    meaning: "only src/programs/helper.ts starts a program, with a deadline; a pager has none",
    except: /^(start|cli\/process\/pager|programs\/helper)\.ts$/,
  },
  {
    pattern:
      /\b(mode|name|dialect) [!=]== "(docker|default)"|\bdialect [!=]==|[!=]== dialects\b|\bisDocker\b/,
    meaning: "only src/builder/dialect.ts knows what --docker changes; ask a policy of the Dialect",
    except: /^(engine|cli\/(command-line|dispatch|program))\/|\/dialect\.ts$/,
  },
  {
    pattern: /\bcapabilities\.\w+\(|\bcapabilities [,}]|\bextensions\(\)|\blendFiles\b/,
    meaning: "only src/builder/service-support.ts knows what a service can do; ask a ServiceSupport",
    except: /^(?!builder|check|cli\/builds)|\/service-support\.ts$/,
  },
];

/** The largest number of files that a reader can take in at a glance. */
const maxFilesInFolder = 25;

const files = readdirSync("src", { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
  .map((entry) => join(entry.parentPath, entry.name).slice("src/".length))
  .sort();
const imports = new Map(files.map((file) => [file, importsOf(file)]));
const problems = [
  ...files.flatMap(layerProblems),
  ...Object.entries(orders).flatMap(([folder, order]) => orderProblems(folder, order)),
  ...files.flatMap(doorProblems),
  ...files.flatMap(ruleProblems),
  ...crowdedFolders(),
  ...mapProblems(),
  ...cycles(),
  ...needlessExports(),
];
for (const problem of problems) process.stderr.write(`${problem}\n`);
if (problems.length > 0) process.exit(1);

function importsOf(file: string): string[] {
  const source = readFileSync(join("src", file), "utf8");
  return [...source.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+\.ts)"/g)].map((match) =>
    normalize(join(dirname(file), match[1] ?? "")),
  );
}

function layerProblems(file: string): string[] {
  const folder = dirname(file).split("/")[0] ?? "";
  return (imports.get(file) ?? []).flatMap((target) => {
    if (!files.includes(target)) return [`src/${file}: imports ${target}, which does not exist`];
    if (file === "main.ts" || file === "start.ts" || shared.includes(target)) return [];
    if (folder === ".") return [`src/${file}: shared by all, so it may not import ${target}`];
    const targetFolder = dirname(target).split("/")[0] ?? "";
    const open = allowed[folder] ?? [];
    if (
      targetFolder === folder ||
      [targetFolder, dirname(target), target].some((path) => open.includes(path))
    )
      return [];
    return [`src/${file}: ${folder}/ may not import ${target}`];
  });
}

function orderProblems(folder: string, order: readonly string[]): string[] {
  const partOf = (file: string) => (file.startsWith(`${folder}/`) ? file.split("/")[1] : undefined);
  const parts = new Set(files.flatMap((file) => partOf(file) ?? []));
  const unnamed = [...parts].filter((part) => !order.includes(part));
  const missing = order.filter((part) => !parts.has(part));
  const upward = files.flatMap((file) => {
    const part = partOf(file);
    if (part === undefined) return [];
    return (imports.get(file) ?? []).flatMap((target) => {
      const imported = partOf(target);
      return imported === undefined || imported === part || order.indexOf(imported) > order.indexOf(part)
        ? []
        : [
            `src/${file}: ${folder}/${part} may not import ${target}, which is above it in the order of ${folder}/`,
          ];
    });
  });
  return [
    ...unnamed.map((part) => `scripts/layering.ts: the order of ${folder}/ does not name ${part}`),
    ...missing.map(
      (part) => `scripts/layering.ts: the order of ${folder}/ names ${part}, which does not exist`,
    ),
    ...upward,
  ];
}

function doorProblems(file: string): string[] {
  const doorOf = (path: string) => doors.find((door) => path.startsWith(`cli/${door}/`));
  const own = doorOf(file);
  if (own === undefined || file === tableOfCommands) return [];
  return (imports.get(file) ?? []).flatMap((target) => {
    const other = doorOf(target);
    return other === undefined || other === own
      ? []
      : [`src/${file}: cli/${own} may not import ${target}: a door knows no other door`];
  });
}

function ruleProblems(file: string): string[] {
  const source = readFileSync(join("src", file), "utf8");
  return rules.flatMap((rule) => {
    if (rule.except.test(file)) return [];
    const found = source
      .split("\n")
      .flatMap((line, index) =>
        rule.pattern.test(line) && !/^\s*(\*|\/\/|\/\*)/.test(line) ? [index + 1] : [],
      );
    const definitions = rule.exceptDefinitions && found.length > 0 ? definitionsIn(source) : new Set();
    return found
      .filter((line) => !definitions.has(line))
      .map((line) => `src/${file}:${line}: ${rule.meaning}`);
  });
}

/** Returns the numbers of the lines that say in help what commands and options are: a field, and what is indented below it. */
function definitionsIn(source: string): Set<number> {
  const numbers = new Set<number>();
  let indent: number | undefined;
  for (const [index, line] of source.split("\n").entries()) {
    const own = line.search(/\S/);
    if (indent !== undefined && own <= indent) indent = undefined;
    if (/^\s*(description|agentNote|examples):/.test(line)) indent = own;
    if (indent !== undefined) numbers.add(index + 1);
  }
  return numbers;
}

/** The map names a folder by its path, or by its name in the item of its top folder, and a file by its path or the path's end. */
function mapProblems(): string[] {
  const map = readFileSync("src/README.md", "utf8");
  const names = [...map.matchAll(/`([\w./-]+)`/g)].map(([, name = ""]) => name);
  const folders = [...new Set(files.map(dirname))].filter((folder) => folder !== ".");
  const items = Object.fromEntries(map.split(/^- `/m).map((item) => [item.split("/`", 1)[0], item]));
  const isNamed = (folder: string) =>
    map.includes(`${folder}/`) ||
    map.includes(`\`${folder}\``) ||
    items[folder.split("/")[0] ?? ""]?.includes(`\`${basename(folder)}\``) === true;
  const isThere = (name: string) =>
    [...files, ...folders].some((path) => `/${path}`.endsWith(`/${name}`)) || existsSync(name);
  return [
    ...folders
      .filter((folder) => !isNamed(folder))
      .map((folder) => `src/README.md: does not name ${folder}/`),
    ...names
      .filter((name) => /\.ts$|^\w.*\/[^/]/.test(name) && !isThere(name))
      .map((name) => `src/README.md: names ${name}, which does not exist`),
  ];
}

function crowdedFolders(): string[] {
  const counts = Map.groupBy(files, (file) => dirname(file));
  return [...counts]
    .filter(([, members]) => members.length > maxFilesInFolder)
    .map(([folder, members]) => `src/${folder}: ${members.length} files; the limit is ${maxFilesInFolder}`);
}

function cycles(): string[] {
  const found: string[] = [];
  const finished = new Set<string>();
  const visit = (file: string, path: readonly string[]) => {
    const start = path.indexOf(file);
    if (start >= 0) found.push(`cycle: ${[...path.slice(start), file].join(" -> ")}`);
    if (start >= 0 || finished.has(file)) return;
    for (const target of imports.get(file) ?? []) visit(target, [...path, file]);
    finished.add(file);
  };
  for (const file of files) visit(file, []);
  return found;
}

/** What only its own file uses is not exported: a reader need not look for others. */
function needlessExports(): string[] {
  const sources = ["src", "test", "scripts"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  const counts = new Map<string, number>();
  const words = sources.map((path) => new Set(readFileSync(path, "utf8").match(/\w+/g)));
  for (const word of words.flatMap((set) => [...set])) counts.set(word, (counts.get(word) ?? 0) + 1);
  const exported = /^export (?:async )?(?:function\*?|(?:abstract )?class|const|interface|type) (\w+)/gm;
  return files.flatMap((file) =>
    [...readFileSync(join("src", file), "utf8").matchAll(exported)].flatMap(([, name = ""]) =>
      counts.get(name) === 1 ? [`src/${file}: exports ${name}, which no other file uses`] : [],
    ),
  );
}
