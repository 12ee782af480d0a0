import { constants } from "node:os";
import { bytesOf } from "../../service/wire/operation.ts";
import {
  optionalBoolean,
  optionalFields,
  optionalNumber,
  optionalString,
  optionalStrings,
  type RequestFields,
  readString,
  refuse,
  refuseUnknownFields,
} from "../http/fields.ts";
import type { InputSpec } from "../sandbox/process-input.ts";

/** A process to run, as an instance's main process or beside it: checked and with its defaults. */
export interface ExecSpec {
  command: string;
  args: string[];
  shell: boolean;
  env: Record<string, string>;
  /** `undefined` for that of the image, or of the main process. */
  cwd: string | undefined;
  /** `undefined` for the main process's user, and root for the main process itself. */
  uid: number | undefined;
  gid: number | undefined;
  stdin: InputSpec;
  truncateOutputAt: number;
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

/** @param options.mayBeEmpty accepts an empty command, which runs nothing. */
export function readExecSpec(body: RequestFields, options = { mayBeEmpty: false }): ExecSpec {
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
    uid: optionalId(body, "uid"),
    gid: optionalId(body, "gid"),
    stdin: stdin === undefined ? { bytes: new Uint8Array(), close: true } : readInput(stdin, "stdin", true),
    truncateOutputAt: optionalNumber(body, "truncate_output_at", 0) ?? 65_536,
  };
}

/** Returns the command line. A shell passes its `args` to the command, each as one word. */
export function argvOf({ command, args, shell }: Pick<ExecSpec, "command" | "args" | "shell">): string[] {
  if (!shell) return [command, ...args];
  return args.length === 0 ? ["/bin/sh", "-c", command] : ["/bin/sh", "-c", `${command} "$@"`, "sh", ...args];
}

/**
 * Base64, with line breaks, missing padding and the alphabet for URLs accepted. Only one of the two parts can match a space: otherwise
 * the time for refusing many spaces would grow with the square of their number.
 */
const base64 = /^[\w+/\s-]*(?:=[=\s]*)?$/;

/**
 * Reads bytes for a process's standard input.
 *
 * @param within the name of the enclosing field; "" for the body itself
 * @param close the default of the field `close`
 */
export function readInput(fields: RequestFields, within: string, close: boolean): InputSpec {
  const nameOf = (name: string) => (within === "" ? name : `${within}.${name}`);
  const closes = optionalBoolean(fields, "close") ?? close;
  // A client in this process passes bytes.
  if (fields.bytes instanceof Uint8Array) return { bytes: fields.bytes, close: closes };
  refuseUnknownFields(fields, ["value", "encoding", "close"], within || undefined);
  const encoding = optionalString(fields, "encoding") ?? "ascii";
  if (!["ascii", "utf-8", "base64"].includes(encoding))
    refuse(nameOf("encoding"), "must be ascii, utf-8 or base64");
  const value = optionalString(fields, "value") ?? refuse(nameOf("value"), "is missing");
  if (encoding === "base64" && !base64.test(value)) refuse(nameOf("value"), "is not base64");
  return { bytes: bytesOf({ value, encoding }), close: closes };
}

export function optionalId(fields: RequestFields, name: string): number | undefined {
  const id = optionalNumber(fields, name, 0);
  return id !== undefined && id > maxId ? refuse(name, "is too large") : id;
}

/** Process arguments, variables and paths can't contain NUL. */
export function refuseNul(name: string, texts: readonly string[]): void {
  if (texts.some((text) => text.includes("\0"))) refuse(name, "must not contain a NUL character");
}

function readEnvironment(fields: RequestFields): Record<string, string> {
  for (const [name, value] of Object.entries(fields)) {
    if (name === "" || name.includes("="))
      refuse("env", `has a variable with the name ${JSON.stringify(name)}`);
    if (typeof value !== "string") refuse(`env.${name}`, "must be a string");
    refuseNul(`env.${name}`, [name, value]);
  }
  return fields as Record<string, string>;
}

/** Returns a signal's number for `TERM`, `SIGTERM` or `15`. */
export function readSignal(text: string | undefined): number {
  if (text === undefined) return constants.signals.SIGKILL;
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= 1 && number <= 64) return number;
  const name = `SIG${text.toUpperCase().replace(/^SIG/, "")}`;
  const signals: Readonly<Record<string, number>> = constants.signals;
  return (
    signals[name] ??
    refuse("signal", `must be a signal such as TERM, SIGKILL or 9, not ${JSON.stringify(text)}`)
  );
}

/** Returns the signal in an exit code of 128 plus its number, as runc and shells have it; -1 if there is none. */
export function signalOf(exitCode: number): number {
  return exitCode > 128 && exitCode <= 128 + 64 ? exitCode - 128 : -1;
}
