import { usageError } from "../../errors.ts";
import { parseGoBoolean } from "../../go/boolean.ts";
import { requireServiceAddress } from "../../signatures/signing-service.ts";
import { listWords, splitCsv, splitPair } from "../command-line/option-values.ts";
import { signFields } from "./sign-definition.ts";

/** What `--sign` asks for. Its files are read later. */
export interface SignRequest {
  by:
    | { kind: "key"; place: string }
    | { kind: "token file"; path: string; authority: string }
    /** The job's own. */
    | { kind: "token"; authority: string };
  log: string | undefined;
  timestampAuthority: string | undefined;
  hasCosignTag: boolean;
}

/** The public services of Sigstore. */
const publicAuthority = "https://fulcio.sigstore.dev";
const publicLog = "https://rekor.sigstore.dev";

type Field = (typeof signFields)[number];

/** Parses `--sign`; `false` asks for nothing. Throws for what can be seen to be impossible before anything is built. */
export function parseSign(text: string | undefined): SignRequest | undefined {
  if (text === undefined || text === "false") return undefined;
  const { isKeyless, fields } = readFields(text);
  const address = (field: Field) => {
    const given = fields.get(field);
    return given === undefined ? undefined : requireServiceAddress(given, `--sign: ${field}`);
  };
  const [key, token, authority] = [fields.get("key"), fields.get("token"), address("fulcio-url")];
  const [log, timestampAuthority] = [address("rekor-url"), address("timestamp-url")];
  const isLogged = readFlag(fields, "tlog");
  const hasCosignTag = readFlag(fields, "cosign-tag") ?? false;
  if (isLogged === false && log !== undefined)
    throw usageError("--sign: rekor-url is the log that tlog=false leaves out");
  const shared = { timestampAuthority, hasCosignTag };
  if (key !== undefined) {
    const other = (["token", "fulcio-url"] as const).find((field) => fields.has(field));
    if (isKeyless || other !== undefined)
      throw usageError(
        `--sign: with a key, there is no ${other ?? "keyless"}`,
        "A key is known to whoever verifies the signature: it needs no certificate.",
      );
    // The public log shows everybody the digest: a key alone has no need of it.
    return {
      ...shared,
      by: { kind: "key", place: key },
      log: log ?? (isLogged === true ? publicLog : undefined),
    };
  }
  if (isLogged === false && timestampAuthority === undefined)
    throw usageError(
      "--sign: without a log, nothing proves when a certificate was used",
      "Give timestamp-url=URL, too, or leave tlog=false out.",
    );
  const certified = { authority: authority ?? publicAuthority };
  return {
    ...shared,
    by:
      token === undefined
        ? { kind: "token", ...certified }
        : { kind: "token file", path: token, ...certified },
    log: isLogged === false ? undefined : (log ?? publicLog),
  };
}

/** Reads `keyless` and `FIELD=VALUE,...`. */
function readFields(text: string): { isKeyless: boolean; fields: Map<Field, string> } {
  const fields = new Map<Field, string>();
  let isKeyless = false;
  for (const part of text === "true" ? ["keyless"] : splitCsv(text)) {
    const [name, value] = splitPair(part);
    const field = signFields.find((known) => known === name);
    if (name === "keyless" && value === undefined) isKeyless = true;
    else if (field !== undefined && value) fields.set(field, value);
    else
      throw usageError(
        `--sign takes keyless, or FIELD=VALUE, not ${JSON.stringify(part)}`,
        `Fields are ${listWords(signFields, "and")}.`,
      );
  }
  return { isKeyless, fields };
}

function readFlag(fields: ReadonlyMap<Field, string>, field: Field): boolean | undefined {
  const value = fields.get(field);
  const flag = value === undefined ? undefined : parseGoBoolean(value);
  if (value === undefined || flag !== undefined) return flag;
  throw usageError(`--sign: ${field} must be true or false, not ${JSON.stringify(value)}`);
}
