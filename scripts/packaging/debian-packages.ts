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

/**
 * Fetches packages from the machine's Debian sources and unpacks them below `work`; apt verifies them. Installs nothing, and does
 * not change the system's package lists. Names are such as `libc6:arm64`, or `ca-certificates` for all architectures.
 */
export function fetchDebianPackages(names: readonly string[], work: string): Map<string, UnpackedPackage> {
  const state = join(work, "apt");
  for (const directory of ["lists/partial", "cache/archives/partial"]) {
    mkdirSync(join(state, directory), { recursive: true });
  }
  const architectures = new Set(names.flatMap((name) => name.split(":").slice(1)));
  const options = Object.entries({
    "Dir::State": state,
    "Dir::State::lists": join(state, "lists"),
    "Dir::State::status": "/dev/null",
    "Dir::Cache": join(state, "cache"),
    "APT::Architectures": [...architectures].join(","),
    "APT::Sandbox::User": "",
    "Acquire::Languages": "none",
  }).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  runProgram(["apt-get", "-qq", ...options, "update"]);
  return new Map(
    names.map((name) => [name, fetchPackage(name, options, join(work, name.replace(":", "-")))]),
  );
}

function fetchPackage(name: string, options: readonly string[], directory: string): UnpackedPackage {
  const files = join(directory, "files");
  mkdirSync(files, { recursive: true });
  runProgram(["apt-get", "-qq", ...options, "download", name], { cwd: directory });
  const file = readdirSync(directory).find((entry) => entry.endsWith(".deb"));
  if (file === undefined) throw new Error(`apt-get download ${name} left no package behind`);
  const archive = join(directory, file);
  runProgram(["dpkg-deb", "--extract", archive, files]);
  const control = runProgram(["dpkg-deb", "--field", archive]);
  const field = (key: string) => new RegExp(`^${key}: (.*)$`, "m").exec(control)?.[1] ?? "";
  return { name: field("Package"), version: field("Version"), control, directory: files };
}
