/** The typed instructions of a Dockerfile. Words are as written: nothing is expanded before the build gets to it. */
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
  /** What follows the flags, as written. `argumentWords` splits it. */
  args: string;
  heredocs: readonly HereDocument[];
}

export interface FromInstruction extends InstructionBase<"FROM"> {
  image: string;
  stageName: string | undefined;
  platform: string | undefined;
}

/** A here-document that starts with `#!` and is the whole of a RUN: a program of its own, run as an executable file. */
interface Script {
  form: "script";
  /** The here-document's name, for the file. */
  name: string;
  content: string;
}

/** One `--mount`, all of its fields as written; `undefined` for what is not given. A switch without a value is `true`. */
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
   * A lone here-document is the shell's command line itself; beside other words here-documents stay part of the line,
   * bodies included, and the shell reads them.
   */
  command: Command | Script;
  /** False where the command is the body of a here-document with a quoted delimiter: variables are the shell's alone. */
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
  /** Undefined: an address may say it. */
  keepGitDir: boolean | undefined;
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

export interface StartCommandInstruction extends InstructionBase<"CMD" | "ENTRYPOINT"> {
  /** An empty one takes back what the base image says. */
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

/** Durations as Go writes them, such as `1m30s`; `undefined` for what is not given. */
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
  /** `undefined` where it does not parse, which is reported. */
  trigger: Instruction | undefined;
}

export interface ShellInstruction extends InstructionBase<"SHELL"> {
  shell: readonly string[];
}

/** Those that say how an image is started, not what is in it. */
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

/** Something that Docker takes but a person should know about. `rule` is Docker's name of the build check, if any. */
export interface DockerfileWarning {
  rule: string;
  message: string;
  range: LineRange;
}

/** A FROM with the instructions up to the next one. */
export interface Stage {
  /** 0 for the first; `COPY --from=0` means it. */
  index: number;
  /** The name behind `AS`, in lower case. */
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
  /** All of them, in their order. */
  instructions: readonly Instruction[];
  warnings: readonly DockerfileWarning[];
}
