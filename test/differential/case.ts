import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type FileSpec, writeFiles } from "../support/files.ts";
import { digestOfFiles } from "../support/kept-results.ts";

const cases = join(import.meta.dir, "../cases/differential");

/**
 * A directory with a `Dockerfile`, and optionally:
 * - `context/`: files of the context, to which the Dockerfile is added,
 * - `Dockerfile.buildah`: the same Dockerfile in the syntax of buildah 1.28,
 * - `buildah.dockerignore`: rules that bough has by default and buildah needs,
 * - `case.json`: a `CaseSpec`.
 */
export interface Case {
  name: string;
  spec: CaseSpec;
  /** The digest of all files of the case. */
  digest: string;
  /** Writes the build context into a directory that does not exist yet. */
  writeContext(directory: string): void;
  buildahDockerfile: string | undefined;
  buildahIgnoreFile: string | undefined;
}

export interface CaseSpec {
  /** Files of the context that git can't hold: modes, links, empty directories, odd names. */
  files?: Record<string, FileSpec>;
  buildArgs?: Record<string, string>;
  /** Expected differences between the trees, by path. */
  differences?: Record<string, ExpectedDifference>;
}

/** The expected `line` of each side's `TreeEntry`, or `nothing`. */
export interface ExpectedDifference {
  bough: string;
  buildah: string;
  why: string;
}

export function readDifferentialCases(): Case[] {
  return readdirSync(cases).sort().map(readCase);
}

function readCase(name: string): Case {
  const directory = join(cases, name);
  const optional = (file: string) => {
    const path = join(directory, file);
    return existsSync(path) ? path : undefined;
  };
  const specPath = optional("case.json");
  const spec: CaseSpec = specPath === undefined ? {} : JSON.parse(readFileSync(specPath, "utf8"));
  return {
    name,
    spec,
    digest: digestOfFiles(directory),
    writeContext(target) {
      mkdirSync(target);
      const files = optional("context");
      if (files !== undefined) cpSync(files, target, { recursive: true, verbatimSymlinks: true });
      writeFiles(target, spec.files ?? {});
      cpSync(join(directory, "Dockerfile"), join(target, "Dockerfile"));
    },
    buildahDockerfile: optional("Dockerfile.buildah"),
    buildahIgnoreFile: optional("buildah.dockerignore"),
  };
}
