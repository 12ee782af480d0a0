import {
  cpSync,
  existsSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { type FileSpec, writeFiles } from "../support/files.ts";
import { digestOfFiles } from "../support/kept-results.ts";

const cases = join(import.meta.dir, "cases");

/**
 * A directory in `cases` with a `Dockerfile`, and optionally:
 * - `case.json`: a `CaseSpec`,
 * - `Dockerfile.docker`: the same Dockerfile for Debian's Docker (20.10), with newer features as Docker documents them.
 */
export interface DockerCase {
  name: string;
  spec: CaseSpec;
  /** The digest of all files of the case. */
  digest: string;
  /** Writes the build context, with the Dockerfile, into a directory that does not exist yet. */
  writeContext(directory: string): void;
  dockerDockerfile: string | undefined;
}

export interface CaseSpec {
  target?: string;
  buildArgs?: Record<string, string>;
  /** Values for `--build-context`, by name: directories of the context, or `docker-image://`. Docker 20.10 has no such option. */
  contexts?: Record<string, string>;
  /** Files of the context. */
  files?: Record<string, FileSpec>;
  /** Tar archives of the context by name. tar(1) chooses the compression by the end of the name. */
  archives?: Record<string, Record<string, FileSpec>>;
  /** Archives without entries for directories. */
  archivesOfFiles?: Record<string, Record<string, FileSpec>>;
  /** Values for `--secret`, by id. */
  secrets?: Record<string, string>;
  /** Values for `--add-host`. */
  hosts?: string[];
  /** Mount points that Docker 20.10 leaves in the image. Newer versions remove empty ones, as bough does. */
  mountPoints?: string[];
  /** The result differs on a service without mounts: a bind is writable there, and a cache is not kept. */
  needsMounts?: boolean;
  /** bough's error on a service without extensions. */
  refusedWithoutExtensions?: string;
  /** Expected differences between the trees, by path. */
  differences?: Record<string, ExpectedDifference>;
  /** Expected differences on a service without extensions, in place of `differences`. */
  differencesWithoutExtensions?: Record<string, ExpectedDifference>;
}

/** The expected `line` of each side's `TreeEntry`, or `nothing`. */
export interface ExpectedDifference {
  bough: string;
  docker: string;
  why: string;
}

/** The modification time of all files of a context, in seconds since the epoch: long before any build. */
const contextTime = 1_000_000_000;

export function readDockerCases(): DockerCase[] {
  return readdirSync(cases).sort().map(readCase);
}

function readCase(name: string): DockerCase {
  const specPath = join(cases, name, "case.json");
  const spec: CaseSpec = existsSync(specPath) ? JSON.parse(readFileSync(specPath, "utf8")) : {};
  const dockerPath = join(cases, name, "Dockerfile.docker");
  return {
    name,
    spec,
    digest: digestOfFiles(join(cases, name)),
    writeContext(directory) {
      mkdirSync(directory);
      writeFiles(directory, spec.files ?? {});
      for (const [archive, files] of Object.entries(spec.archives ?? {}))
        writeArchive(join(directory, archive), files, topNames);
      for (const [archive, files] of Object.entries(spec.archivesOfFiles ?? {}))
        writeArchive(join(directory, archive), files, () => Object.keys(files));
      cpSync(join(cases, name, "Dockerfile"), join(directory, "Dockerfile"));
      setTimes(directory);
    },
    dockerDockerfile: existsSync(dockerPath) ? dockerPath : undefined,
  };
}

const topNames = (directory: string): string[] => readdirSync(directory);

/** Writes an archive whose entries have an owner that no other file has. */
function writeArchive(
  path: string,
  files: Readonly<Record<string, FileSpec>>,
  namesIn: (directory: string) => string[],
): void {
  const directory = mkdtempSync(join(dirname(dirname(path)), "archive-"));
  try {
    writeFiles(directory, files);
    setTimes(directory);
    const options = ["--sort=name", "--owner=71", "--group=72", "--numeric-owner"];
    const tar = [
      "tar",
      "--create",
      "--auto-compress",
      `--file=${path}`,
      ...options,
      `--directory=${directory}`,
    ];
    const { success, stderr } = Bun.spawnSync([...tar, ...namesIn(directory)]);
    if (!success) throw new Error(stderr.toString());
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function setTimes(directory: string): void {
  for (const name of readdirSync(directory, { recursive: true, encoding: "utf8" }))
    lutimesSync(join(directory, name), contextTime, contextTime);
}
