/** Methods that replace the build of a target: `--call` and `--check`, or the field `call`. */
import { usageError } from "../../errors.ts";
import { parseGoBoolean } from "../../go/boolean.ts";
import type { Call } from "../builds/options/input-definitions.ts";
import { splitCsv, splitPair } from "../command-line/option-values.ts";
import type { ResolvedTarget } from "./resolve.ts";

const methods = ["check", "outline", "targets"] as const;
export type Method = (typeof methods)[number];

/** The method that the command line sets for all targets; `undefined` leaves it to the files. */
type BakeCall = Omit<Call, "method"> & { method: string | undefined };

/** Returns the call of the command line, where `--check` is `--call=check`. */
export function bakeCallOf({
  call,
  check,
}: {
  call?: BakeCall | undefined;
  check?: boolean | undefined;
}): BakeCall {
  return check === true ? parseBakeCall("check") : (call ?? parseBakeCall(""));
}

/** Parses `METHOD[,format=json][,ignorestatus=true]`. */
export function parseBakeCall(given: string): BakeCall {
  const words = splitCsv(given).map(splitPair);
  const named = words.filter(([, value]) => value === undefined).map(([name]) => name);
  const fields = new Map(words.filter(([, value]) => value !== undefined));
  const unknown = [...fields.keys()].find((key) => key !== "format" && key !== "ignorestatus");
  const [method = ""] = named;
  if (named.length > 1 || unknown !== undefined || (method !== "" && !isCall(method)))
    throw usageError(
      `--call takes ${[...methods, "build"].join(", ")}, not ${JSON.stringify(given)}`,
      "Behind it, ,format=json prints JSON.",
    );
  return {
    method: method === "" || method === "build" ? undefined : method.replace(/^check$/, "lint"),
    isJson: fields.get("format") === "json",
    ignoresStatus: parseGoBoolean(fields.get("ignorestatus") ?? "") === true,
  };
}

function isCall(text: string): boolean {
  return text === "build" || text === "lint" || methods.some((method) => method === text);
}

/** Returns the method of a target; `undefined` if it is built. Throws a usage BoughError for an unsupported method. */
export function methodOf({ fields, name, origin }: ResolvedTarget): Method | undefined {
  const call = (fields.call ?? "").split(",", 1)[0] || "build";
  if (call === "build") return undefined;
  const method = methods.find((each) => each === call.replace(/^lint$/, "check"));
  if (method !== undefined) return method;
  throw usageError(
    `target ${name} (${origin}): call=${call}: only ${methods.join(", ")} and build are supported`,
  );
}
