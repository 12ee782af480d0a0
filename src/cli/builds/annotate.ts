/** Marks lines of the Dockerfile in GitHub Actions. */
import { existsSync } from "node:fs";
import { dirname, join, posix, relative, sep } from "node:path";
import type { Finding } from "../../check/rules.ts";
import { DockerfileError } from "../../dockerfile/problems/problem.ts";
import { maskSecrets } from "../../dockerfile/secrets.ts";
import { causeOf } from "../../errors.ts";
import { commandLineWords, render } from "../../messages/wording.ts";
import { describeFailure, describeForDocker, failureOf } from "../../terminal/failure.ts";
import type { Progress } from "../../terminal/progress.ts";
import { formatLogLines } from "../../terminal/terminal-text.ts";
import { visible, visibleLines } from "../../visible.ts";
import type { Surroundings } from "../command-line/command.ts";
import type { Runtime } from "../process/runtime.ts";
import { isStandardInput } from "../process/same-file.ts";
import { type LocatedBuild, locateInputs } from "./inputs.ts";

type Given = Pick<Surroundings, "runtime" | "globals">;

/** The Dockerfile's path, as programs that show findings beside the code want it. */
interface ReportedPath {
  /** Relative to the repository, with slashes; absolute for a file elsewhere; `-` for standard input. */
  path: string;
  /** True if the repository that is built has the file. */
  isInRepository: boolean;
}

export function isGitHubJob({ environment }: Pick<Runtime, "environment">): boolean {
  return environment.GITHUB_ACTIONS === "true";
}

/** Returns the Dockerfile's path. `shown`: the one that messages have, which is relative to the context if that is fetched. */
export function pathOfDockerfile(
  given: LocatedBuild & { runtime: Pick<Runtime, "environment"> },
  shown: string,
): ReportedPath {
  const { environment, workingDirectory } = given.runtime;
  const { source, dockerfile } = locateInputs(given);
  if (dockerfile !== undefined) {
    const { absolutePath } = dockerfile;
    if (isStandardInput(absolutePath)) return { path: "-", isInRepository: false };
    const roots = [repositoryOf(absolutePath), environment.GITHUB_WORKSPACE, environment.CI_PROJECT_DIR];
    for (const root of [...roots, workingDirectory]) {
      const path = root && relative(root, absolutePath).replaceAll(sep, "/");
      if (path && !/^(\.\.(\/|$)|\/|[a-z]:)/i.test(path)) return { path, isInRepository: true };
    }
    return { path: absolutePath, isInRepository: false };
  }
  if (source.kind !== "repository") return { path: shown, isInRepository: false };
  const { remote, subdirectory } = source.address;
  const own = `${environment.GITHUB_SERVER_URL}/${environment.GITHUB_REPOSITORY}`.toLowerCase();
  const isInRepository = remote.toLowerCase().replace(/\/?(\.git)?\/?$/, "") === own;
  return { path: posix.join(subdirectory, shown), isInRepository };
}

/** Returns the nearest directory above a file that has a git repository. */
function repositoryOf(path: string): string | undefined {
  const directory = dirname(path);
  if (directory === path) return undefined;
  return existsSync(join(directory, ".git")) ? directory : repositoryOf(directory);
}

/** Writes what `--check` has found. */
export function annotateFindings(
  given: Given & LocatedBuild,
  shown: string,
  findings: Record<Annotation["level"], readonly Finding[]>,
): void {
  const mark = createMark(given.runtime, given);
  for (const level of ["error", "warning"] as const)
    for (const finding of findings[level])
      given.runtime.stderr.write(mark(level, { ...finding, title: finding.rule }, shown));
}

/**
 * Returns a display that also marks lines that the build warns of, and the one at which it fails. No line of a command's output is a
 * workflow command: that of a base image or of a package's script must not set this job's outputs. Builds of several Dockerfiles mark
 * no lines.
 *
 * @param build the one whose lines are marked
 */
export function annotateBuild(progress: Progress, given: Given, build: LocatedBuild | undefined): Progress {
  const { stderr } = given.runtime;
  const mark = createMark(given.runtime, build);
  const { begin, end } = pausedCommands();
  const warnings: string[] = [];
  let failedStep: string | undefined;
  stderr.write(begin);
  let isPaused = true;
  let isFinished = false;
  const resume = () => {
    if (isPaused) stderr.write(end + warnings.splice(0).join(""));
    isPaused = false;
  };
  return {
    log: progress.log,
    emit(event) {
      progress.emit(event);
      isFinished ||= event.type === "finished";
      if (event.type === "step-failed" && event.abandoned !== true) failedStep ??= event.title;
      const isShown = build !== undefined && given.globals.logLevel !== "error";
      if (event.type !== "warning" || event.line === undefined || !isShown) return;
      const { message, line, rule = "bough build" } = event;
      const range = { start: line, end: line };
      warnings.push(mark("warning", { title: rule, message, range }));
    },
    close() {
      progress.close();
      // After a failure, the error is shown before the pause ends.
      if (isFinished) resume();
    },
    fail(error) {
      const known = failureOf(error);
      const { details, reason } = given.runtime.isPlugin
        ? describeForDocker(error, given.runtime.wordsOf)
        : { details: describeFailure(error, given.globals.format).text, reason: "" };
      if (!progress.fail(error)) stderr.write(formatLogLines(details, stderr));
      resume();
      const problems = (build && causeOf(error, DockerfileError)?.problems) ?? [
        { message: known.wording, range: undefined },
      ];
      const marked = known.kind === "interrupted" ? [] : problems;
      for (const problem of marked)
        stderr.write(mark("error", { title: failedStep ?? "bough build", ...problem }));
      stderr.write(formatLogLines(reason, stderr));
      return true;
    },
  };
}

type Marked = Pick<Finding, "message" | "range" | "culprit"> & { title: string };

/** Returns a function that renders a message at its line. */
function createMark(runtime: Runtime, build: LocatedBuild | undefined) {
  let path: ReportedPath | undefined;
  return (
    level: Annotation["level"],
    { title, message: given, range, culprit }: Marked,
    shown = "Dockerfile",
  ): string => {
    const message = render(given, runtime.wordsOf ?? commandLineWords) ?? "";
    const line = culprit?.line ?? range?.start;
    if (line === undefined || build === undefined)
      return renderAnnotation({ level, title, message: maskSecrets(message), place: undefined });
    path ??= pathOfDockerfile({ ...build, runtime }, shown);
    const endLine = culprit?.line ?? range?.end ?? line;
    return renderAnnotation({
      ...{ level, title },
      message: maskSecrets(
        path.isInRepository ? message : `${path.path === "-" ? "line " : `${path.path}:`}${line}: ${message}`,
      ),
      place: path.isInRepository ? { file: path.path, line, endLine } : undefined,
    });
  };
}

// Workflow commands: lines of a job's output by which GitHub Actions marks lines of files.

/** A message that GitHub shows, at a file's line if it has one. */
interface Annotation {
  level: "error" | "warning";
  title: string;
  message: string;
  /** `file` is relative to the repository. */
  place: { file: string; line: number; endLine: number } | undefined;
}

/** Returns `::error file=Dockerfile,line=3,endLine=3,title=TITLE::MESSAGE` and a line break. */
export function renderAnnotation({ level, title, message, place }: Annotation): string {
  const properties = Object.entries({ ...place, title }).map(
    ([name, value]) => `${name}=${escapeProperty(value)}`,
  );
  return `::${level} ${properties.join(",")}::${escapeData(visibleLines(message))}\n`;
}

/** Returns the lines between which GitHub takes no line for a command, whatever it says. */
function pausedCommands(): { begin: string; end: string } {
  // A command of a RUN must not know what ends the pause.
  const token = crypto.randomUUID();
  return { begin: `::stop-commands::${token}\n`, end: `::${token}::\n` };
}

/** Escapes as GitHub's own toolkit does. */
function escapeData(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function escapeProperty(value: string | number): string {
  return escapeData(visible(String(value)))
    .replaceAll(":", "%3A")
    .replaceAll(",", "%2C");
}
