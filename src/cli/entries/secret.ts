import { type BoughError, usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { splitCsv, splitPair } from "../command-line/option-values.ts";

/** A secret of a build. Nothing has been read yet. */
export type SecretEntry = { id: string } & SecretSource;

export type SecretSource =
  | { kind: "file"; path: string }
  | { kind: "variable"; name: string }
  /** The variable that is named like the secret, or if there is none, the file. */
  | { kind: "by-id" };

const fieldNames = ["id", "type", "src", "source", "env"] as const;

type SecretFields = Partial<Record<(typeof fieldNames)[number], string>>;

/** Parses `id=ID[,src=FILE|,env=NAME]`, which is docker's syntax. */
export function parseSecret(text: string): SecretEntry {
  const given: SecretFields = {};
  for (const field of splitCsv(text)) {
    const [key, value] = splitPair(field);
    const name = fieldNames.find((known) => known === key.toLowerCase());
    if (value === undefined) throw badSecret(`invalid field '${field}' must be a key=value pair`);
    if (name === undefined) throw badSecret(`unexpected key '${key}'`);
    given[name] = value;
  }
  return secretOf(given);
}

/** Returns the secret that the fields mean. An empty field is as if it were not given. */
export function secretOf({ id = "", type, src, source = src, env }: SecretFields): SecretEntry {
  if (id === "") throw badSecret("the id is missing");
  if (type !== undefined && type !== "file" && type !== "env")
    throw badSecret(`unsupported secret type ${JSON.stringify(type)}`);
  if (env !== undefined && env !== "" && type !== "file") return { id, kind: "variable", name: env };
  if (source !== undefined && source !== "")
    return type === "env" ? { id, kind: "variable", name: source } : { id, kind: "file", path: source };
  if (type === undefined) return { id, kind: "by-id" };
  return type === "env" ? { id, kind: "variable", name: id } : { id, kind: "file", path: id };
}

/** Returns an error that does not show the whole text, which may be a secret by mistake. */
function badSecret(what: string): BoughError {
  return usageError(
    wording`${{ option: "secret" }}: ${what}`,
    wording`Write ${{ option: "secret" }} id=ID,src=FILE or ${{ option: "secret" }} id=ID,env=NAME.`,
  );
}
