import { readFileSync } from "node:fs";
import { runProgram } from "./run-program.ts";

/** What a release says about where it comes from. */
export interface Source {
  version: string;
  commit: string;
  /** The commit's time, in UTC: it is the time of everything in the release, so that two runs give the same bytes. */
  date: Date;
}

/** Rejects where the working tree is not the commit: a release must be what its commit says. */
export function readSource(root: string): Source {
  const changed = runProgram(["git", "status", "--porcelain", "--untracked-files=no"], { cwd: root });
  if (changed !== "") throw new Error(`there are changes that are not committed:\n${changed.trimEnd()}`);
  const [commit = "", seconds = ""] = runProgram(["git", "log", "-1", "--format=%H %ct"], {
    cwd: root,
  }).split(" ");
  const { version } = JSON.parse(readFileSync(`${root}/package.json`, "utf8"));
  return { version, commit, date: new Date(Number(seconds) * 1000) };
}
