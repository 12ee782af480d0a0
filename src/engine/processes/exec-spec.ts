import { bytesOf } from "../../service/wire/operation.ts";
import {
  type Fields,
  optionalBoolean,
  optionalFields,
  optionalNumber,
  optionalString,
  optionalStrings,
  readString,
  refuse,
  refuseUnknown,
} from "../http/fields.ts";

/** What is to be run, whether as an instance's main process or beside it: checked and with its defaults. */
export interface ExecSpec {
  command: string;
  args: string[];
  shell: boolean;
  env: Record<string, string>;
  /** `undefined`: the image's own, or that of the main process. */
  cwd: string | undefined;
  /** `undefined`: as who the main process runs, which is root if nothing is said. */
  uid: number | undefined;
  gid: number | undefined;
  stdin: InputSpec;
  truncateOutputAt: number;
}

/** What is written to a standard input, and whether that is all. */
export interface InputSpec {
  bytes: Uint8Array;
  close: boolean;
}

export const execFields = [
  "command",
  "args",
  "shell",
  "env",
  "cwd",
  "uid",
  "gid",
  "stdin",
  "truncate_output_at",
] as const;

const maxId = 0xffff_fffe;

/** @param options.mayBeEmpty takes an empty command, which says that nothing is run. */
export function readExecSpec(body: Fields, options = { mayBeEmpty: false }): ExecSpec {
  const command = readString(body, "command");
  const args = optionalStrings(body, "args") ?? [];
  const cwd = optionalString(body, "cwd") || undefined;
  const stdin = optionalFields(body, "stdin");
  if (command === "" && !options.mayBeEmpty) refuse("command", "must not be empty");
  if (cwd !== undefined && !cwd.startsWith("/")) refuse("cwd", "must be an absolute path");
  refuseNul("command", [command]);
  refuseNul("args", args);
  refuseNul("cwd", [cwd ?? ""]);
  return {
    command,
    args,
    shell: optionalBoolean(body, "shell") ?? false,
    env: readEnvironment(optionalFields(body, "env") ?? {}),
    cwd,
    uid: readId(body, "uid"),
    gid: readId(body, "gid"),
    stdin: stdin === undefined ? { bytes: new Uint8Array(), close: true } : readInput(stdin, "stdin", true),
    truncateOutputAt: optionalNumber(body, "truncate_output_at", 0) ?? 65_536,
  };
}

/** The words that are run. A shell gives its `args` to the command, each as one word. */
export function commandLine({
  command,
  args,
  shell,
}: Pick<ExecSpec, "command" | "args" | "shell">): string[] {
  if (!shell) return [command, ...args];
  return args.length === 0 ? ["/bin/sh", "-c", command] : ["/bin/sh", "-c", `${command} "$@"`, "sh", ...args];
}

/** `within`: the name of the field that it is in; "" for the body itself. `close`: where the client does not say. */
export function readInput(fields: Fields, within: string, close: boolean): InputSpec {
  const nameOf = (name: string) => (within === "" ? name : `${within}.${name}`);
  refuseUnknown(fields, ["value", "encoding", "close"], within || undefined);
  const encoding = optionalString(fields, "encoding") ?? "ascii";
  if (!["ascii", "utf-8", "base64"].includes(encoding))
    refuse(nameOf("encoding"), "must be ascii, utf-8 or base64");
  const value = optionalString(fields, "value") ?? refuse(nameOf("value"), "is missing");
  return { bytes: bytesOf({ value, encoding }), close: optionalBoolean(fields, "close") ?? close };
}

export function readId(fields: Fields, name: string): number | undefined {
  const id = optionalNumber(fields, name, 0);
  return id !== undefined && id > maxId ? refuse(name, "is too large") : id;
}

/** No process argument, variable or path can hold one. */
export function refuseNul(name: string, texts: readonly string[]): void {
  if (texts.some((text) => text.includes("\0"))) refuse(name, "must not contain a NUL character");
}

function readEnvironment(fields: Fields): Record<string, string> {
  for (const [name, value] of Object.entries(fields)) {
    if (name === "" || name.includes("="))
      refuse("env", `has a variable with the name ${JSON.stringify(name)}`);
    if (typeof value !== "string") refuse(`env.${name}`, "must be a string");
    refuseNul(`env.${name}`, [name, value]);
  }
  return fields as Record<string, string>;
}
