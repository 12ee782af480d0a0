import type { Database } from "bun:sqlite";
import { secretsAmong } from "../../dockerfile/secrets.ts";
import { createPace } from "../../pace.ts";
import type { NetworkMode, ResourcesLimits } from "../../service/types.ts";
import { RequestError } from "../http/answers.ts";
import {
  asFields,
  type Fields,
  optionalBoolean,
  optionalFields,
  optionalNumber,
  optionalString,
  optionalStrings,
  readString,
  refuse,
} from "../http/fields.ts";
import type { Layout } from "../layout.ts";
import { filePath, findFile } from "../records/files.ts";
import { readLimits } from "./limits.ts";
import { decodeBytes } from "./output.ts";
import type { StagedFile } from "./staging.ts";

/** Seconds. */
export const longestTimeout = 86_400;

/** The body of `POST /v1/instances`, checked and with its defaults. */
export interface InstanceSpec {
  image: string;
  args: string[];
  env: Record<string, string>;
  /** `undefined`: the image's own. */
  cwd: string | undefined;
  files: StagedFile[];
  timeoutSeconds: number;
  disposable: boolean;
  hostname: string;
  network: NetworkMode;
  stdin: Uint8Array | undefined;
  truncateOutputAt: number;
  preserveEnv: boolean;
  uid: number;
  gid: number | undefined;
  limits: ResourcesLimits;
  /** What the operation's record says of the request. */
  metadata: Record<string, unknown>;
}

const longestId = 0xffff_fffe;

export async function readInstanceSpec(
  body: Fields,
  database: Database,
  layout: Layout,
): Promise<InstanceSpec> {
  const image = readString(body, "image");
  const command = readString(body, "command");
  const shell = optionalBoolean(body, "shell") ?? false;
  const args = optionalStrings(body, "args") ?? [];
  if (command === "") refuse("command", "must not be empty");
  if (shell && args.length > 0) refuse("args", "can only be given without shell");
  const cwd = optionalString(body, "cwd") || undefined;
  if (cwd !== undefined && !cwd.startsWith("/")) refuse("cwd", "must be an absolute path");
  const hostname = optionalString(body, "hostname") ?? "linuxkit";
  if (!/^[A-Za-z0-9._-]{1,63}$/.test(hostname))
    refuse("hostname", "must be 1 to 63 letters, digits, dots and hyphens");
  const timeoutSeconds = optionalNumber(body, "timeout", 1) ?? 600;
  if (timeoutSeconds > longestTimeout) refuse("timeout", `must be at most ${longestTimeout} seconds`);
  const disposable = optionalBoolean(body, "disposable") ?? false;
  const env = readEnvironment(optionalFields(body, "env") ?? {});
  const stdin = optionalFields(body, "stdin");
  // It is kept for as long as the operation is, and listed.
  const { mask } = secretsAmong(Object.entries(env));
  const limits = readLimits(body);
  refuseNul("command", [command, ...args]);
  refuseNul("cwd", [cwd ?? ""]);
  return {
    image,
    args: shell ? ["/bin/sh", "-c", command] : [command, ...args],
    env,
    cwd,
    files: await readFiles(optionalFields(body, "files") ?? {}, database, layout),
    timeoutSeconds,
    disposable,
    hostname,
    network: readNetwork(optionalFields(body, "networking") ?? {}),
    stdin: stdin === undefined ? undefined : readStdin(stdin),
    truncateOutputAt: optionalNumber(body, "truncate_output_at", 0) ?? 65_536,
    preserveEnv: optionalBoolean(body, "preserve_env") ?? false,
    uid: readId(body, "uid") ?? 0,
    gid: readId(body, "gid"),
    limits,
    metadata: {
      command: mask(command),
      args: args.map(mask),
      image,
      shell,
      cwd: cwd ?? null,
      timeout: timeoutSeconds,
      disposable,
      hostname,
      truncate_output_at: optionalNumber(body, "truncate_output_at", 0) ?? null,
      resources_limits: limits,
    },
  };
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

async function readFiles(fields: Fields, database: Database, layout: Layout): Promise<StagedFile[]> {
  // Of a large context there are very many, each with a question to the disk.
  const pace = createPace(undefined);
  const files: StagedFile[] = [];
  for (const [destination, value] of Object.entries(fields)) {
    files.push(readFile(destination, value, database, layout));
    await pace.step();
  }
  return files;
}

function readFile(destination: string, value: unknown, database: Database, layout: Layout): StagedFile {
  const name = `files[${JSON.stringify(destination)}]`;
  const components = destination.split("/");
  const last = components.at(-1);
  if (!destination.startsWith("/") || last === "" || last === "." || last === "..") {
    refuse(name, "must be the absolute path of a file");
  }
  refuseNul(name, [destination]);
  const file = asFields(value, name);
  const uuid = readString(file, "uuid");
  const stored = findFile(database, layout, "uuid", uuid);
  if (stored === undefined) throw new RequestError(404, `there is no file ${uuid} (for ${destination})`);
  return {
    destination,
    source: filePath(layout, stored.sha256),
    sha256: stored.sha256,
    size: stored.size,
    uid: readId(file, "uid") ?? 0,
    gid: readId(file, "gid") ?? 0,
    mode: readMode(optionalString(file, "mode") ?? "0644", name),
  };
}

function readMode(text: string, name: string): number {
  if (!/^[0-7]{1,5}$/.test(text)) refuse(name, `has the mode ${JSON.stringify(text)}, which is not octal`);
  return Number.parseInt(text, 8) & 0o7777;
}

/** `{"enabled": false}` is the API's; `mode`, as in `docker run --network`, an extension: see `GET /v1/whoami`. */
function readNetwork(fields: Fields): NetworkMode {
  const mode = optionalString(fields, "mode") ?? "default";
  if (mode !== "default" && mode !== "none" && mode !== "host")
    refuse("networking.mode", "must be default, none or host");
  return optionalBoolean(fields, "enabled") === false ? "none" : mode;
}

function readStdin(fields: Fields): Uint8Array {
  const encoding = optionalString(fields, "encoding") ?? "ascii";
  if (!["ascii", "utf-8", "base64"].includes(encoding))
    refuse("stdin.encoding", "must be ascii, utf-8 or base64");
  return decodeBytes({ value: readString(fields, "value"), encoding });
}

function readId(fields: Fields, name: string): number | undefined {
  const id = optionalNumber(fields, name, 0);
  return id !== undefined && id > longestId ? refuse(name, "is too large") : id;
}

/** No process argument, variable or path can hold one. */
function refuseNul(name: string, texts: readonly string[]): void {
  if (texts.some((text) => text.includes("\0"))) refuse(name, "must not contain a NUL character");
}
