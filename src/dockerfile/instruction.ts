/** The typed instructions of a Dockerfile. Words are as written: nothing is expanded before the build gets to it. */

/** 1-based, both ends included; covers continuation lines and here-documents. */
export interface LineRange {
  start: number;
  end: number;
}

/** `--name=value` before an instruction's arguments; a bare `--link` has no value. */
export interface Flag {
  name: string;
  value: string | undefined;
}

export interface HereDocument {
  /** The delimiter's name; for COPY and ADD the file's name. */
  name: string;
  /** The text between the delimiters, tabs already removed for `<<-`. */
  content: string;
  /** False where the delimiter was quoted: variables stay as they are. */
  expand: boolean;
  range: LineRange;
}

/** What follows RUN (and CMD, ENTRYPOINT, SHELL): one shell command line, or a JSON list of arguments. */
export type Command = { form: "shell"; line: string } | { form: "exec"; words: readonly string[] };

interface InstructionBase<Name extends string> {
  name: Name;
  range: LineRange;
  /** The instruction as written, continuation lines joined, without here-document bodies. */
  original: string;
  /** The same for people: of the white space where lines are joined one blank is left. */
  title: string;
  flags: readonly Flag[];
  /** The arguments as a list of words before expansion. */
  words: readonly string[];
  heredocs: readonly HereDocument[];
}

export interface FromInstruction extends InstructionBase<"FROM"> {
  image: string;
  stageName: string | undefined;
  platform: string | undefined;
}

/** A here-document that starts with `#!` and is the whole of a RUN: a program of its own, run as an executable file. */
export interface Script {
  form: "script";
  /** The here-document's name, for the file. */
  name: string;
  content: string;
}

/** `--mount`, as far as it matters where there are no mounts. Words are as written, as everywhere. */
export interface Mount {
  type: string;
  target: string | undefined;
}

export interface RunInstruction extends InstructionBase<"RUN"> {
  /**
   * A lone here-document is the shell's command line itself; beside other words here-documents stay part of the line,
   * bodies included, and the shell reads them.
   */
  command: Command | Script;
  /** False where the command is the body of a here-document with a quoted delimiter: variables are the shell's alone. */
  expand: boolean;
  mounts: readonly Mount[];
}

/** A source of COPY or ADD: a path, glob or URL as written, or a here-document that becomes a file. */
export type CopySource = { kind: "path"; path: string } | { kind: "heredoc"; document: HereDocument };

interface CopyFields {
  sources: readonly CopySource[];
  destination: string;
  chown: string | undefined;
  chmod: string | undefined;
  exclude: readonly string[];
  parents: boolean;
}

export interface CopyInstruction extends InstructionBase<"COPY">, CopyFields {
  from: string | undefined;
}

export interface AddInstruction extends InstructionBase<"ADD">, CopyFields {
  checksum: string | undefined;
  keepGitDir: boolean;
  /** Undefined where the Dockerfile leaves the choice to the kind of source. */
  unpack: boolean | undefined;
}

export interface WorkdirInstruction extends InstructionBase<"WORKDIR"> {
  path: string;
}

export interface EnvInstruction extends InstructionBase<"ENV"> {
  pairs: readonly { key: string; value: string }[];
}

export interface ArgInstruction extends InstructionBase<"ARG"> {
  declarations: readonly { key: string; value: string | undefined }[];
}

export interface UserInstruction extends InstructionBase<"USER"> {
  user: string;
}

/** Parsed and checked, then skipped with a warning: an image of the service carries no such configuration. */
export const skippedNames = [
  "CMD",
  "ENTRYPOINT",
  "LABEL",
  "EXPOSE",
  "VOLUME",
  "STOPSIGNAL",
  "MAINTAINER",
  "HEALTHCHECK",
  "ONBUILD",
  "SHELL",
] as const;

export type SkippedName = (typeof skippedNames)[number];

export interface SkippedInstruction extends InstructionBase<SkippedName> {
  /** For CMD, ENTRYPOINT, SHELL and HEALTHCHECK CMD. */
  command: Command | undefined;
}

export type Instruction =
  | FromInstruction
  | RunInstruction
  | CopyInstruction
  | AddInstruction
  | WorkdirInstruction
  | EnvInstruction
  | ArgInstruction
  | UserInstruction
  | SkippedInstruction;

/** Something that Docker takes but a person should know about. `rule` is Docker's name of the build check, if any. */
export interface DockerfileWarning {
  rule: string;
  message: string;
  range: LineRange;
}

export interface Dockerfile {
  /** As given by the user; for messages. */
  path: string;
  /** All physical lines, without line ends; for messages that show them. */
  lines: readonly string[];
  /** The escape character: `\`, or a backtick after `# escape=`. */
  escape: "\\" | "`";
  /** Parser directives by lower-case name (`syntax`, `escape`, `check`). */
  directives: ReadonlyMap<string, string>;
  instructions: readonly Instruction[];
  warnings: readonly DockerfileWarning[];
}
