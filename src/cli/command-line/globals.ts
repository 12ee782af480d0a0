import { usageError } from "../../errors.ts";
import { quote } from "../../programs/quote.ts";
import { Secret } from "../../secret.ts";
import type { LogLevel } from "../../terminal/log.ts";
import type { Values } from "./arguments.ts";
import type { ArgumentDefinitions } from "./definitions.ts";
import { oneOf } from "./option-values.ts";

/** The values of `--format`. */
export const formats = ["table", "json", "csv", "tsv"] as const;

/** The values of `--format` with which `bough build --check` reports findings to other programs. */
export const reportFormats = ["sarif", "gitlab"] as const;

/** Options that every command takes, before its name or after it. */
export const globalDefinitions = {
  session: {
    type: "string",
    completes: "session",
    alias: "S",
    valueHint: "KEY",
    description: "Session for use, run and similar commands (default: BOUGH_SESSION, else `default`)",
  },
  profile: {
    type: "string",
    completes: "profile",
    alias: "p",
    valueHint: "NAME",
    description: "Profile of the service to use",
  },
  url: { type: "string", refusesEmpty: true, valueHint: "URL", description: "Base address of the service" },
  token: {
    type: "string",
    valueHint: "TOKEN",
    description: "Token for the service (better: CONTREE_TOKEN or a profile)",
  },
  project: { type: "string", valueHint: "ID", description: "Project at the service" },
  docker: {
    type: "boolean",
    description:
      "Read command lines, and build, as docker does; the same as BOUGH_DOCKER=1 (see `bough help docker`)",
  },
  local: { type: "boolean", description: "Use the embedded engine, even if a service is configured" },
  format: {
    type: "string",
    completes: formats,
    alias: "f",
    valueHint: "FORMAT",
    description: "How results are printed: table, json, csv or tsv (default: table)",
  },
  wide: { type: "boolean", description: "Show full ids and times in tables, without cutting long cells" },
  "log-level": {
    type: "string",
    completes: ["debug", "info", "warn", "error"],
    alias: "L",
    valueHint: "LEVEL",
    description: "debug, info, warn or error (default: info)",
  },
  quiet: {
    type: "boolean",
    alias: "q",
    description:
      "Print only the result's id; log only errors, and why an image differs from what was asked for",
  },
  help: { type: "boolean", alias: "h", description: "Print help and exit" },
  version: { type: "boolean", description: "Print the version and exit" },
} as const satisfies ArgumentDefinitions;

const logLevels: readonly LogLevel[] = ["debug", "info", "warn", "error"];

export interface GlobalOptions {
  session: string | undefined;
  profile: string | undefined;
  url: string | undefined;
  token: Secret | undefined;
  project: string | undefined;
  local: boolean;
  format: (typeof formats)[number];
  /** Set for `bough build --check` only. */
  report: (typeof reportFormats)[number] | undefined;
  wide: boolean;
  logLevel: LogLevel;
  quiet: boolean;
}

/** Reads the global options. Those `after` the command's name win over those `before` it. */
export function readGlobals(before: Values, after: Values, command?: string): GlobalOptions {
  const text = (name: keyof typeof globalDefinitions) => after.text(name) ?? before.text(name);
  const flag = (name: keyof typeof globalDefinitions) => after.flag(name) || before.flag(name);
  // Only `build` has this option.
  const progress = after.text("progress");
  const quiet = flag("quiet") || progress === "quiet";
  const format = text("format") ?? "table";
  const report = command === "bough build" ? reportFormats.find((name) => name === format) : undefined;
  const token = text("token");
  if (text("session") === "")
    throw usageError(
      '--session takes the key of a session, not ""',
      "Leave it out for the session `default`.",
    );
  return {
    session: text("session"),
    profile: text("profile"),
    url: text("url"),
    token: token === undefined ? undefined : Secret.of(token),
    project: text("project"),
    local: flag("local"),
    // The -f of docker build names a Dockerfile; the --format of podman and docker has other values.
    format:
      report === undefined ? oneOf(format, formats, "--format", hintOnFormat(format, command)) : "table",
    report,
    wide: flag("wide"),
    logLevel: oneOf(
      text("log-level") ?? (quiet || progress === "none" ? "error" : "info"),
      logLevels,
      "--log-level",
    ),
    quiet,
  };
}

/** docker's -f names a Dockerfile or a filter, its --format takes templates. */
function hintOnFormat(format: string, command: string | undefined): string | undefined {
  const [, fields] = /^\{\{\s*(?:json\s+)?\.([\w.]*)\s*\}\}$/.exec(format) ?? [];
  if (fields !== undefined || format.includes("{{"))
    return `There are no templates: -f json prints everything, for example for jq: ${command} -f json ... | jq .${command === "bough inspect" ? (fields ?? "").replace(/^Config/, "config") : ""}`;
  if (reportFormats.some((name) => name === format))
    return `\`bough build --check --format ${format}\` prints what the checks find so.`;
  if (command === "bough images" && format.includes("="))
    return "`bough images NAME`, --tag PREFIX, --tagged, --since and --until choose images.";
  const isDockerfile = command === "bough build" && !/^(docker|oci)$/.test(format);
  return isDockerfile ? `For a Dockerfile, write: --dockerfile ${format}` : undefined;
}

/** Returns a command line to paste, for the same service as this one. */
export function commandLine(globals: GlobalOptions, words: readonly string[]): string {
  return ["bough", ...serviceOptions(globals), ...words].map(quote).join(" ");
}

/** Returns the options that choose the same service, without the token. */
export function serviceOptions({ local, profile, url, project }: GlobalOptions): string[] {
  return [
    ...(local ? ["--local"] : []),
    ...(profile === undefined ? [] : ["-p", profile]),
    ...(url === undefined ? [] : ["--url", url]),
    ...(project === undefined ? [] : ["--project", project]),
  ];
}
