/** How outputs write an image, whatever their destinations are. */
import type { Compression } from "../../image/compression.ts";
import type { Values } from "../command-line/arguments.ts";
import type { Invocation } from "../command-line/command.ts";
import type { TimeOptions } from "./image-source.ts";
import { type OutputFields, readFields, unusable } from "./output-fields.ts";
import { readTimes } from "./times.ts";

export interface OutputForm {
  compression: Compression;
  times: TimeOptions;
  /** True if layers of bases are compressed again, where they have another compression. */
  recompresses: boolean;
  /** True for Docker's media types in place of OCI's. */
  hasDockersTypes: boolean;
  /** The fields `annotation.KEY=VALUE`, as `--annotation` has them. */
  givenAnnotations: readonly string[];
}

/**
 * Returns how the outputs write the image that a registry or a layout gets. Whether that is possible here, and whether it is pushed
 * now, makes no difference.
 */
export function readOutputForms({ values, runtime }: Pick<Invocation, "values" | "runtime">): OutputForm[] {
  return askedOutputs(values).flatMap((text) => {
    const fields = readFields(text);
    const keepsForm = ["oci", "image", "registry"].includes(fields.take("type") ?? "");
    return keepsForm ? [readForm(fields, { values, runtime })] : [];
  });
}

/** Returns the values of `--output`, and those that `--push` and `--load` stand for. */
export function askedOutputs(values: Pick<Values, "flag" | "list">): string[] {
  return [
    ...values.list("output"),
    ...(values.flag("push") ? ["type=registry"] : []),
    ...(values.flag("load") ? ["type=docker"] : []),
  ];
}

export function readForm(
  { text, take, isTrue, annotations }: OutputFields,
  invocation: Pick<Invocation, "values" | "runtime">,
): OutputForm {
  return {
    recompresses: isTrue("force-compression"),
    compression: readCompression(take("compression"), text),
    hasDockersTypes: !isTrue("oci-mediatypes", true),
    times: readTimes(isTrue("rewrite-timestamp"), invocation),
    givenAnnotations: annotations(),
  };
}

function readCompression(value: string | undefined, text: string): Compression {
  // BuildKit's name for it.
  if (value === "uncompressed" || value === "none") return "none";
  if (value === undefined || value === "gzip") return "gzip";
  if (value === "zstd") return "zstd";
  throw unusable(text, `compression must be gzip, zstd or uncompressed, not ${JSON.stringify(value)}`);
}
