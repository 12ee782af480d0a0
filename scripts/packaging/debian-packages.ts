import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { runProgram } from "./run-program.ts";

export interface UnpackedPackage {
  name: string;
  version: string;
  /** The package's control file. */
  control: string;
  /** The directory with its files. */
  directory: string;
}

/** The machine's Debian sources. apt verifies what comes from them. */
export interface DebianSources {
  /** Fetches packages and unpacks them. Names are such as `libc6:arm64`, or `ca-certificates` for all architectures. */
  fetch(names: readonly string[]): Map<string, UnpackedPackage>;
  /**
   * Returns packages and what they depend on, by the names that `fetch` takes. Packages in `without` are left out, with what only
   * they depend on.
   */
  withDependencies(packages: readonly string[], architecture: string, without: ReadonlySet<string>): string[];
}

/** Opens the machine's Debian sources. Works below `work`: installs nothing, and does not change the system's package lists. */
export function openDebianSources(architectures: readonly string[], work: string): DebianSources {
  const state = join(work, "apt");
  for (const directory of ["lists/partial", "cache/archives/partial"]) {
    mkdirSync(join(state, directory), { recursive: true });
  }
  const options = Object.entries({
    "Dir::State": state,
    "Dir::State::lists": join(state, "lists"),
    "Dir::State::status": "/dev/null",
    "Dir::Cache": join(state, "cache"),
    "APT::Architectures": architectures.join(","),
    "APT::Sandbox::User": "",
    "Acquire::Languages": "none",
  }).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  runProgram(["apt-get", "-qq", ...options, "update"]);
  return {
    fetch(names) {
      const archives = join(work, "archives");
      mkdirSync(archives, { recursive: true });
      runProgram(["apt-get", "-qq", ...options, "download", ...names], { cwd: archives });
      const all = readdirSync(archives).map((file) => unpack(join(archives, file), join(work, "unpacked")));
      const found = new Map(all);
      return new Map(
        names.map((name) => {
          const one = found.get(name);
          if (one === undefined) throw new Error(`apt-get download ${name} left no package behind`);
          return [name, one];
        }),
      );
    },
    withDependencies(packages, architecture, without) {
      const found = new Map<string, string>();
      let waiting = [...packages];
      while (waiting.length > 0) {
        // Without an architecture, for packages that have none. Then this machine's may come, too.
        const names = waiting.flatMap((name) => [name, `${name}:${architecture}`]);
        const records = runProgram(["apt-cache", ...options, "show", "--no-all-versions", ...names]);
        const dependencies: string[] = [];
        for (const control of records.split(/\n\n+/).filter((text) => canRunOn(architecture, text))) {
          found.set(field(control, "Package"), keyOf(control));
          dependencies.push(...dependenciesOf(control));
        }
        const unknown = waiting.filter((name) => !found.has(name));
        if (unknown.length > 0) throw new Error(`no such package: ${unknown.join(", ")}`);
        waiting = [...new Set(dependencies)].filter((name) => !found.has(name) && !without.has(name));
      }
      return [...found.values()].sort();
    },
  };
}

function unpack(archive: string, place: string): [key: string, UnpackedPackage] {
  const control = runProgram(["dpkg-deb", "--field", archive]);
  const key = keyOf(control);
  const directory = join(place, key.replace(":", "-"));
  mkdirSync(directory, { recursive: true });
  runProgram(["dpkg-deb", "--extract", archive, directory]);
  return [key, { name: field(control, "Package"), version: field(control, "Version"), control, directory }];
}

function canRunOn(architecture: string, control: string): boolean {
  return [architecture, "all"].includes(field(control, "Architecture"));
}

function keyOf(control: string): string {
  const architecture = field(control, "Architecture");
  return architecture === "all" ? field(control, "Package") : `${field(control, "Package")}:${architecture}`;
}

/** Returns the names of packages that a package requires, of alternatives the first. */
export function dependenciesOf(control: string): string[] {
  return ["Pre-Depends", "Depends"]
    .flatMap((key) => field(control, key).split(","))
    .map((alternatives) => /^\s*([a-z0-9][a-z0-9.+-]*)/.exec(alternatives)?.[1] ?? "")
    .filter((name) => name !== "");
}

function field(control: string, key: string): string {
  return new RegExp(`^${key}: (.*)$`, "m").exec(control)?.[1] ?? "";
}
