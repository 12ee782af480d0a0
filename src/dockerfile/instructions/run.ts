import { nearest } from "../../suggest.ts";
import { type FlagKind, readFlags } from "../flags.ts";
import type { Mount, RunInstruction } from "../instruction.ts";
import { parseHeredocMarker } from "../text/heredoc.ts";
import { baseOf, placeOf, type Statement, type StatementProblem } from "../text/statement.ts";
import { isEmptyCommand, parseCommand } from "./configuration.ts";

const declaredFlags: Readonly<Record<string, FlagKind>> = {
  mount: "texts",
  network: "text",
  security: "text",
};
const networks = ["default", "none", "host"] as const;
const securities = ["sandbox", "insecure"] as const;

/** Parses `RUN [flags] command`, `RUN ["program", ...]` or `RUN <<NAME`. */
export function parseRun(statement: Statement): RunInstruction {
  const flags = readFlags(statement, declaredFlags);
  const network = readChoice(statement, "network", flags.text("network"), networks);
  const security = readChoice(statement, "security", flags.text("security"), securities);
  const mounts = parseMounts(statement, flags.texts("mount"));
  const command = parseCommand(statement, statement.args);
  // Docker accepts a RUN without arguments: it runs a shell with an empty command.
  if (command.form === "exec" && isEmptyCommand(command)) {
    const at = placeOf(statement.args);
    statement.report({ message: "RUN requires at least one argument", expected: "a command", at });
  }
  return {
    ...baseOf(statement, "RUN", flags.list),
    ...withHeredocs(statement, command),
    mounts,
    network,
    security,
  };
}

/** Applies BuildKit's rules for here-documents in a RUN. */
function withHeredocs(
  statement: Statement,
  command: RunInstruction["command"],
): Pick<RunInstruction, "command" | "expand"> {
  const [document] = statement.heredocs;
  if (document === undefined || command.form !== "shell") return { command, expand: true };
  if (parseHeredocMarker(command.line) === undefined) {
    return { command: { form: "shell", line: command.line + statement.heredocText }, expand: true };
  }
  if (document.content.startsWith("#!")) {
    return { command: { form: "script", name: document.name, content: document.content }, expand: false };
  }
  return { command: { form: "shell", line: document.content }, expand: document.expand };
}

function readChoice<Choice extends string>(
  statement: Statement,
  name: string,
  value: string | undefined,
  choices: readonly Choice[],
): Choice | undefined {
  if (value === undefined) return undefined;
  const choice = choices.find((known) => known === value);
  if (choice !== undefined) return choice;
  const message = `invalid ${name} mode "${value}"`;
  const expected = `one of ${choices.join(", ")}`;
  statement.report({ message, expected, at: statement.placeOfFlag(name) });
  return undefined;
}

const types = ["bind", "cache", "tmpfs", "secret", "ssh"];

/** Each key of `--mount`; true if it may have no value. */
const keys = new Map([
  ["type", false],
  ["from", false],
  ["source", false],
  ["src", false],
  ["target", false],
  ["dst", false],
  ["destination", false],
  ["id", false],
  ["sharing", false],
  ["mode", false],
  ["uid", false],
  ["gid", false],
  ["size", false],
  ["env", false],
  ["required", true],
  ["readonly", true],
  ["ro", true],
  ["readwrite", true],
  ["rw", true],
]);

/** Parses the values of `--mount=type=cache,target=/path,...`. Checks keys and types. */
function parseMounts(statement: Statement, values: readonly string[]): Mount[] {
  return values.map((value) => {
    const fields = splitFields(value).map((field) => {
      const separator = field.indexOf("=");
      const key = (separator < 0 ? field : field.slice(0, separator)).toLowerCase();
      return { key, field, value: separator < 0 ? undefined : field.slice(separator + 1) };
    });
    const at = statement.rawFlags.find(({ text }) => text === `--mount=${value}`);
    for (const { key, field, value } of fields) {
      const complaint = checkField(key, field, value);
      if (complaint !== undefined) statement.report({ ...complaint, at });
    }
    const last = (...names: string[]) => fields.findLast(({ key }) => names.includes(key));
    const text = (...names: string[]) => last(...names)?.value;
    const isGiven = (...names: string[]) => {
      const field = last(...names);
      return field && (field.value ?? true);
    };
    const type = text("type") ?? "bind";
    return {
      type: type.includes("$") ? type : type.toLowerCase(),
      id: text("id"),
      // An empty one means the build context, as if it were not given.
      from: text("from") || undefined,
      source: text("source", "src"),
      target: text("target", "dst", "destination"),
      readonly: readonlyOf(last("readonly", "ro", "readwrite", "rw")),
      required: isGiven("required"),
      sharing: text("sharing"),
      mode: text("mode"),
      uid: text("uid"),
      gid: text("gid"),
      size: text("size"),
      env: text("env"),
    };
  });
}

/** Returns the value of `readonly`. For `rw`, its opposite, the value is inverted. */
function readonlyOf(
  field: { key: string; value: string | undefined } | undefined,
): string | true | undefined {
  if (field === undefined) return undefined;
  const isOpposite = field.key === "readwrite" || field.key === "rw";
  if (!isOpposite) return field.value ?? true;
  if (field.value === undefined || /^(1|t|true)$/i.test(field.value)) return "false";
  return /^(0|f|false)$/i.test(field.value) ? "true" : field.value;
}

function checkField(key: string, field: string, value: string | undefined): StatementProblem | undefined {
  if (field === "") return { message: "invalid field '' must be a key=value pair" };
  const mayBeBare = keys.get(key);
  if (mayBeBare === undefined) {
    const meant = nearest(key, keys.keys());
    const message = `unexpected key '${key}' in '${field}'${meant === undefined ? "" : ` (did you mean ${meant}?)`}`;
    return { message, expected: `one of ${[...keys.keys()].join(", ")}` };
  }
  if (value === undefined) {
    return mayBeBare ? undefined : { message: `invalid field '${field}' must be a key=value pair` };
  }
  // A variable is replaced only during the build.
  if (key !== "type" || value.includes("$") || types.includes(value.toLowerCase())) return undefined;
  const meant = nearest(value, types);
  const message = `unsupported mount type "${value}"${meant === undefined ? "" : ` (did you mean ${meant}?)`}`;
  return { message, expected: `one of ${types.join(", ")}` };
}

/** Splits comma-separated values. A whole field may be in double quotes. */
function splitFields(text: string): string[] {
  const fields = text.match(/(?<=^|,)(?:"(?:[^"]|"")*"|[^,]*)(?=,|$)/g) ?? [];
  return fields.map((field) =>
    field.startsWith('"') && field.endsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field,
  );
}
