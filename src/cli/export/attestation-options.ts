import { BoughError, usageError } from "../../errors.ts";
import { parseGoBoolean } from "../../go/boolean.ts";
import type { Values } from "../command-line/arguments.ts";
import type { Runtime } from "../process/runtime.ts";

/** `--provenance`, `--sbom` and `--attest`. */
export interface AttestationOptions {
  /** `undefined` for none. */
  provenance: ProvenanceOptions | undefined;
  sbom: SbomOptions | undefined;
}

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

/** The option that gave it, for messages. */
type Given = { option: string; fields: ReadonlyMap<string, string> };

/**
 * Reads docker buildx's options. A later one replaces an earlier one of its kind. `undefined` if nothing is to be recorded. In the
 * place of docker's builder, images that are pushed or loaded have a provenance unless something says otherwise.
 * https://docs.docker.com/build/metadata/attestations/
 */
export function readAttestationOptions(
  values: Values,
  runtime: Pick<Runtime, "isPlugin" | "environment">,
): AttestationOptions | undefined {
  const given = values.list("attest").map((text): [string, Given] => {
    const fields = readFields(text, "--attest");
    const type = fields.get("type");
    fields.delete("type");
    if (type === "provenance" || type === "sbom") return [type, { option: "--attest", fields }];
    throw usageError(
      `--attest takes type=provenance or type=sbom, not ${JSON.stringify(text)}`,
      "For example: --attest type=provenance,mode=max.",
    );
  });
  for (const type of ["provenance", "sbom"]) {
    const text = values.text(type);
    if (text !== undefined)
      given.push([type, { option: `--${type}`, fields: readFields(text, `--${type}`) }]);
  }
  const last = (type: string) => given.findLast(([name]) => name === type)?.[1];
  const [provenance, sbom] = [last("provenance"), last("sbom")];
  const options = {
    provenance: provenance === undefined ? defaultProvenance(runtime) : readProvenance(provenance),
    sbom: sbom && readSbom(sbom),
  };
  return options.provenance === undefined && options.sbom === undefined ? undefined : options;
}

/** https://docs.docker.com/build/building/variables/#buildx_no_default_attestations */
function defaultProvenance({
  isPlugin,
  environment,
}: Pick<Runtime, "isPlugin" | "environment">): ProvenanceOptions | undefined {
  const { BUILDX_NO_DEFAULT_ATTESTATIONS: none } = environment;
  if (isPlugin !== true) return undefined;
  const isOff = none !== undefined && parseGoBoolean(none);
  if (isOff === undefined)
    throw new BoughError(
      `invalid BUILDX_NO_DEFAULT_ATTESTATIONS: strconv.ParseBool: parsing ${JSON.stringify(none)}: invalid syntax`,
    );
  return isOff ? undefined : { hasArguments: false, builderId: undefined, isInlineOnly: true };
}

function readProvenance({ option, fields }: Given): ProvenanceOptions | undefined {
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

function readSbom({ option, fields }: Given): SbomOptions | undefined {
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
    text.split(",").map((field): [string, string] => {
      const [, key, value] = /^([^=]+)=(.*)$/s.exec(field) ?? [];
      if (key !== undefined && value !== undefined) return [key, value];
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

/** What a value of `--provenance` looks like, where the word behind it may be something else. */
export const provenanceValue =
  /^(true|false|[10]|(mode|builder-id|version|disabled|reproducible|inline-only|filename)=.*)$/;

export const sbomValue = /^(true|false|[10]|(generator|disabled|filename|scan-\w+|[A-Z_]+)=.*)$/;
