import { readFileSync } from "node:fs";
import { runProgram } from "./run-program.ts";

/** The origin of a release. */
export interface Source {
  version: string;
  commit: string;
  /** The commit's time in UTC. All files of the release have it, so that two runs give the same bytes. */
  date: Date;
}

/** Reads the checked-out commit. Throws if the working tree differs from it, since a release must match its commit. */
export function readSource(root: string): Source {
  const changed = runProgram(["git", "status", "--porcelain", "--untracked-files=no"], { cwd: root });
  if (changed !== "") throw new Error(`there are uncommitted changes:\n${changed.trimEnd()}`);
  const [commit = "", seconds = ""] = runProgram(["git", "log", "-1", "--format=%H %ct"], {
    cwd: root,
  }).split(" ");
  const { version } = JSON.parse(readFileSync(`${root}/package.json`, "utf8"));
  return { version, commit, date: new Date(Number(seconds) * 1000) };
}
