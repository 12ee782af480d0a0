import { usageError } from "../../errors.ts";
import { splitCsv, splitPair } from "../command-line/option-values.ts";

/** What is recorded with an image. Without `options`, nothing of this kind. */
export type AttestationEntry =
  | { kind: "provenance"; options: ProvenanceOptions | undefined }
  | { kind: "sbom"; options: SbomOptions | undefined };

export interface SbomOptions {
  /** The image that lists the packages, with variables for it; `undefined`: bough does. */
  generator: { image: string; variables: Readonly<Record<string, string>> } | undefined;
}

export interface ProvenanceOptions {
  /** True for `mode=max`: with the values of build arguments. */
  hasArguments: boolean;
  builderId: string | undefined;
  /** True if it is left out of outputs other than pushed and loaded images. */
  isInlineOnly: boolean;
}

type Fields = ReadonlyMap<string, string>;

/** Parses `type=provenance|sbom[,KEY=VALUE,...]`, the value of `--attest`. */
export function parseAttestation(text: string): AttestationEntry {
  return attestationOf(readFields(text, "--attest"), text);
}

/** Parses the value of `--provenance` or `--sbom`: `true`, `false` or `KEY=VALUE,...`. */
export function parseAttestationOf(kind: AttestationEntry["kind"], text: string): AttestationEntry {
  return entryOf(kind, readFields(text, `--${kind}`), `--${kind}`);
}

/** Returns the attestation that the fields mean. `given`: how they were written, for messages. */
export function attestationOf(fields: Fields, given: string): AttestationEntry {
  const { type, ...others } = Object.fromEntries(fields);
  if (type === "provenance" || type === "sbom")
    return entryOf(type, new Map(Object.entries(others)), "--attest");
  throw usageError(
    `--attest takes type=provenance or type=sbom, not ${JSON.stringify(given)}`,
    "For example: --attest type=provenance,mode=max.",
  );
}

/** @param option the one that gave it, for messages */
function entryOf(kind: AttestationEntry["kind"], fields: Fields, option: string): AttestationEntry {
  return kind === "provenance"
    ? { kind, options: readProvenance(fields, option) }
    : { kind, options: readSbom(fields, option) };
}

function readProvenance(fields: Fields, option: string): ProvenanceOptions | undefined {
  const {
    mode = "max",
    version = "v1",
    "builder-id": builderId,
    disabled,
    "inline-only": inlineOnly,
    ...others
  } = Object.fromEntries(fields);
  refuseFields(option, { ...others, reproducible: undefined });
  if (mode !== "min" && mode !== "max")
    throw usageError(
      `${option}: mode must be min or max, not ${JSON.stringify(mode)}`,
      "max records the values of build arguments, too.",
    );
  if (version !== "v1")
    throw usageError(
      `${option}: only version=v1 of SLSA's provenance is written, not ${version}`,
      "Leave it out.",
    );
  if (isTrue(option, disabled)) return undefined;
  const isInlineOnly = isTrue(option, inlineOnly, "inline-only");
  return { hasArguments: mode === "max", builderId, isInlineOnly };
}

function readSbom(fields: Fields, option: string): SbomOptions | undefined {
  const { disabled, generator, ...others } = Object.fromEntries(fields);
  if (isTrue(option, disabled)) return undefined;
  if (generator === "")
    throw usageError(`${option}: generator names no image`, "Give generator=IMAGE, or leave it out.");
  if (generator !== undefined) return { generator: { image: generator, variables: others } };
  refuseFields(option, others);
  return { generator: undefined };
}

/** Reads `true`, `false`, or `KEY=VALUE,...`. */
function readFields(text: string, option: string): Map<string, string> {
  if (/^(true|1)$/.test(text)) return new Map();
  if (/^(false|0)$/.test(text)) return new Map([["disabled", "true"]]);
  return new Map(
    splitCsv(text).map((field): [string, string] => {
      const [key, value] = splitPair(field);
      if (key !== "" && value !== undefined) return [key, value];
      throw usageError(
        `${option} takes true, false or KEY=VALUE, not ${JSON.stringify(field)}`,
        "For example: --provenance=mode=max.",
      );
    }),
  );
}

function isTrue(option: string, text: string | undefined, field = "disabled"): boolean {
  if (text === undefined || text === "true" || text === "1") return text !== undefined;
  if (text === "false" || text === "0") return false;
  throw usageError(
    `${option}: ${field} must be true or false, not ${JSON.stringify(text)}`,
    field === "disabled" ? "true records nothing." : "Leave it out.",
  );
}

function refuseFields(option: string, fields: Readonly<Record<string, string | undefined>>): void {
  const [unknown] = Object.keys(fields).filter((name) => fields[name] !== undefined);
  if (unknown !== undefined)
    throw usageError(
      `${option}: unknown field ${unknown}`,
      "provenance has mode, builder-id, version, inline-only and disabled.",
    );
}
