import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type FileSpec, writeFiles } from "../support/files.ts";
import { digestOfFiles } from "../support/kept-results.ts";

const cases = join(import.meta.dir, "../cases/differential");

/**
 * `<case>/Dockerfile`, and where they are needed:
 * - `context/`: files of the context; the Dockerfile is put beside them,
 * - `Dockerfile.buildah`: the same in words that buildah 1.28 knows,
 * - `buildah.dockerignore`: what buildah has to be told of rules that bough has anyway,
 * - `case.json`: a `CaseSpec`.
 */
export interface Case {
  name: string;
  spec: CaseSpec;
  /** Of all that the case consists of. */
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
  /** By path, the places where the trees are to differ. */
  differences?: Record<string, ExpectedDifference>;
}

/** Lines of `TreeEntry`, or `nothing`. */
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
