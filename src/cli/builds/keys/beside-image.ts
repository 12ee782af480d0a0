import type { Values } from "../../command-line/arguments.ts";
import { splitCsv, splitPair } from "../../command-line/option-values.ts";

interface Beside {
  /** `--annotation` */
  annotations: readonly string[];
  /** `--attest` */
  attests: readonly string[];
  /** `--sign`. A signature is in the registry before the tag. */
  sign: string | undefined;
  /** The fields of each `--output`. */
  outputs: readonly (readonly (readonly [name: string, value: string])[])[];
}

/** Returns that of a build's options. */
export function besideBuild(values: Values): string[] {
  const attests = ["provenance", "sbom"].flatMap((name) => {
    const text = values.text(name);
    return text === undefined ? [] : [`type=${name},${text}`];
  });
  return besideImage({
    annotations: values.list("annotation"),
    attests: [...values.list("attest"), ...attests],
    sign: values.text("sign"),
    outputs: values.list("output").map((text) =>
      splitCsv(text).map((field) => {
        const [name, value = ""] = splitPair(field);
        return [name, value] as const;
      }),
    ),
  });
}

/** Fields of outputs that change what a registry gets of the same image. */
const writing = /^(compression|force-compression|oci-mediatypes|rewrite-timestamp|annotation.*)$/;

/** Returns what a content key covers beside the image itself: what is written with it. */
export function besideImage({ annotations, attests, sign, outputs }: Beside): string[] {
  const fields = outputs.flat().filter(([name]) => writing.test(name));
  return [
    ...annotations.map((text) => `annotation ${text}`),
    ...attests.map((text) => `attest ${text}`),
    // The path of a key is another one on each machine.
    ...(sign === undefined ? [] : [`sign ${sign.replace(/=.*/s, "")}`]),
    ...fields.map(([name, value]) => `output ${name}=${value}`),
  ];
}
