/** The typed instructions of a Dockerfile. Words are as written: the build expands them when it runs the instruction. */
import type { EscapeCharacter } from "./text/directives.ts";

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
  /** False if the delimiter was quoted: variables are not replaced. */
  expand: boolean;
  range: LineRange;
}

/** The command of RUN, CMD, ENTRYPOINT or SHELL: one shell command line, or a JSON list of arguments. */
export type Command = { form: "shell"; line: string } | { form: "exec"; words: readonly string[] };

interface InstructionBase<Name extends string> {
  name: Name;
  range: LineRange;
  /** The instruction as written, continuation lines joined, without here-document bodies. */
  original: string;
  /** The same for display: white space where lines are joined becomes one blank. */
  title: string;
  flags: readonly Flag[];
  /** The text after the flags, as written. `argumentWords` splits it. */
  args: string;
  heredocs: readonly HereDocument[];
}

export interface FromInstruction extends InstructionBase<"FROM"> {
  image: string;
  stageName: string | undefined;
  platform: string | undefined;
}

/** A here-document that starts with `#!` and is the whole RUN: it is run as an executable file. */
interface Script {
  form: "script";
  /** The here-document's name, for the file. */
  name: string;
  content: string;
}

/** One `--mount`, all of its fields as written; `undefined` if not given. A switch without a value is `true`. */
export interface Mount {
  /** `bind`, `cache`, `tmpfs`, `secret`, `ssh`, or a word with a variable in it. */
  type: string;
  id: string | undefined;
  from: string | undefined;
  source: string | undefined;
  target: string | undefined;
  readonly: string | true | undefined;
  required: string | true | undefined;
  sharing: string | undefined;
  mode: string | undefined;
  uid: string | undefined;
  gid: string | undefined;
  size: string | undefined;
  env: string | undefined;
}

export interface RunInstruction extends InstructionBase<"RUN"> {
  /**
   * A lone here-document is itself the shell's command line. Next to other words, here-documents stay part of the line with
   * their bodies, and the shell reads them.
   */
  command: Command | Script;
  /** False if the command is the body of a here-document with a quoted delimiter: only the shell replaces variables. */
  expand: boolean;
  mounts: readonly Mount[];
  network: "default" | "none" | "host" | undefined;
  security: "sandbox" | "insecure" | undefined;
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
  link: boolean | undefined;
}

export interface CopyInstruction extends InstructionBase<"COPY">, CopyFields {
  from: string | undefined;
}

export interface AddInstruction extends InstructionBase<"ADD">, CopyFields {
  checksum: string | undefined;
  /** `undefined`: the URL may say it. */
  keepGitDir: boolean | undefined;
  /** `undefined`: the kind of source decides. */
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

export interface StartCommandInstruction extends InstructionBase<"CMD" | "ENTRYPOINT"> {
  /** An empty command removes the base image's. */
  command: Command;
}

export interface LabelInstruction extends InstructionBase<"LABEL"> {
  pairs: readonly { key: string; value: string }[];
}

export interface ExposeInstruction extends InstructionBase<"EXPOSE"> {
  /** `80`, `53/udp`, `8000-8010`. */
  ports: readonly string[];
}

export interface VolumeInstruction extends InstructionBase<"VOLUME"> {
  paths: readonly string[];
}

export interface StopsignalInstruction extends InstructionBase<"STOPSIGNAL"> {
  signal: string;
}

export interface MaintainerInstruction extends InstructionBase<"MAINTAINER"> {
  maintainer: string;
}

/** Durations are in Go's notation, such as `1m30s`; `undefined` if not given. */
export interface HealthcheckInstruction extends InstructionBase<"HEALTHCHECK"> {
  /** `undefined`: `HEALTHCHECK NONE`. */
  command: Command | undefined;
  interval: string | undefined;
  timeout: string | undefined;
  startPeriod: string | undefined;
  startInterval: string | undefined;
  retries: string | undefined;
}

interface OnbuildInstruction extends InstructionBase<"ONBUILD"> {
  /** `undefined` if it does not parse, which is reported. */
  trigger: Instruction | undefined;
}

export interface ShellInstruction extends InstructionBase<"SHELL"> {
  shell: readonly string[];
}

/** Instructions that set an image's configuration, not its files. */
export type ConfigurationInstruction =
  | StartCommandInstruction
  | LabelInstruction
  | ExposeInstruction
  | VolumeInstruction
  | StopsignalInstruction
  | MaintainerInstruction
  | HealthcheckInstruction
  | OnbuildInstruction
  | ShellInstruction;

export type Instruction =
  | FromInstruction
  | RunInstruction
  | CopyInstruction
  | AddInstruction
  | WorkdirInstruction
  | EnvInstruction
  | ArgInstruction
  | UserInstruction
  | ConfigurationInstruction;

/** A questionable part of a Dockerfile that Docker accepts. `rule` is Docker's name of the build check, if any. */
export interface DockerfileWarning {
  rule: string;
  message: string;
  range: LineRange;
}

/** A FROM with the instructions up to the next FROM. */
export interface Stage {
  /** 0 for the first stage, as in `COPY --from=0`. */
  index: number;
  /** The name after `AS`, in lower case. */
  name: string | undefined;
  from: FromInstruction;
  instructions: readonly Instruction[];
}

export interface Dockerfile {
  /** The path as given by the user, for messages. */
  path: string;
  /** All physical lines, without line ends; for messages that show them. */
  lines: readonly string[];
  /** The escape character: `\`, or a backtick after `# escape=`. */
  escape: EscapeCharacter;
  /** Parser directives by lower-case name (`syntax`, `escape`, `check`). */
  directives: ReadonlyMap<string, string>;
  /** ARGs before the first FROM. */
  globals: readonly ArgInstruction[];
  /** Stages in the order of their FROMs. */
  stages: readonly Stage[];
  /** All instructions, in their order. */
  instructions: readonly Instruction[];
  warnings: readonly DockerfileWarning[];
}
